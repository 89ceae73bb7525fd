#include "fixed_point/tools.hpp"

#include <Eigen/Dense>

#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>

#include <doctest/doctest.h>

#include <utility>

namespace {

using namespace fprnn::testing;
using fprnn::chunked;
using fprnn::dims;
using fprnn::index;
using fprnn::layer;
using fprnn::layer_parameters;
using fprnn::neumann;
using fprnn::one_step;
using fprnn::parameter_tree;
using fprnn::tensor;
using fprnn::truncated;
using fprnn::unrolled;

/// FP-RNN as a function of the iterate, so that something else may stand in its place.
auto rnn = [](auto y, auto y_before) {
    using namespace fprnn::symbols;
    auto s = cat(in, y_before);
    auto Q = fprnn::householder<2, "Q">(s);
    auto lambda = sigmoid(fprnn::affine<"lambda">(s));
    return scan(lambda, (1 - lambda) * (Q * fprnn::linear<"B">(in) + (I - Q) * y));
};
/// FP-Mamba in the same way; b and c see y_{t−1}, Δ sees x alone.
auto mamba = [](auto y, auto y_before) {
    using namespace fprnn::symbols;
    auto s = cat(in, y_before);
    auto Q = fprnn::householder<2, "Q">(s);
    auto delta = softplus(fprnn::affine<"delta">(in));
    auto b = normalise(fprnn::linear<"b", fprnn::d_state>(s));
    auto c = normalise(fprnn::linear<"c", fprnn::d_state>(s));
    auto x_tilde = Q * fprnn::linear<"x">(in) + (I - Q) * y;
    return fprnn::layer_norm<"y_norm">(fprnn::selective_scan<"ssm">(delta, b, c, x_tilde) +
                                       fprnn::parameter<"D">() * x_tilde);
};

/// Parameters of the equation whose input is [x, y]: maps of x get columns of zeros for y, and "iterate"
/// picks y.
void widen(const parameter_tree<double>& from, const dims& size, parameter_tree<double>& to) {
    for (const auto& p : from.entries()) {
        const auto source = from[p.name];
        const auto target = to[p.name];
        if (source.shape() == target.shape()) {
            std::copy(source.begin(), source.end(), target.begin());
            continue;
        }
        REQUIRE(target.shape()[1] == source.shape()[1] + size.d_inner);
        for (index i = 0; i < source.shape()[0]; ++i)
            for (index j = 0; j < target.shape()[1]; ++j) {
                const bool is_y = j >= size.d_in && j < size.d_in + size.d_inner;
                target(i, j) = is_y ? 0.0 : source(i, j < size.d_in ? j : j - size.d_inner);
            }
    }
    const auto iterate = to["iterate"];
    for (index i = 0; i < size.d_inner; ++i)
        for (index j = 0; j < iterate.shape()[1]; ++j) iterate(i, j) = j == size.d_in + i ? 1.0 : 0.0;
}

template <class Equation>
void check(Equation equation, const dims& size) {
    using namespace fprnn::symbols;
    const index B = 2, T = 6;
    auto live = fixed_point(equation(prev, shift(prev)));
    auto y = fprnn::linear<"iterate">(in);
    layer frozen(equation(y, shift(y)));

    layer solver(live, chunked{.length = 1, .tolerance = 1e-13, .ell_max = 1000}, one_step{});
    auto theta = fprnn::init<double>(solver, size, fprnn::seed{2});
    shake(theta, 0.1);
    auto x = normal({B, T, size.d_in}, 1);
    const auto y_bar = normal({B, T, size.d_inner}, 2);
    const auto solved = solver(theta, x);
    REQUIRE(solved.all_converged());

    const dims wide{size.d_in + size.d_inner, size.d_inner, size.d_state};
    auto wide_theta = fprnn::init<double>(frozen, wide);
    const auto f = [&] {
        widen(theta, size, wide_theta);
        tensor<double> both({B, T, wide.d_in});
        for (index i = 0; i < B * T; ++i) {
            std::copy_n(x.data() + i * size.d_in, size.d_in, both.data() + i * wide.d_in);
            std::copy_n(solved.value.data() + i * size.d_inner, size.d_inner, both.data() + i * wide.d_in + size.d_in);
        }
        return frozen(wide_theta, both).value;
    };
    REQUIRE(distance(f(), solved.value) <= 1e-12 * largest(solved.value));
    const differences expected = by_differences(theta, x, y_bar, f);

    double worst = 0, between = 0;
    const auto of_sequential = differentiate(solver, theta, x, y_bar);
    for (const index C : {index{1}, index{2}, index{5}, fprnn::whole_sequence}) {
        CAPTURE(C);
        solver.schedule.length = C;
        const auto got = differentiate(solver, theta, x, y_bar);
        const auto e = compare(got, expected);
        CAPTURE(e.where);
        CHECK(e.worst <= 1e-7);
        CHECK(compare(got, of_sequential).worst <= 1e-10);
        worst = larger(worst, e.worst);
        between = larger(between, compare(got, of_sequential).worst);
    }
    solver.adjoint = fprnn::implicit{.tolerance = 1e-13, .ell_max = 1000};
    CHECK(compare(differentiate(solver, theta, x, y_bar), expected).worst > 1e-3);  // the test can tell them apart
    MESSAGE("one_step - differences: " << worst << "; between schedules: " << between);
}

TEST_CASE("one_step: it is the vjp of one application of f with y* held, for every schedule, FP-RNN") {
    check(rnn, {.d_in = 4, .d_inner = 5});
}

TEST_CASE("one_step: it is the vjp of one application of f with y* held, for every schedule, FP-Mamba") {
    check(mamba, {.d_in = 4, .d_inner = 5, .d_state = 3});
}

using vector = Eigen::VectorXd;

/// One application of an equation to a chunk, (x, y, h_{−1}, y_{−1}, θ) ↦ (f, h). It hands on h beside its
/// last y.
template <class Frozen>
struct application {
    Frozen frozen;
    layer_parameters<double> theta;
    dims size, wide{size.d_in + size.d_inner, size.d_inner, size.d_state};
    layer_parameters<double> at_z = theta, wide_theta = fprnn::init<double>(frozen, wide);
    index states = frozen.carry_width(wide) - size.d_inner;
    index y_at = find_y();  ///< where y_{−1} stands in the carry

