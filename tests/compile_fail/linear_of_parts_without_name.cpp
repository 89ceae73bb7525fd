// expect: linear_of_parts has a name and a number of parts
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = fprnn::linear_of_parts(in);
