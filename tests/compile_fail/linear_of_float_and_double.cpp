// expect: linear(x, W, b): all arguments must hold numbers of one type
#include <fprnn/fprnn.hpp>

void run(const fprnn::tensor<float>& x, const fprnn::tensor<double>& W) { fprnn::linear(x, W); }
