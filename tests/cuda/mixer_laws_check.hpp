#pragma once

#include "laws_check.hpp"

#include <string>

namespace laws {

/// W x of every token, W [n,d_in].
inline tensor<double> product(const tensor<double>& W, const tensor<double>& x) {
    const index n = W.shape()[0], d_in = W.shape()[1];
    tensor<double> y({x.shape()[0], x.shape()[1], n});
    for (index i = 0; i < y.size(); ++i) {
        const double* row = W.data() + i % n * d_in;
        y[i] = std::inner_product(row, row + d_in, x.data() + i / n * d_in, 0.0);
    }
    return y;
}
inline tensor<double> sum(const tensor<double>& a, double by, const tensor<double>& b) {
    tensor<double> s(a.shape());
    for (index i = 0; i < s.size(); ++i) s[i] = a[i] + by * b[i];
    return s;
}
inline double norm(const double* x, index n) { return std::sqrt(std::inner_product(x, x + n, x, 0.0)); }

/// Q v, by Q = Π_i (I − α_i ū_i ū_iᵀ), reflection 0 first, ū_i = SiLU(u_i) / ‖SiLU(u_i)‖, α_i = Scale · σ(a_i
/// + bias_i)
template <int R, int Scale>
tensor<double> reflected(tensor<double> v, tensor<double> u, const tensor<double>& a, const tensor<double>& bias) {
    const index D = v.shape()[2];
    for (index token = 0; token < v.size() / D; ++token)
        for (index i = 0; i < R; ++i) {
            double *to = v.data() + token * D, *unit = u.data() + (token * R + i) * D;
            for (index d = 0; d < D; ++d) unit[d] /= 1 + std::exp(-unit[d]);
            const double alpha = Scale / (1 + std::exp(-a[token * R + i] - bias[i])), length = norm(unit, D);
            const double along = std::inner_product(unit, unit + D, to, 0.0) / length;
            for (index d = 0; d < D; ++d) to[d] -= alpha * along * unit[d] / length;
        }
    return v;
}

/// Those laws of mixers that the layer Q v + (I − Q) w shows, for raw numbers that drive what is bounded to
/// its limits. To 1e-13; 3e-16 measured, and 1.6e-14 of the adjoint.
template <int R, int Scale>
void check_mixer() {
    CAPTURE(R);
    CAPTURE(Scale);
    using namespace fprnn::symbols;
    const auto Q = fprnn::householder<R, "Q", Scale>(in);
    const auto mix = Q * linear<"v">(in) + (I - Q) * linear<"w">(in);
    check_gradient(mix);

    problem<double, std::remove_const_t<decltype(mix)>> p(mix, {}, {3, 7, 4}, 11);
    for (double& number : p.theta) number *= 3;
    const auto parameter = [&](const char* name) {
        const auto there = p.theta[name];
        return tensor<double>(there.shape(), {there.begin(), there.end()});
    };
    const auto V = parameter("v"), W = parameter("w"), none = tensor<double>(V.shape());
    const auto mixed = [&](const tensor<double>& v, const tensor<double>& w) {
        std::copy(v.begin(), v.end(), p.theta["v"].begin());
        std::copy(w.begin(), w.end(), p.theta["w"].begin());
        return p.value();
    };
    const auto check = [](const std::string& law, const tensor<double>& got, const tensor<double>& expected) {
        CAPTURE(law);
        CHECK(gpu::distance(got, expected) <= 1e-13);
    };
    const auto v = product(V, p.x), w = product(W, p.x);
    const auto Qv = mixed(V, none), Qw = mixed(W, none);
    check("Q is its definition", Qv,
          reflected<R, Scale>(v, product(parameter("Q.u"), p.x), product(parameter("Q.alpha"), p.x),
                              parameter("Q.alpha.bias")));
    check("Q v + (I - Q) v is v", mixed(V, V), v);
    check("(I - Q) w is w - Q w", mixed(none, W), sum(w, -1, Qw));
    check("Q is linear", mixed(sum(V, 0.5, W), none), sum(Qv, 0.5, Qw));
    for (index token = 0; token < p.x.size() / 4; ++token)
        CHECK(norm(Qv.data() + token * 11, 11) <= (1 + 1e-13) * norm(v.data() + token * 11, 11));

    // ⟨ȳ, Q v + (I − Q) w⟩ = ⟨Qᵀȳ, v⟩ + ⟨(I − Q)ᵀȳ, w⟩
    const double there = dot(mixed(V, W), p.y_bar);
    const auto bars = p.differentiate();
    double back = 0;
    for (const auto& e : p.theta.entries())
        if (e.name == "v" || e.name == "w")
            for (index i = e.offset; i < e.offset + e.shape.count(); ++i) back += bars.theta_bar[i] * p.theta.data()[i];
    CHECK(std::abs(back - there) <= 1e-13 * std::abs(there));
}

}  // namespace laws
