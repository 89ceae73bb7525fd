// expect: convolution has a name, that of its parameters: convolution<"conv">(e)
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = fprnn::convolution(in);
