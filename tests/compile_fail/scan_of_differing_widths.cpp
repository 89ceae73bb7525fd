// expect: elementwise operands must have the same symbolic width
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = scan(sigmoid(in), fprnn::linear<"u">(in));
