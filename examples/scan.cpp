// The diagonal scan and its adjoint, on plain tensors: values by hand, a sequence in two pieces, gradients by
// differences.
#include <fprnn/core/random.hpp>
#include <fprnn/ops/scan.hpp>
#include <fprnn/tape/gradcheck.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace fp = fprnn;

int failures = 0;
void claim(bool holds, const char* what) {
    std::printf("%s  %s\n", holds ? "holds" : "FAILS", what);
    failures += !holds;
}

fp::tensor<double> normal(fp::shape extents, std::uint64_t stream) {
    fp::tensor<double> x(extents);
    for (fp::index i = 0; i < x.size(); ++i) x[i] = fp::random_stream(fp::seed{0}, stream).normal(i);
    return x;
}
double dot(const fp::tensor<double>& a, const fp::tensor<double>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

int main() {
    //! [value]
    // h_t = λ_t ⊙ h_{t−1} + u_t, from h_{−1} = 0
    const fp::tensor<double> half({1, 4, 1}, {0.5, 0.5, 0.5, 0.5}), ones({1, 4, 1}, {1, 1, 1, 1});  // [B,T,D]
    const auto h = fp::scan(half, ones);
    claim(h[0] == 1 && h[1] == 1.5 && h[2] == 1.75 && h[3] == 1.875, "h = 1, 1.5, 1.75, 1.875");
    //! [value]

    //! [memory]
    // The same, in memory that is there already.
    fp::tensor<double> again(half.shape());
    fp::scan_into(again, half, ones);
    claim(again[3] == h[3], "scan_into overwrites its first argument");
    //! [memory]

    //! [pieces]
    // The state after one call is the carry of the next.
    const fp::tensor<double> half_2({1, 2, 1}, {0.5, 0.5}), ones_2({1, 2, 1}, {1, 1});
    const auto first = fp::scan(half_2, ones_2);
    const fp::tensor<double> carry({1, 1}, {first[1]});  // [B,D]
    const auto second = fp::scan(half_2, ones_2, carry);
    claim(second[0] == h[2] && second[1] == h[3], "two calls of two tokens are one call of four, to the bit");
    //! [pieces]

    //! [adjoint]
    // L = Σ weights ⊙ h, so ḣ = weights.
    // Then g_t = ḣ_t + λ_{t+1} ⊙ g_{t+1},  ū_t += g_t,  λ̄_t += g_t ⊙ h_{t−1}.
    fp::tensor<double> lambda = normal({2, 5, 3}, 1), u = normal({2, 5, 3}, 2);
    const auto weights = normal({2, 5, 3}, 3);
    const auto states = fp::scan(lambda, u);
    fp::scan_cotangents<double> bar(u.shape());
    fp::scan_back(lambda, states, {}, weights, {}, bar);
    //! [adjoint]

    //! [check]
    const auto loss = [&] { return dot(weights, fp::scan(lambda, u)); };
    const auto worst = fp::gradcheck(loss, {{"lambda", lambda, bar.lambda}, {"u", u, bar.u}});
    std::printf("       %s\n", worst.to_string().c_str());
    claim(worst.error < 1e-8, "both gradients agree with difference quotients to 1e-8");
    //! [check]

    //! [reversed]
    // The adjoint in u is itself a scan, from the last token to the first, with the λ of one token ahead.
    fp::tensor<double> ahead(lambda.shape());
    for (fp::index b = 0; b < 2; ++b)
        for (fp::index t = 0; t + 1 < 5; ++t)
            for (fp::index d = 0; d < 3; ++d) ahead(b, t, d) = lambda(b, t + 1, d);
    const auto g = fp::scan(ahead, weights, {}, fp::direction::reversed);
    double difference = 0;
    for (fp::index i = 0; i < g.size(); ++i) difference = std::max(difference, std::abs(g[i] - bar.u[i]));
    claim(difference < 1e-14, "the reversed scan of the cotangents is ū");
    //! [reversed]
    return failures ? 1 : 0;
}
