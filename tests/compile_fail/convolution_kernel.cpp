// expect: convolution<"name", K>(e): K, the number of tokens that it sees, must be at least 1
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = fprnn::convolution<"conv", 0>(in);
