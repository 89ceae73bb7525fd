#pragma once

#include <larger.hpp>

#include <fprnn/fixed_point/layer.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string>

/// What the tests of layers share: random tensors, one call with its vjp, and central differences.
namespace fprnn::testing {

template <class T = double>
tensor<T> normal(shape extents, std::uint64_t stream, double scale = 1) {
    tensor<T> x(extents);
    const random_stream r(seed{17}, stream);
    for (index i = 0; i < x.size(); ++i) x[i] = static_cast<T>(scale * r.normal(i));
    return x;
}

/// The Householder mixer without its compact form, so that one-token chunks are iterated through f.
template <int R, int Scale = 1>
struct plain_householder_mixer : householder_mixer<R, Scale> {
    static constexpr int rank = 0;
};
/// The Householder mixer as a test compiles it. The library has compiled householder_mixer with flags of its
/// own, and wherever the compiler may contract a b + c there are other bits.
template <int R, int Scale = 1>
struct own_householder_mixer : householder_mixer<R, Scale> {};

/// As householder<R, "Q", Scale>(s).
template <class Mixer, int R, expression E>
constexpr auto householder_by(E s) {
    auto u = linear<"Q.u", times_width<R, d_inner>>(s);
    auto alpha = affine<"Q.alpha", fixed_width<R>>(s);
    return mixer_node<Mixer, decltype(u), decltype(alpha)>{};
}
template <int R, int Scale = 1, expression E>
constexpr auto plain_householder(E s) {
    return householder_by<plain_householder_mixer<R, Scale>, R>(s);
}
template <int R, int Scale = 1, expression E>
constexpr auto own_householder(E s) {
    return householder_by<own_householder_mixer<R, Scale>, R>(s);
}

/// Sequences [first, first + n) of [B,…].
template <class T>
tensor<T> sequences(const tensor<T>& x, index first, index n) {
    const shape& s = x.shape();
    const index each = x.size() / s[0];
    tensor<T> part(s.rank() == 3 ? shape{n, s[1], s[2]} : shape{n, s[1]});
    std::copy_n(x.data() + first * each, n * each, part.data());
    return part;
}

/// Tokens [first, first + n) of [B,T,…].
template <class T>
tensor<T> tokens(const tensor<T>& x, index first, index n) {
    const shape& s = x.shape();
    const index each = s[0] * s[1] == 0 ? 0 : x.size() / (s[0] * s[1]);
    tensor<T> part(s.rank() == 3 ? shape{s[0], n, s[2]} : shape{s[0], n});
    for (index b = 0; b < s[0]; ++b)
        std::copy_n(x.data() + (b * s[1] + first) * each, n * each, part.data() + b * n * each);
    return part;
}

/// Equal to the bit, NaN included.
template <class A>
bool same_bits(const A& a, const A& b) {
    return a.size() == b.size() &&
           (a.size() == 0 ||
            std::memcmp(a.data(), b.data(), sizeof(a.data()[0]) * static_cast<std::size_t>(a.size())) == 0);
}

template <class A>
double largest(const A& a) {
    double m = 0;
    for (index i = 0; i < a.size(); ++i) m = larger(m, std::abs(static_cast<double>(a.data()[i])));
    return m;
}

/// ‖a − b‖_∞; NaN when one of them is.
template <class A>
double distance(const A& a, const A& b) {
    double m = 0;
    for (index i = 0; i < a.size(); ++i) {
        m = larger(m, std::abs(static_cast<double>(a.data()[i]) - static_cast<double>(b.data()[i])));
    }
    return m;
}

/// One call of a layer and its vjp.
template <class T>
struct differentiated {
    solution<T> sol;
    tensor<T> x_bar;
    parameter_tree<T> theta_bar;
    convergence adjoint;
    work_counters adjoint_work;
    index bytes = 0;  ///< kept for the way back
};

template <class T, class Backend>
differentiated<T> differentiate(const engine::layer_on<T, Backend>& l, const layer_parameters<T>& theta,
                                const tensor<T>& x, const tensor<T>& y_bar, Backend backend = Backend{}) {
    engine::record<T, Backend> kept;
    differentiated<T> r;
    l.run(theta.widths, theta.data(), x.view(), {}, backend, &kept, r.sol, std::span<const index>{});
    r.x_bar = tensor<T>(x.shape());
    r.theta_bar = theta.zeros_like();
    l.back(kept, x.view(), y_bar.view(), r.x_bar.view(), r.theta_bar.data(), backend, {});
    r.adjoint = *kept.adjoint_convergence;
    r.adjoint_work = kept.adjoint_work;
    r.bytes = kept.bytes();
    return r;
}
template <class Root, class T, class Backend = eigen>
differentiated<T> differentiate(const layer<Root>& l, const layer_parameters<T>& theta, const tensor<T>& x,
                                const tensor<T>& y_bar, Backend backend = Backend{}) {
    return differentiate(l.template on<T, Backend>(), theta, x, y_bar, backend);
}

/// d⟨y_bar, value()⟩ / d`at` by the central difference of five points; its error is of order h⁴ and
/// rounding/h.
template <class Value>
double slope(Value&& value, const tensor<double>& y_bar, double& at, double h = 3e-4) {
    const double middle = at;
    const double weights[] = {1, -8, 8, -1}, steps[] = {-2, -1, 1, 2};
    double sum = 0;
    for (int k = 0; k < 4; ++k) {
        at = middle + steps[k] * h;
        const tensor<double> y = value();
        for (index i = 0; i < y.size(); ++i) sum += weights[k] * y_bar[i] * y[i];
    }
    at = middle;
    return sum / (12 * h);
}

/// Central differences of every entry of x and of every parameter.
struct differences {
    tensor<double> x;
    parameter_tree<double> theta;
};

template <class Value>
differences by_differences(layer_parameters<double>& theta, tensor<double>& x, const tensor<double>& y_bar,
                           Value&& value, double h = 3e-4) {
    differences d{tensor<double>(x.shape()), theta.zeros_like()};
    for (index i = 0; i < x.size(); ++i) d.x[i] = slope(value, y_bar, x[i], h);
    for (index i = 0; i < d.theta.size(); ++i) d.theta.data()[i] = slope(value, y_bar, theta.data()[i], h);
    return d;
}

/// The largest error of a gradient, each tensor relative to its own largest entry, and where it is. A tensor
/// that is no larger than `nothing` counts as zero: a direction in one dimension, say, has a gradient of
/// rounding errors only.
struct gradient_error {
    double nothing = 0;
    double worst = 0;
    std::string where = "nowhere";

