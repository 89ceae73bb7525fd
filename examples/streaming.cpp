// Generation: a prompt in large chunks, then token by token with the kept carry. It is the whole sequence,
// solved at once.
#include <fprnn/fprnn.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace fp = fprnn;

/// Tokens [first, first + n) of x [1,T,D].
fp::tensor<float> tokens(const fp::tensor<float>& x, fp::index first, fp::index n) {
    fp::tensor<float> part({1, n, x.shape()[2]});
    std::copy_n(x.data() + first * x.shape()[2], part.size(), part.data());
    return part;
}

int main() {
    //! [layer]
    // h_t = λ_t ⊙ h_{t−1} + (1 − λ_t) ⊙ (Q_t B x_t + (I − Q_t) h_t^{ℓ−1}), read out to the width of the input
    using namespace fp::symbols;
    auto Q = fp::householder<2, "Q">(cat(in, shift(prev)));
    auto lambda = sigmoid(fp::affine<"lambda">(in));
    auto h = fixed_point(scan(lambda, (1 - lambda) * (Q * fp::linear<"B">(in) + (I - Q) * prev)));
    const fp::layer by_token(tanh(fp::linear<"out", fp::d_in>(h)), fp::chunked{.length = 1, .tolerance = 1e-6});
    const auto theta = fp::init<float>(by_token, {.d_in = 8, .d_inner = 32}, fp::seed{0});
    //! [layer]

    //! [generate]
    constexpr fp::index prompt = 64, T = 128, D = 8;
    fp::tensor<float> x({1, T, D}), y({1, T, D});  // [B,T,d_in]
    const fp::random_stream noise(fp::seed{1}, 0);
    for (fp::index i = 0; i < prompt * D; ++i) x[i] = static_cast<float>(noise.normal(i));

    auto by_chunk = by_token;
    by_chunk.schedule.length = 16;
    auto sol = by_chunk(theta, tokens(x, 0, prompt));  // prefill: 4 chunks
    std::copy(sol.value.begin(), sol.value.end(), y.begin());
    bool converged = sol.all_converged();
    for (fp::index t = prompt; t < T; ++t) {
        // The next input is drawn around the last output.
        for (fp::index d = 0; d < D; ++d)
            x(0, t, d) = y(0, t - 1, d) + 0.5f * static_cast<float>(noise.normal(t * D + d));
        sol = by_token(theta, tokens(x, t, 1), sol.carry);  // one token, from where the call before ended
        std::copy_n(sol.value.data(), D, &y(0, t, 0));
        converged = converged && sol.all_converged();
    }
    //! [generate]

    //! [check]
    // The same inputs in one call, with the whole sequence as one chunk: equal but for the tolerance of the
    // solves.
    auto at_once = by_token;
    at_once.schedule = fp::parallel({.tolerance = 1e-6, .ell_max = 1000});
    const auto whole = at_once(theta, x);
    float worst = 0;
    for (fp::index i = 0; i < y.size(); ++i) worst = std::max(worst, std::abs(whole.value[i] - y[i]));
    std::printf("generated and whole differ by at most %.1e\n", worst);
    //! [check]

    //! [bits]
    // With one-token chunks throughout there is no difference at all: where calls cut a sequence changes no
    // bit.
    const auto once = by_token(theta, x), first = by_token(theta, tokens(x, 0, 37));
    const auto rest = by_token(theta, tokens(x, 37, T - 37), first.carry);
    const bool same = std::equal(first.value.begin(), first.value.end(), once.value.begin()) &&
                      std::equal(rest.value.begin(), rest.value.end(), once.value.begin() + first.value.size());
    std::printf("two calls give %s of one\n", same ? "the bits" : "NOT the bits");
    //! [bits]
    return converged && whole.all_converged() && worst < 1e-4f && same ? 0 : 1;
}
