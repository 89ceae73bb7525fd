// expect: scan(lambda, u, carry): lambda, u and carry must hold numbers of one type
#include <fprnn/fprnn.hpp>

void run(const fprnn::tensor<float>& lambda, fprnn::view<double> u) { fprnn::scan(lambda, u, {}); }
