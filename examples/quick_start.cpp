// A fixed-point RNN from its equation: made, solved, and continued where it ended.
#include <fprnn/fprnn.hpp>

#include <cstdio>

namespace fp = fprnn;

int main() {
    //! [equation]
    // h_t = λ_t ⊙ h_{t−1} + (1 − λ_t) ⊙ (Q_t B x_t + (I − Q_t) h_t^{ℓ−1}), where Q_t sees x_t and
    // h_{t−1}^{ℓ−1}
    using namespace fp::symbols;
    auto s = cat(in, shift(prev));
    auto Q = fp::householder<4, "Q">(s);
    auto lambda = sigmoid(fp::linear<"lambda">(in));
    auto f = scan(lambda, (1 - lambda) * (Q * fp::linear<"B">(in) + (I - Q) * prev));
    //! [equation]

    //! [layer]
    // Token by token to a residual of 1e-4; trained through the exact gradient at the fixed point.
    auto layer = fp::fixed_point(f, fp::chunked{.length = 1, .tolerance = 1e-4}, fp::implicit{});
    auto theta = fp::init<float>(layer, {.d_in = 8, .d_inner = 16}, fp::seed{0});
    for (const auto& p : theta.entries()) std::printf("%s %s\n", p.name.c_str(), p.shape.to_string().c_str());
    //! [layer]

    //! [explain]
    std::printf("%s", fp::explain(layer).c_str());
    //! [explain]

    //! [solve]
    fp::tensor<float> x({2, 12, 8});  // [B,T,d_in]
    for (fp::index i = 0; i < x.size(); ++i) x[i] = static_cast<float>(fp::random_stream(fp::seed{1}, 0).normal(i));

    const auto sol = layer(theta, x);
    std::printf("value %s  carry %s\n", sol.value.shape().to_string().c_str(), sol.carry.shape().to_string().c_str());
    for (std::size_t b = 0; b < sol.status.size(); ++b)
        std::printf("sequence %zu: %s, residual %.1e, at most %d iterations a token\n", b, to_string(sol.status[b]),
                    sol.residual[b], sol.iterations[b]);
    //! [solve]

    //! [continue]
    const auto next = layer(theta, x, sol.carry);  // the next 12 tokens
    std::printf("streamed %s  %s\n", next.value.shape().to_string().c_str(),
                next.all_converged() ? "converged" : "not converged");
    //! [continue]

    //! [compact]
    static_assert(decltype(layer)::is_reduced);  // tokens are solved in R numbers
    //! [compact]
    return sol.all_converged() && next.all_converged() ? 0 : 1;
}
