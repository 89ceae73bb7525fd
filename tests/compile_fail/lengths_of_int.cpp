// expect: layer(theta, x, n): n, the sequences' lengths, must be a std::vector<fprnn::index>
#include <fprnn/fixed_point/layer.hpp>

#include <vector>

using namespace fprnn::symbols;
auto solve(const fprnn::layer_parameters<float>& theta, const fprnn::tensor<float>& x) {
    const fprnn::layer l(fprnn::linear<"A">(in));
    return l(theta, x, std::vector<int>{1, 2});
}