    void take(const std::string& name, const double* got, const double* expected, index n) {
        double scale = 0, error = 0;
        for (index i = 0; i < n; ++i) {
            scale = larger(scale, std::abs(expected[i]));
            error = larger(error, std::abs(got[i] - expected[i]));
        }
        const double relative = scale > nothing ? error / scale : error <= nothing ? 0 : error / nothing;
        if (relative <= worst || std::isnan(worst)) return;
        worst = relative;
        where = name;
    }
};

inline gradient_error compare(const differentiated<double>& got, const tensor<double>& x,
                              const parameter_tree<double>& theta) {
    gradient_error e{.nothing = 1e-13 * std::max(largest(x), largest(theta))};
    e.take("x", got.x_bar.data(), x.data(), x.size());
    for (const auto& p : theta.entries())
        e.take(p.name, got.theta_bar.data() + p.offset, theta.data() + p.offset, p.shape.count());
    return e;
}
inline gradient_error compare(const differentiated<double>& got, const differences& expected) {
    return compare(got, expected.x, expected.theta);
}
inline gradient_error compare(const differentiated<double>& got, const differentiated<double>& expected) {
    return compare(got, expected.x_bar, expected.theta_bar);
}

/// Moves every parameter away from its start, so that no bias is zero and no norm weight one.
template <class T>
void shake(parameter_tree<T>& theta, double by, std::uint64_t stream = 99) {
    const random_stream r(seed{3}, stream);
    for (index i = 0; i < theta.size(); ++i) theta.data()[i] += static_cast<T>(by * r.normal(i));
}

}  // namespace fprnn::testing