    /// Where the parts of the argument begin, and its length.
    struct places {
        index y, h, y_before, theta, all;
    };
    places of(index tokens) const {
        const index y = tokens * size.d_in, h = y + tokens * size.d_inner, before = h + states,
                    theta_at = before + size.d_inner;
        return {y, h, before, theta_at, theta_at + theta.size()};
    }
    vector operator()(index tokens, const vector& z) {
        const auto got = solve(tokens, z);
        vector out(got.value.size() + states);
        std::copy_n(got.value.data(), got.value.size(), out.data());
        index to = got.value.size();
        for (index i = 0; i < got.carry.size(); ++i)
            if (i < y_at || i >= y_at + size.d_inner) out[to++] = got.carry[i];
        return out;
    }
    Eigen::MatrixXd jacobian(index tokens, vector z) {
        Eigen::MatrixXd J(tokens * size.d_inner + states, z.size());
        constexpr double h = 3e-4;
        for (index i = 0; i < z.size(); ++i) {
            const double middle = z[i];
            const auto at = [&](double x) {
                z[i] = x;
                return (*this)(tokens, z);
            };
            J.col(i) = (8 * (at(middle + h) - at(middle - h)) - (at(middle + 2 * h) - at(middle - 2 * h))) / (12 * h);
            z[i] = middle;
        }
        return J;
    }

private:
    fprnn::solution<double> solve(index tokens, const vector& z) {
        const places p = of(tokens);
        std::copy_n(z.data() + p.theta, theta.size(), at_z.data());
        widen(at_z, size, wide_theta);
        tensor<double> both({1, tokens, wide.d_in}), carry({1, states + size.d_inner});
        for (index t = 0; t < tokens; ++t) {
            std::copy_n(z.data() + t * size.d_in, size.d_in, both.data() + t * wide.d_in);
            std::copy_n(z.data() + p.y + t * size.d_inner, size.d_inner, both.data() + t * wide.d_in + size.d_in);
        }
        std::copy_n(z.data() + p.h, y_at, carry.data());
        std::copy_n(z.data() + p.y_before, size.d_inner, carry.data() + y_at);
        std::copy_n(z.data() + p.h + y_at, states - y_at, carry.data() + y_at + size.d_inner);
        return frozen(wide_theta, both, carry);
    }
    index find_y() {
        y_at = 0;
        vector z = vector::Constant(of(1).all, 0.5);
        std::copy_n(theta.data(), theta.size(), z.data() + of(1).theta);
        const auto carry = solve(1, z).carry;
        while (carry[y_at] != 0.5) ++y_at;
        return y_at;
    }
};

/// A sequence x [T·d_in] whose chunks take L iterations each, with the Jacobian of each of them.
template <class Frozen>
class by_definition {
    struct chunk {
        index first, tokens;
        std::vector<Eigen::MatrixXd> J;  ///< at y⁰ = 0 first
    };
    application<Frozen> f;
    index T;
    std::vector<chunk> chunks;

public:
    by_definition(const application<Frozen>& of, index C, int L, const tensor<double>& x) : f(of), T(x.shape()[1]) {
        const index D = f.size.d_inner;
        vector h = vector::Zero(f.states), y_before = vector::Zero(D);
        for (index t = 0; t < T; t += C) {
            chunk c{t, std::min(C, T - t), {}};
            const auto at = f.of(c.tokens);
            vector z = vector::Zero(at.all), out;
            z.head(at.y) = Eigen::Map<const vector>(x.data() + t * f.size.d_in, at.y);
            z.segment(at.h, f.states) = h;
            z.segment(at.y_before, D) = y_before;
            z.tail(f.theta.size()) = Eigen::Map<const vector>(f.theta.data(), f.theta.size());
            for (int ell = 0; ell < L; ++ell) {
                if (ell > 0) z.segment(at.y, c.tokens * D) = out.head(c.tokens * D);
                c.J.push_back(f.jacobian(c.tokens, z));
                out = f(c.tokens, z);
            }
            h = out.tail(f.states);
            y_before = out.segment((c.tokens - 1) * D, D);
            chunks.push_back(std::move(c));
        }
    }

