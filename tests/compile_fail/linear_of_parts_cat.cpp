// expect: a map of parts takes one expression, not cat(...)
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = fprnn::linear_of_parts<"W", fprnn::heads>(cat(in, in));
