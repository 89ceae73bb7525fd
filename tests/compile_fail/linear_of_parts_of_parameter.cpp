// expect: a parameter is no sequence of tokens
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = fprnn::linear_of_parts<"W", fprnn::heads>(fprnn::parameter<"a">());
