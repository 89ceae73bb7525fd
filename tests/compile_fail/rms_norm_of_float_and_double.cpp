// expect: rms_norm(x, weight): all arguments must hold numbers of one type
#include <fprnn/fprnn.hpp>

void run(const fprnn::tensor<float>& x, fprnn::view<const double> weight) { fprnn::rms_norm(x, weight); }
