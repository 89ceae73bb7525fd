// expect: layer(theta, x, carry): parameters, input and carry must hold numbers of one type: init<double>(
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
void run(const fprnn::layer_parameters<double>& theta, fprnn::view<double> x, fprnn::view<const float> carry) {
    const fprnn::layer l(fixed_point(tanh(fprnn::linear<"W">(cat(in, prev)))));
    auto y = l(theta, x, carry);
}
