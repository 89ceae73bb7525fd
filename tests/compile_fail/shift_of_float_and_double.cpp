// expect: shift(x, carry): all arguments must hold numbers of one type
#include <fprnn/fprnn.hpp>

void run(const fprnn::tensor<float>& x, const fprnn::tensor<double>& carry) { fprnn::shift(x, carry); }
