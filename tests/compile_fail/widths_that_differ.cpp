// expect: elementwise operands must have the same symbolic width
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = in + fprnn::linear<"W">(in);
