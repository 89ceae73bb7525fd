#include "fixed_point/tools.hpp"

#include <doctest/doctest.h>

#include <limits>

namespace {

using namespace fprnn::testing;
using fprnn::chunked;
using fprnn::index;
using fprnn::random_stream;
using fprnn::status;
using fprnn::tensor;

using number = float;  // which overflows soonest

// Layers as functions f(x, y), so that f can be evaluated at any y. With directions of scale 2 they need not
// contract.

using reflections = std::remove_const_t<decltype(fprnn::householder<2, "Q", 2>)>;
using kronecker_after_dplr = std::remove_const_t<decltype(fprnn::kronecker * fprnn::dplr<2, "Q", 2>)>;

template <class Mixer>
struct rnn {
    template <class X, class Y>
    auto operator()(X x, Y y) const {
        auto Q = Mixer{}(cat(x, shift(y)));
        auto lambda = sigmoid(fprnn::affine<"lambda">(x));
        return scan(lambda, (1 - lambda) * (Q * fprnn::linear<"B">(x) + (fprnn::symbols::I - Q) * y));
    }
};

struct mamba {
    template <class X, class Y>
    auto operator()(X x, Y y) const {
        auto Q = fprnn::householder<1, "Q", 2>(cat(x, shift(y)));
        auto delta = softplus(fprnn::affine<"delta">(x));
        auto b = fprnn::normalise(fprnn::linear<"b", fprnn::d_state>(cat(x, shift(y))));
        auto c = fprnn::normalise(fprnn::linear<"c", fprnn::d_state>(x));
        auto x_tilde = Q * fprnn::linear<"x">(x) + (fprnn::symbols::I - Q) * y;
        return fprnn::layer_norm<"y_norm">(fprnn::selective_scan<"ssm">(delta, b, c, x_tilde) +
                                           fprnn::parameter<"D">() * x_tilde);
    }
};

constexpr index d_in = 3, d_inner = 5, states = 2;

/// y* = f(x, y*).
template <class Function>
auto solved_layer(chunked schedule) {
    using namespace fprnn::symbols;
    return fprnn::layer(fprnn::fixed_point(Function{}(in, prev)), schedule);
}
/// f(x, y) of [x; y].
template <class Function>
auto evaluated_layer() {
    using namespace fprnn::symbols;
    return fprnn::layer(Function{}(fprnn::linear<"of_x", fprnn::fixed_width<d_in>>(in), fprnn::linear<"of_y">(in)));
}

/// The largest relative step ‖f(y) − y‖ / ‖f(y)‖ over a sequence's tokens; infinite where a number is not
/// finite.
double residual(const tensor<number>& y, const tensor<number>& fy, index b) {
    double worst = 0;
    for (index t = 0; t < y.shape()[1]; ++t) {
        double step = 0, size = 1e-8;
        for (index d = 0; d < d_inner; ++d) {
            const double from = static_cast<double>(y(b, t, d)), to = static_cast<double>(fy(b, t, d));
            if (!std::isfinite(from) || !std::isfinite(to)) return std::numeric_limits<double>::infinity();
            step = larger(step, std::abs(to - from));
            size = larger(size, std::abs(to));
        }
        worst = larger(worst, step / size);
    }
    return worst;
}

/// α = 1 in every direction of scale 2, so that Q is singular, and λ = 0 where there is one, so that I −
/// ∂f/∂y is, too.
template <class Parameters>
void make_singular(Parameters& theta) {
    for (const auto& p : theta.entries()) {
        const bool is_alpha = p.name.ends_with(".alpha") || p.name.ends_with(".alpha.bias");
        const bool is_lambda = p.name == "lambda.bias";
        if (is_alpha || is_lambda)
            for (number& v : theta[p.name]) v = is_alpha ? number(0) : number(-1000);
    }
}

/// Random systems, an eighth of them singular, most of them with numbers that are not finite or too large;
/// those that are said to have converged are at a fixed point.
template <class Function>
void check_poisoned(int seeds) {
    constexpr index B = 17, tokens = 4;
    constexpr number infinity = std::numeric_limits<number>::infinity();
    const number poisons[] = {std::numeric_limits<number>::quiet_NaN(), infinity, -infinity,
                              std::numeric_limits<number>::max(), 0};
    const auto evaluated = evaluated_layer<Function>();
    const fprnn::dims sizes{.d_in = d_in, .d_inner = d_inner, .d_state = states},
        both{.d_in = d_in + d_inner, .d_inner = d_inner, .d_state = states};
    index converged = 0, others = 0;
    for (int seed = 0; seed < seeds; ++seed) {
        CAPTURE(seed);
        const random_stream r(fprnn::seed{static_cast<std::uint64_t>(seed)}, 1);
        index drawn = 0;
        const auto below = [&](index n) { return static_cast<index>(r.uniform(drawn++) * static_cast<double>(n)); };
        const auto poison = [&](number* x, index n) { x[below(n)] = poisons[below(5)]; };

        auto solved = solved_layer<Function>({.tolerance = 1e-4, .ell_max = 40});
        auto theta = fprnn::init<number>(solved, sizes, fprnn::seed{static_cast<std::uint64_t>(seed)});
        const double scales[] = {0.1, 1, 1, 4, 30};
        const auto scale = static_cast<number>(scales[below(5)]);
        for (number& v : theta) v *= scale;
        if (below(8) == 0) make_singular(theta);
        auto x = normal<number>({B, tokens, d_in}, static_cast<std::uint64_t>(seed));
        auto carry = normal<number>({B, solved.carry_width(sizes)}, static_cast<std::uint64_t>(seed) + 1000);
        // A third has clean parameters; of the sequences most stay clean.
        if (below(3) > 0)
            for (index i = below(3); i >= 0; --i) poison(theta.data(), theta.size());
        for (index b = 0; b < B; ++b) {
            if (below(4) == 0) poison(x.data() + b * tokens * d_in, tokens * d_in);
            if (below(4) == 0) poison(carry.data() + b * carry.shape()[1], carry.shape()[1]);
        }

        auto at_a_point = fprnn::init<number>(evaluated, both);
        for (const auto& p : theta.entries())
            std::copy_n(theta.data() + p.offset, p.shape.count(), at_a_point[p.name].data());
        for (const char* name : {"of_x", "of_y"})
            for (number& v : at_a_point[name]) v = 0;
        for (index d = 0; d < d_in; ++d) at_a_point["of_x"](d, d) = 1;
        for (index d = 0; d < d_inner; ++d) at_a_point["of_y"](d, d_in + d) = 1;
        REQUIRE(evaluated.carry_width(both) == carry.shape()[1]);

        for (const index C : {index{1}, index{2}, fprnn::whole_sequence}) {
            CAPTURE(C);
            solved.schedule.length = C;
            const auto sol = solved(theta, x, carry);
            tensor<number> xy({B, tokens, d_in + d_inner});
            for (index i = 0; i < B * tokens; ++i) {
                std::copy_n(x.data() + i * d_in, d_in, xy.data() + i * (d_in + d_inner));
                std::copy_n(sol.value.data() + i * d_inner, d_inner, xy.data() + i * (d_in + d_inner) + d_in);
            }
            const auto fy = evaluated(at_a_point, xy, carry).value;
            for (index b = 0; b < B; ++b) {
                const auto s = static_cast<std::size_t>(b);
                CAPTURE(b);
                const bool is_bounded = sol.iterations[s] <= solved.schedule.ell_max;
                CHECK(is_bounded);
                (sol.status[s] == status::converged ? converged : others) += 1;
                if (sol.status[s] != status::converged) continue;
                const double off = residual(sol.value, fy, b);
                // One evaluation after the one that was measured: ‖I − Q‖₂ ≤ 2, and √5 times that in the
                // largest of 5 channels; 2.6e-4.
                CHECK(off < 4.5e-4);
            }
        }
    }
    // Systems of both kinds have been seen.
    CHECK(20 * converged > converged + others);
    CHECK(10 * others > converged + others);
}

TEST_CASE(
    "poisoned: of thousands of systems none is said to have converged that is not at a fixed point, and each ends") {
    SUBCASE("rnn") { check_poisoned<rnn<reflections>>(200); }
    SUBCASE("rnn with a mixer that has no compact form") { check_poisoned<rnn<kronecker_after_dplr>>(200); }
    SUBCASE("mamba") { check_poisoned<mamba>(200); }
}

}  // namespace
