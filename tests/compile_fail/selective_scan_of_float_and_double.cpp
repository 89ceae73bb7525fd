// expect: selective_scan(delta, omega, b, c, u, H): all arguments must hold numbers of one type
#include <fprnn/fprnn.hpp>

void run(const fprnn::tensor<float>& x, const fprnn::tensor<double>& omega) {
    fprnn::selective_scan(x, omega, x, x, x);
}