    /// What the definition of `how` sends back to x and θ, one after the other.
    vector gradient(const fprnn::adjoint& how, const tensor<double>& y_bar) const {
        const index D = f.size.d_inner, d = f.size.d_in;
        vector x_bar = vector::Zero(T * d), theta_bar = vector::Zero(f.theta.size());
        vector delta = Eigen::Map<const vector>(y_bar.data(), T * D), h_bar = vector::Zero(f.states);
        for (auto c = chunks.rbegin(); c != chunks.rend(); ++c) {
            const auto at = f.of(c->tokens);
            const index n = c->tokens * D;
            const vector own = delta.segment(c->first * D, n), nothing = vector::Zero(f.states);
            const auto back = [&](const Eigen::MatrixXd& J, const vector& w, const vector& later) {
                vector both(n + f.states);
                both << w, later;
                return vector(J.transpose() * both);
            };
            const auto take = [&](const vector& z_bar) {
                x_bar.segment(c->first * d, at.y) += z_bar.head(at.y);
                theta_bar += z_bar.tail(f.theta.size());
            };
            const auto pass = [&](const vector& z_bar) {
                if (c->first > 0) delta.segment((c->first - 1) * D, D) += z_bar.segment(at.y_before, D);
            };
            vector w = own, before = nothing;
            if (const auto* t = std::get_if<truncated>(&how)) {
                for (std::size_t i = 0; i < c->J.size() && static_cast<int>(i) <= t->k; ++i) {
                    const vector z_bar = back(c->J[c->J.size() - 1 - i], w, i == 0 ? h_bar : nothing);
                    take(z_bar);
                    if (static_cast<int>(i) < t->k) pass(z_bar);
                    before += z_bar.segment(at.h, f.states);
                    w = z_bar.segment(at.y, n);
                }
            } else {
                const int k = std::get<neumann>(how).k;
                for (int terms = 1; terms < k; ++terms) {
                    const vector z_bar = back(c->J.back(), w, h_bar);
                    w = own + z_bar.segment(at.y, n);
                    if (terms + 1 == k) pass(z_bar);
                }
                const vector z_bar = back(c->J.back(), w, h_bar);
                take(z_bar);
                before = z_bar.segment(at.h, f.states);
            }
            h_bar = before;
        }
        vector all(x_bar.size() + theta_bar.size());
        all << x_bar, theta_bar;
        return all;
    }
};

/// What of a gradient its definition does not explain, beside the largest entry.
double off(const differentiated<double>& got, const vector& expected) {
    vector all(expected.size());
    all << Eigen::Map<const vector>(got.x_bar.data(), got.x_bar.size()),
        Eigen::Map<const vector>(got.theta_bar.data(), got.theta_bar.size());
    return (all - expected).lpNorm<Eigen::Infinity>() / expected.lpNorm<Eigen::Infinity>();
}

template <class Equation>
void check_definitions(Equation equation, const dims& size) {
    using namespace fprnn::symbols;
    const index T = 5;
    const int L = 4;
    layer l(fixed_point(equation(prev, shift(prev))));
    auto y = fprnn::linear<"iterate">(in);
    auto theta = fprnn::init<double>(l, size, fprnn::seed{2});
    shake(theta, 0.3);
    const auto x = normal({1, T, size.d_in}, 1), y_bar = normal({1, T, size.d_inner}, 2);
    const application<layer<decltype(equation(y, shift(y)))>> f{layer(equation(y, shift(y))), theta, size};

    double worst = 0, nearest = 1;
    for (const index C : {index{1}, index{2}, T}) {
        CAPTURE(C);
        l.schedule = {.length = C, .tolerance = 1e-300, .ell_max = L};
        const by_definition definition(f, C, L, x);
        std::vector<differentiated<double>> all;
        for (const fprnn::adjoint& how :
             {fprnn::adjoint(truncated{1}), fprnn::adjoint(truncated{2}), fprnn::adjoint(truncated{L - 1}),
              fprnn::adjoint(truncated{L}), fprnn::adjoint(neumann{2}), fprnn::adjoint(neumann{4})}) {
            CAPTURE(all.size());
            l.adjoint = how;
            const vector expected = definition.gradient(how, y_bar);
            for (const double error : {off(differentiate(l, theta, x, y_bar, fprnn::reference{}), expected),
                                       off(differentiate(l, theta, x, y_bar, fprnn::eigen{1}), expected)}) {
                CHECK(error <= 1e-8);
                worst = larger(worst, error);
            }
            const auto got = differentiate(l, theta, x, y_bar);
            // One chunk has no chunk before, which is all that the last two truncations differ in.
            for (std::size_t i = 0; i < all.size(); ++i)
                if (C < T || i != 2 || all.size() != 3) nearest = std::min(nearest, compare(got, all[i]).worst);
            all.push_back(got);
        }
    }
    MESSAGE("gradient - its definition: " << worst << "; two of them differ by " << nearest << " or more");
    CHECK(nearest > 1e-4);
}

TEST_CASE("truncated and neumann: they are what their definitions say, for every schedule, FP-RNN") {
    check_definitions(rnn, {.d_in = 4, .d_inner = 5});
}

TEST_CASE("truncated and neumann: they are what their definitions say, for every schedule, FP-Mamba") {
    check_definitions(mamba, {.d_in = 4, .d_inner = 5, .d_state = 3});
}

/// Gradients of an equation in T, whose sequences take different numbers of iterations.
template <class T>
void check_limits() {
    using namespace fprnn::symbols;
    const dims size{.d_in = 4, .d_inner = 5};
    layer l(fixed_point(rnn(prev, shift(prev))));
    auto theta = fprnn::init<T>(l, size, fprnn::seed{2});
    shake(theta, 0.3);
    auto x = normal<T>({3, 7, size.d_in}, 1);
    for (index i = 0; i < x.size() / 3; ++i) x[i] *= T(1e-3);
    const auto y_bar = normal<T>({3, 7, size.d_inner}, 2);
    const auto same = [](const differentiated<T>& a, const differentiated<T>& b) {
        return same_bits(a.x_bar, b.x_bar) && same_bits(a.theta_bar, b.theta_bar);
    };
    for (const index C : {index{1}, index{3}, fprnn::whole_sequence}) {
        CAPTURE(C);
        l.schedule = {.length = C, .tolerance = 1e-3, .ell_max = 50};
        const auto by = [&](const fprnn::adjoint& how, auto backend) {
            l.adjoint = how;
            return differentiate(l, theta, x, y_bar, backend);
        };
        const auto check = [&](auto backend) {
            const auto once = by(one_step{}, backend);
            CHECK(same(by(truncated{0}, backend), once));
            CHECK(same(by(neumann{1}, backend), once));
            CHECK_FALSE(same(by(neumann{2}, backend), once));
            const int most = *std::max_element(once.sol.iterations.begin(), once.sol.iterations.end());
            REQUIRE(*std::min_element(once.sol.iterations.begin(), once.sol.iterations.end()) < most);
            const auto all = by(unrolled{}, backend);
            CHECK_FALSE(same(by(truncated{most - 2}, backend), all));
            CHECK(same(by(truncated{most}, backend), all));
            CHECK(same(by(truncated{std::numeric_limits<int>::max()}, backend), all));
            CHECK(all.adjoint.all_converged());
            CHECK(all.bytes == once.bytes);  // a record is the same whoever reads it
            CHECK(by(truncated{2}, backend).bytes == once.bytes);
        };
        check(fprnn::reference{});
        check(fprnn::eigen{2});
    }
}

TEST_CASE("truncated{0} and neumann{1} are one_step, and truncated{ℓ*} is unrolled, to the bit, in double") {
    check_limits<double>();
}

TEST_CASE("truncated{0} and neumann{1} are one_step, and truncated{ℓ*} is unrolled, to the bit, in float") {
    check_limits<float>();
}

TEST_CASE("neumann: many terms are the implicit gradient, a carry and what a gradient is added to included") {
    using namespace fprnn::symbols;
    const dims size{.d_in = 4, .d_inner = 5};
    layer l(fixed_point(rnn(prev, shift(prev))));
    auto theta = fprnn::init<double>(l, size, fprnn::seed{2});
    shake(theta, 0.1);
    const auto x = normal({2, 6, size.d_in}, 1), y_bar = normal({2, 6, size.d_inner}, 2);
    for (const index C : {index{1}, index{4}, fprnn::whole_sequence}) {
        CAPTURE(C);
        l.schedule = {.length = C, .tolerance = 1e-13, .ell_max = 1000};
        const auto carry = l(theta, normal({2, 3, size.d_in}, 3)).carry;
        const auto twice = [&](const fprnn::adjoint& how) {
            l.adjoint = how;
            fprnn::eigen backend{1};
            decltype(l)::record<double> kept;
            differentiated<double> r;
            r.sol = l.run<double>(size, theta.data(), x.view(), carry.view(), backend, &kept);
            REQUIRE(r.sol.all_converged());
            r.x_bar = tensor<double>(x.shape());
            r.theta_bar = theta.zeros_like();
            const auto back = [&] {
                l.back<double>(kept, x.view(), y_bar.view(), r.x_bar.view(), r.theta_bar.data(), backend);
            };
            back();
            const auto once = r;
            back();
            auto sum = once;
            for (double& a : sum.x_bar) a *= 2;
            for (double& a : sum.theta_bar) a *= 2;
            CHECK(same_bits(r.x_bar, sum.x_bar));
            CHECK(same_bits(r.theta_bar, sum.theta_bar));
            return r;
        };
        const auto exact = twice(fprnn::implicit{.tolerance = 1e-13, .ell_max = 1000});
        CHECK(compare(twice(neumann{400}), exact).worst <= 1e-10);
        CHECK(compare(twice(truncated{400}), exact).worst <= 1e-10);
        // Near the fixed point the iterates of a truncation are y*.
        const double apart = compare(twice(truncated{2}), twice(neumann{3})).worst;
        CHECK(apart <= 1e-10);
        CHECK(compare(twice(neumann{3}), exact).worst > 1e-4);
    }
}

TEST_CASE("adjoint: a record gives the same gradient again, also where iterates are few and far from y*") {
    using namespace fprnn::symbols;
    const dims size{.d_in = 4, .d_inner = 5, .d_state = 3};
    layer l(fixed_point(mamba(prev, shift(prev))));
    auto theta = fprnn::init<double>(l, size, fprnn::seed{2});
    shake(theta, 0.3);
    const auto x = normal({2, 6, size.d_in}, 1), y_bar = normal({2, 6, size.d_inner}, 2);
    for (const index C : {index{1}, index{4}, fprnn::whole_sequence})
        for (const fprnn::adjoint& how :
             {fprnn::adjoint(one_step{}), fprnn::adjoint(fprnn::implicit{}), fprnn::adjoint(neumann{3}),
              fprnn::adjoint(truncated{1}), fprnn::adjoint(truncated{2}), fprnn::adjoint(unrolled{})}) {
            CAPTURE(C);
            CAPTURE(how.index());
            l.schedule = {.length = C, .tolerance = 1e-300, .ell_max = 4};
            l.adjoint = how;
            fprnn::eigen backend{1};
            decltype(l)::record<double> kept;
            (void)l.run<double>(size, theta.data(), x.view(), {}, backend, &kept);
            const auto back = [&] {
                std::pair bars(tensor<double>(x.shape()), theta.zeros_like());
                l.back<double>(kept, x.view(), y_bar.view(), bars.first.view(), bars.second.data(), backend);
                return bars;
            };
            const auto once = back(), again = back();
            // Tokens in R numbers leave other roundings than the iterations that are repeated.
            CHECK(distance(once.first, again.first) <= 1e-14 * largest(once.first));
            CHECK(distance(once.second, again.second) <= 1e-14 * largest(once.second));
        }
}

/// The gradient of a loss in another unit is the gradient in that unit, and takes as many applications.
template <class Layer>
void check_units(const Layer& l, const layer_parameters<float>& theta) {
    const auto x = normal<float>({3, 12, 6}, 1), y_bar = normal<float>({3, 12, l.output_width(theta.widths)}, 2);
    const auto expected = differentiate(l, theta, x, y_bar);
    REQUIRE(expected.adjoint.all_converged());
    for (const float unit : {0x1p-20F, 0x1p24F, 0x1p28F, 0x1p40F, 0x1p60F, 0x1p76F}) {
        CAPTURE(unit);
        auto scaled = y_bar;
        for (float& v : scaled) v *= unit;
        auto got = differentiate(l, theta, x, scaled);
        REQUIRE(got.adjoint.all_converged());
        for (std::size_t i = 0; i < got.adjoint.iterations.size(); ++i)
            CHECK(got.adjoint.iterations[i] <= expected.adjoint.iterations[i] + 2);
        for (float& v : got.x_bar) v /= unit;
        for (float& v : got.theta_bar) v /= unit;
        CHECK(distance(got.x_bar, expected.x_bar) <= 2e-5 * largest(expected.x_bar));
        CHECK(distance(got.theta_bar, expected.theta_bar) <= 2e-5 * largest(expected.theta_bar));
    }
}
TEST_CASE_TEMPLATE("implicit: the gradient of a loss in another unit is the gradient in that unit", Model,
                   decltype(fprnn::models::fp_rnn<2>()), decltype(fprnn::models::fp_mamba<2>()),
                   decltype(fprnn::models::fp_rnn(fprnn::kronecker)),
                   decltype(fprnn::models::fp_mamba(fprnn::kronecker))) {
    const layer l(Model{}, chunked{.length = 1, .tolerance = 1e-6, .ell_max = 1000});
    check_units(l, fprnn::init<float>(l, {.d_in = 6, .d_inner = 6, .d_state = 3}, fprnn::seed{2}));
}
TEST_CASE("implicit: the same of an iteration that does not contract") {
    using namespace fprnn::symbols;
    const auto lambda = sigmoid(fprnn::affine<"lambda">(in));
    const auto f = fixed_point(scan(lambda, (1 - lambda) * (fprnn::linear<"B">(in) - fprnn::constant<9, 5>() * prev)));
    const layer l(f, fprnn::method{.schedule = {.length = 1},
                                   .solver = fprnn::anderson{},
                                   .stop = fprnn::residual{1e-6} || fprnn::iterations{500}});
    auto theta = fprnn::init<float>(l, {.d_in = 6, .d_inner = 8}, fprnn::seed{2});
    for (float& bias : theta["lambda.bias"]) bias = -1;
    check_units(l, theta);
}

TEST_CASE(
    "truncated and neumann: a number of terms that is none is refused, when the layer is made and when it is called") {
    using namespace fprnn::symbols;
    const auto f = rnn(prev, shift(prev));
    CHECK_THROWS_WITH_AS(fprnn::fixed_point(f, {}, truncated{-1}), "truncated: k must be at least 0, got -1",
                         fprnn::argument_error);
    layer l(fixed_point(f));
    const auto theta = fprnn::init<double>(l, {.d_in = 4, .d_inner = 5});
    l.adjoint = neumann{0};
    CHECK_THROWS_WITH_AS(l(theta, tensor<double>({1, 2, 4})), "neumann: k must be at least 1, got 0",
                         fprnn::argument_error);
}

}  // namespace
