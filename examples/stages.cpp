#include <fprnn/fprnn.hpp>

#include <cstdio>

/// Two fixed points in one expression, of which the second reads the first.
namespace fp = fprnn;

int main() {
    //! [layer]
    using namespace fp::symbols;
    const auto y1 = fixed_point(tanh(fp::linear<"W">(cat(in, shift(prev)))));  // prev: the iterate of y1
    const auto lambda = sigmoid(fp::affine<"lambda">(y1));
    const auto Q = fp::householder<2>(cat(in, shift(y1), shift(prev)));
    // prev: the iterate of y2. To this iteration y1 is given, as x is.
    const auto y2 = fixed_point(scan(lambda, (1 - lambda) * (Q * fp::linear<"V">(y1) + (I - Q) * prev)));
    const fp::layer layer(fp::rms_norm<"norm">(y2) + y1, fp::chunked{.length = 1, .tolerance = 1e-4}, fp::implicit{});
    //! [layer]

    const auto theta = fp::init<float>(layer, {.d_in = 8, .d_inner = 16}, fp::seed{0});
    fp::tensor<float> x({2, 32, 8});
    const fp::random_stream numbers(fp::seed{1}, 0);
    for (fp::index i = 0; i < x.size(); ++i) x[i] = static_cast<float>(numbers.normal(i));

    //! [call]
    const auto sol = layer(theta, x);
    for (const fp::convergence& one : sol.fixed_points)
        std::printf("%s, at most %d iterations a token\n", to_string(one.status[0]), one.iterations[0]);
    std::printf("both: %s\n", to_string(sol.status[0]));
    //! [call]
    return sol.all_converged() && sol.fixed_points.size() == 2 ? 0 : 1;
}
