#include "tools.hpp"

#include <sanitized.hpp>

#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>
#include <fprnn/models/lstm.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <type_traits>
#include <vector>

namespace {

using namespace fprnn::symbols;
using namespace fprnn::testing;
using fprnn::index;
using fprnn::linear;
using fprnn::tensor;
using fprnn::view;

constexpr fprnn::dims sizes{.d_in = 4, .d_inner = 6, .d_state = 3, .d_out = 5};
constexpr index B = 19;

index at(const std::vector<index>& n, index b) { return n[static_cast<std::size_t>(b)]; }

/// B lengths of [0,T] in two tiles, of which the second one has shorter sequences. In chunks of several
/// tokens none ends with a chunk of which it has one token: alone, that would be a chunk of one token, which
/// is solved in another way.
std::vector<index> make_lengths(index T, index C) {
    std::vector<index> n{7, 3, 0, 5, 1, 6, 2, 7, 4, 0, 3, 5, 7, 2, 6, 1, 4, 0, 5};
    for (index& each : n) {
        each = each * T / 7;
        if (C > 1 && each % std::min(C, T) == 1 && each < T) ++each;
    }
    return n;
}

/// What a batch holds, and what comes back to it.
template <class Number>
struct batch {
    tensor<Number> x, y_bar, carry, carry_bar;
};
template <class Number, class Layer>
batch<Number> make_batch(const Layer& l, index T) {
    return {normal<Number>({B, T, sizes.d_in}, 1), normal<Number>({B, T, l.output_width(sizes)}, 2),
            normal<Number>({B, l.carry_width(sizes)}, 3, 0.3), normal<Number>({B, l.carry_width(sizes)}, 4)};
}
/// Behind the ends stands what nobody may look at.
template <class Number>
tensor<Number> spoilt_behind(tensor<Number> x, const std::vector<index>& n) {
    for (index b = 0; b < x.shape()[0]; ++b)
        for (index t = at(n, b); t < x.shape()[1]; ++t)
            for (index d = 0; d < x.shape()[2]; ++d) x(b, t, d) = std::numeric_limits<Number>::quiet_NaN();
    return x;
}

template <class Number>
struct result {
    fprnn::solution<Number> sol;
    tensor<Number> x_bar, carry_bar;
    fprnn::parameter_tree<Number> theta_bar;
    fprnn::convergence adjoint;
};
template <class Layer, class Number, class Backend = fprnn::eigen>
result<Number> there_and_back(const Layer& l, const fprnn::layer_parameters<Number>& theta, const batch<Number>& of,
                              const std::vector<index>& n = {}, Backend backend = Backend()) {
    typename Layer::template record<Number, Backend> kept;
    result<Number> r;
    r.sol = l.template run<Number>(theta.widths, theta.data(), of.x.view(), of.carry.view(), backend, &kept, n);
    r.x_bar = tensor<Number>(of.x.shape());
    r.carry_bar = tensor<Number>(of.carry.shape());
    r.theta_bar = theta.zeros_like();
    l.template back<Number>(kept, of.x.view(), of.y_bar.view(), r.x_bar.view(), r.theta_bar.data(), backend,
                            {of.carry_bar.view(), r.carry_bar.view()});
    r.adjoint = *kept.adjoint_convergence;
    return r;
}

bool same_convergence(const fprnn::convergence& a, const fprnn::convergence& b, index sequence) {
    const auto i = static_cast<std::size_t>(sequence);
    return a.status[i] == b.status[i] && a.iterations[i] == b.iterations[i] &&
           a.total_iterations[i] == b.total_iterations[i] && a.residual[i] == b.residual[i] &&
           a.tokens_converged[i] == b.tokens_converged[i];
}

/// Those of the batch's sequences that are L tokens long, among others that are, too: of these, nothing comes
/// back.
template <class Number>
batch<Number> alike(const batch<Number>& whole, const std::vector<index>& n, index L) {
    batch<Number> of{tokens(whole.x, 0, L), tokens(whole.y_bar, 0, L), whole.carry, whole.carry_bar};
    for (tensor<Number>* a : {&of.y_bar, &of.carry_bar})
        for (index b = 0; b < B; ++b)
            if (at(n, b) != L) std::fill_n(a->data() + b * (a->size() / B), a->size() / B, Number(0));
    return of;
}

/// Every sequence of a ragged batch has the bits that it has among sequences as long as itself, and the
/// parameters receive the same.
template <class Number, class Layer>
void check_bits(const Layer& l, index T) {
    auto theta = fprnn::init<Number>(l, sizes, fprnn::seed{3});
    shake(theta, 0.1);
    const auto n = make_lengths(T, l.schedule.length);
    const auto whole = make_batch<Number>(l, T);
    auto ragged = whole;
    ragged.x = spoilt_behind(whole.x, n);
    ragged.y_bar = spoilt_behind(whole.y_bar, n);
    const auto got = there_and_back(l, theta, ragged, n);
    auto sum = theta.zeros_like();
    for (index L = 0; L <= T; ++L) {
        if (std::find(n.begin(), n.end(), L) == n.end()) continue;
        CAPTURE(L);
        const auto alone = there_and_back(l, theta, alike(whole, n, L));
        for (index i = 0; i < sum.size(); ++i) sum.data()[i] += alone.theta_bar.data()[i];
        for (index b = 0; b < B; ++b) {
            if (at(n, b) != L) continue;
            CAPTURE(b);
            const auto part = [b](const tensor<Number>& a, index first, index count) {
                return tokens(sequences(a, b, 1), first, count);
            };
            CHECK(largest(part(got.sol.value, L, T - L)) == 0);
            CHECK(largest(part(got.x_bar, L, T - L)) == 0);
            CHECK(same_bits(part(got.sol.value, 0, L), part(alone.sol.value, 0, L)));
            CHECK(same_bits(part(got.x_bar, 0, L), part(alone.x_bar, 0, L)));
            CHECK(same_bits(sequences(got.sol.carry, b, 1), sequences(alone.sol.carry, b, 1)));
            CHECK(same_bits(sequences(got.carry_bar, b, 1), sequences(alone.carry_bar, b, 1)));
            CHECK(same_convergence(got.sol, alone.sol, b));
            if (L > 0) CHECK(same_convergence(got.adjoint, alone.adjoint, b));
        }
    }
    CHECK(largest(sum) > 0);
    CHECK(distance(got.theta_bar, sum) < (std::is_same_v<Number, double> ? 1e-14 : 1e-5) * largest(sum));
}

const std::vector<fprnn::adjoint> adjoints{fprnn::implicit{}, fprnn::one_step{}, fprnn::unrolled{}, fprnn::truncated{2},
                                           fprnn::neumann{3}};

template <class Expression>
void check(Expression expression) {
    for (const index C : {index{1}, index{3}, fprnn::whole_sequence}) {
        CAPTURE(C);
        for (const auto& adjoint : adjoints) {
            CAPTURE(adjoint.index());
            const fprnn::layer l(expression, {.length = C, .tolerance = 1e-4, .ell_max = 60}, adjoint);
            check_bits<float>(l, 7);
            check_bits<double>(l, 7);
        }
        // States are kept every 16 tokens, and recomputed.
        check_bits<double>(fprnn::layer(expression, {.length = C, .tolerance = 1e-4, .ell_max = 60}), 35);
    }
}

/// A recurrence whose one-token chunks are opened, between two scans.
auto opened() {
    const auto s = cat(in, shift(prev));
    const auto v = linear<"v">(in) + fprnn::constant<1, 4>() * prev;
    const auto S = fprnn::selective_scan<"ssm">(softplus(fprnn::affine<"delta">(s)), linear<"b", fprnn::d_state>(in),
                                                linear<"c", fprnn::d_state>(s), v);
    const auto y = fixed_point(fprnn::constant<1, 3>() * tanh(S));
    return scan(sigmoid(linear<"l">(shift(in))), y + scan(sigmoid(linear<"m">(in)), linear<"n">(in)));
}
auto gated_delta() {
    const auto s = cat(in, shift(prev));
    const auto delta = fprnn::gated_delta(
        sigmoid(fprnn::affine<"alpha", fprnn::fixed_width<2>>(s)), normalise(linear<"k", fprnn::fixed_width<4>>(s)),
        linear<"v">(in) + fprnn::constant<1, 4>() * prev, sigmoid(fprnn::affine<"beta", fprnn::fixed_width<2>>(s)),
        linear<"q", fprnn::fixed_width<4>>(s));
    return linear<"out", fprnn::d_out>(fixed_point(fprnn::constant<1, 3>() * delta));
}

/// Behind an end the first stops, so that the second reads zeros there.
auto two_fixed_points() {
    const auto third = fprnn::constant<1, 3>();
    const auto y1 = fixed_point(third * tanh(linear<"a">(cat(in, shift(prev), prev))));
    const auto lambda = sigmoid(linear<"lambda">(y1));
    const auto y2 = fixed_point(
        scan(lambda, (1 - lambda) * (linear<"b">(cat(y1, shift(y1), shift(prev))) + third * sigmoid(prev) * y1)));
    return linear<"out">(cat(y2, shift(y1)));
}

TEST_CASE("lengths: a sequence of a ragged batch has the bits that it has alone: FP-RNN") {
    check(fprnn::models::fp_rnn<2>());
}
TEST_CASE("lengths: a sequence of a ragged batch has the bits that it has alone: FP-Mamba") {
    check(fprnn::models::fp_mamba<2>());
}
TEST_CASE("lengths: a sequence of a ragged batch has the bits that it has alone: the gated delta rule") {
    check(gated_delta());
}
TEST_CASE("lengths: a sequence of a ragged batch has the bits that it has alone: an opened recurrence and scans") {
    check(opened());
}
TEST_CASE("lengths: a sequence of a ragged batch has the bits that it has alone: a map of y_t, and shifts") {
    const auto y = fixed_point(tanh(fprnn::constant<1, 4>() * linear<"W">(prev) + fprnn::affine<"b">(in)));
    check(linear<"out", fprnn::d_out>(cat(y, shift(y), shift(in))));
}
TEST_CASE("lengths: a sequence of a ragged batch has the bits that it has alone: what is explicit") {
    check(fprnn::models::lstm());
}
TEST_CASE("lengths: a sequence of a ragged batch has the bits that it has alone: fixed points that read each other") {
    check(two_fixed_points());
}
TEST_CASE("lengths: a sequence of a ragged batch has the bits that it has alone: without a fixed point") {
    const auto h = scan(sigmoid(linear<"l">(in)), linear<"u">(cat(in, shift(in))));
    const fprnn::layer l(linear<"out", fprnn::d_out>(cat(shift(h), rms_norm<"norm">(h))));
    check_bits<float>(l, 7);
    check_bits<double>(l, 35);
}

TEST_CASE("lengths: solvers, stops and adjoints of one's own see a sequence's own tokens alone") {
    const auto expression = fprnn::models::fp_mamba<2>();
    for (const index C : {index{1}, index{3}, fprnn::whole_sequence}) {
        CAPTURE(C);
        const fprnn::chunked schedule{.length = C, .tolerance = 1e-4, .ell_max = 60};
        const auto small_step = [](const fprnn::iteration& now) { return now.step < 1e-3; };
        const auto forty_times = [](fprnn::adjoint_chunk& w) {
            for (int i = 0; i < 40; ++i) w.apply(0.9);
        };
        check_bits<double>(fprnn::layer(expression, {.schedule = schedule, .solver = fprnn::anderson{}}), 7);
        check_bits<double>(
            fprnn::layer(expression, {.schedule = schedule, .solver = fprnn::damped{.start = 0.8, .patience = 2}}), 7);
        check_bits<double>(fprnn::layer(expression, {.schedule = schedule, .stop = fprnn::stop(small_step)}), 7);
        // Its applications do not end sequence by sequence, and so count nothing.
        check_bits<double>(fprnn::layer(expression, {.schedule = schedule, .adjoint = fprnn::own_adjoint(forty_times)}),
                           7);
    }
}

TEST_CASE("lengths: a share of a batch is one of the sequences that have not ended") {
    const fprnn::layer l(fprnn::models::fp_rnn<2>(),
                         {.schedule = {.length = 3},
                          .stop = fprnn::share{.of = 0.5, .tolerance = 1e-3} || fprnn::iterations{50},
                          .adjoint = fprnn::unrolled{}});
    const auto theta = fprnn::init<double>(l, sizes, fprnn::seed{3});
    // Of 40 sequences every other one ends with the first chunk.
    const index all = 40;
    std::vector<index> n;
    for (index b = 0; b < all; ++b) n.push_back(b % 2 == 0 ? 3 : 6);
    const auto x = normal({all, 9, sizes.d_in}, 1);
    const auto got = l(theta, spoilt_behind(x, n), n);
    const auto first = l(theta, tokens(x, 0, 3));
    tensor<double> half({all / 2, 9, sizes.d_in}), carry({all / 2, l.carry_width(sizes)});
    for (index b = 0; b < all / 2; ++b) {
        std::copy_n(x.data() + (2 * b + 1) * 9 * sizes.d_in, 9 * sizes.d_in, half.data() + b * 9 * sizes.d_in);
        std::copy_n(first.carry.data() + (2 * b + 1) * carry.shape()[1], carry.shape()[1],
                    carry.data() + b * carry.shape()[1]);
    }
    const auto second = l(theta, tokens(half, 3, 3), carry);
    for (index b = 0; b < all; ++b) {
        CAPTURE(b);
        const auto i = static_cast<std::size_t>(b);
        CHECK(same_bits(tokens(sequences(got.value, b, 1), 0, 3), sequences(first.value, b, 1)));
        if (b % 2 == 0) {
            CHECK(got.total_iterations[i] == first.total_iterations[i]);
            CHECK(same_bits(sequences(got.carry, b, 1), sequences(first.carry, b, 1)));
        } else {
            CHECK(got.total_iterations[i] == first.total_iterations[i] + second.total_iterations[i / 2]);
            CHECK(same_bits(tokens(sequences(got.value, b, 1), 3, 3), sequences(second.value, b / 2, 1)));
            CHECK(same_bits(sequences(got.carry, b, 1), sequences(second.carry, b / 2, 1)));
        }
    }
}

TEST_CASE("lengths: a tile of which no sequence has tokens hands carries on, both ways and for every adjoint") {
    const index T = 4;
    for (const auto& adjoint : adjoints)
        for (const bool together : {false, true}) {
            CAPTURE(adjoint.index());
            CAPTURE(together);
            const auto stop = together ? fprnn::stop(fprnn::share{.of = 1, .tolerance = 1e-4}) || fprnn::iterations{60}
                                       : fprnn::stop(fprnn::residual{1e-4}) || fprnn::iterations{60};
            const fprnn::layer l(opened(), {.schedule = {.length = 2}, .stop = stop, .adjoint = adjoint});
            const auto theta = fprnn::init<double>(l, sizes, fprnn::seed{3});
            const auto of = make_batch<double>(l, T);
            std::vector<index> n(B, 0);
            n[17] = 4;  // of the second tile
            const auto got = there_and_back(l, theta, of, n);
            CHECK(same_bits(sequences(got.sol.carry, 0, 17), sequences(of.carry, 0, 17)));
            CHECK(same_bits(sequences(got.carry_bar, 0, 17), sequences(of.carry_bar, 0, 17)));
            CHECK(distance(sequences(got.carry_bar, 17, 1), sequences(of.carry_bar, 17, 1)) > 0);
            CHECK(got.sol.total_iterations[16] == 0);
            CHECK(got.sol.total_iterations[17] > 0);
            CHECK(got.sol.tokens_converged[17] == 4);
        }
}

TEST_CASE("lengths: what would grow without bounds behind the ends reaches nothing") {
    // Where x is zero, a gate is open that the sequences' own tokens close, so far that their iterations are
    // many.
    const auto gate = fprnn::constant<1000000>() * sigmoid(linear<"g">(in));
    const auto y = fixed_point(gate * (linear<"W">(prev) + linear<"V">(shift(prev))) + fprnn::affine<"b">(in));
    const auto without_maps = fixed_point(gate * shift(prev) + fprnn::affine<"b">(in));
    const auto check_growth = [](const auto& expression) {
        for (const index C : {index{1}, index{3}, fprnn::whole_sequence})
            for (const auto& adjoint : adjoints) {
                CAPTURE(C);
                CAPTURE(adjoint.index());
                const fprnn::layer l(expression, {.length = C, .tolerance = 1e-30, .ell_max = 40}, adjoint);
                auto theta = fprnn::init<float>(l, sizes, fprnn::seed{3});
                shake(theta, 0.1);
                for (float& weight : theta["g"]) weight = 1;
                const auto n = make_lengths(35, C);
                auto of = make_batch<float>(l, 35);
                for (index i = 0; i < of.x.size(); ++i) of.x[i] = -3.6F - std::abs(of.x[i]) / 10;
                of.x = spoilt_behind(of.x, n);
                const auto got = there_and_back(l, theta, of, n);
                for (const fprnn::status each : got.sol.status)
                    CHECK((each == fprnn::status::converged || each == fprnn::status::max_iterations));
                CHECK(std::isfinite(largest(got.sol.value)));
                CHECK(distance(got.sol.value, got.sol.value) == 0);
                CHECK(distance(got.x_bar, got.x_bar) == 0);
                CHECK(distance(got.carry_bar, got.carry_bar) == 0);
                CHECK(distance(got.theta_bar, got.theta_bar) == 0);
                CHECK(std::isfinite(largest(got.theta_bar)));
                CHECK(largest(got.theta_bar) > 0);
            }
    };
    check_growth(y);
    check_growth(without_maps);
    check_growth(scan(gate, fprnn::affine<"b">(in)));
}

TEST_CASE(
    "lengths: a last chunk of one token is another solve of the same fixed point where its chunk could have more") {
    for (const index C : {index{3}, fprnn::whole_sequence}) {
        const fprnn::layer l(fprnn::models::fp_mamba<2>(), {.length = C, .tolerance = 1e-13, .ell_max = 2000},
                             fprnn::implicit{.tolerance = 1e-13, .ell_max = 2000});
        const auto theta = fprnn::init<double>(l, sizes, fprnn::seed{3});
        const index T = 7, L = C == 3 ? 4 : 1;
        const auto of = make_batch<double>(l, T);
        const std::vector<index> n(B, L);
        std::vector<index> longer = n;
        longer[3] = T;
        const auto alone = there_and_back(l, theta, alike(of, n, L));
        const auto got = there_and_back(l, theta, of, n), beside = there_and_back(l, theta, of, longer);
        CHECK(distance(tokens(got.sol.value, 0, L), alone.sol.value) < 1e-11 * largest(alone.sol.value));
        CHECK(distance(got.sol.carry, alone.sol.carry) < 1e-11 * largest(alone.sol.carry));
        CHECK(distance(tokens(got.x_bar, 0, L), alone.x_bar) < 1e-10 * largest(alone.x_bar));
        CHECK(distance(got.theta_bar, alone.theta_bar) < 1e-10 * largest(alone.theta_bar));
        // And of a longer neighbour it does not know.
        CHECK(same_bits(sequences(got.sol.value, 0, 3), sequences(beside.sol.value, 0, 3)));
        CHECK(same_bits(sequences(got.x_bar, 0, 3), sequences(beside.x_bar, 0, 3)));
    }
}

/// ⟨v, with⟩ of a tape, and sums of such.
fprnn::variable product(fprnn::tape<double>& t, fprnn::variable v, const tensor<double>& with, fprnn::variable more) {
    tensor<double> sum({1});
    sum[0] = t.value(more)[0];
    for (index i = 0; i < with.size(); ++i) sum[0] += t.value(v)[i] * with[i];
    return t.record(std::move(sum), [v, with, more](fprnn::tape<double>& tp, fprnn::variable self) {
        const double g = tp.bar(self)[0];
        tp.bar(more)[0] += g;
        auto& bar = tp.bar(v);
        for (index i = 0; i < with.size(); ++i) bar[i] += g * with[i];
    });
}

TEST_CASE_TEMPLATE_DEFINE("lengths: ragged windows on a tape have the gradient of central differences", Make,
                          differences) {
    const index T = 4, few = 5;
    const std::vector<index> first{4, 2, 0, 1, 3}, second{3, 0, 4, 0, 4};
    for (const index C : {index{1}, index{2}, fprnn::whole_sequence}) {
        CAPTURE(C);
        const fprnn::layer l(Make::expression(), {.length = C, .tolerance = 1e-14, .ell_max = 2000},
                             fprnn::implicit{.tolerance = 1e-14, .ell_max = 2000});
        auto theta = fprnn::init<double>(l, sizes, fprnn::seed{3});
        shake(theta, 0.1);
        const index width = l.output_width(sizes), carried = l.carry_width(sizes);
        auto x = normal({few, T, 4}, 1), x_next = normal({few, T, 4}, 2), carry = normal({few, carried}, 3, 0.3);
        const auto y_bar = normal({few, T, width}, 4), next_bar = normal({few, T, width}, 5),
                   carry_bar = normal({few, carried}, 6);
        std::vector<fprnn::variable> leaves;
        const auto record = [&](fprnn::tape<double>& t) {
            leaves = {t.leaf(tensor<double>(x)), t.leaf(tensor<double>(x_next)), t.leaf(tensor<double>(carry))};
            const auto [y, between] = l(t, sizes, "", leaves[0], first, leaves[2]);
            const auto [z, out] = l(t, sizes, "", leaves[1], second, between);
            auto loss = product(t, y, y_bar, t.leaf(tensor<double>({1})));
            loss = product(t, z, next_bar, loss);
            return product(t, out, carry_bar, loss);
        };
        fprnn::tape<double> tape(theta);
        const auto theta_bar = tape.gradient(record(tape));
        const std::vector<tensor<double>> bars{tape.bar(leaves[0]), tape.bar(leaves[1]), tape.bar(leaves[2])};
        const auto by_differences = [&](double& number) {
            const double middle = number, h = 1e-3;
            const auto at = [&](double step) {
                number = middle + step;
                fprnn::tape<double> moved(theta);
                return moved.value(record(moved))[0];
            };
            const double slope = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
            number = middle;
            return slope;
        };
        const auto check_some = [&](double* numbers, const double* bar, index count, double scale) {
            for (index i = 0; i < count; i += 1 + count / 17)
                CHECK(std::abs(by_differences(numbers[i]) - bar[i]) < 1e-8 * scale);
        };
        check_some(x.data(), bars[0].data(), x.size(), largest(bars[0]));
        check_some(x_next.data(), bars[1].data(), x_next.size(), largest(bars[1]));
        check_some(carry.data(), bars[2].data(), carry.size(), largest(bars[2]));
        check_some(theta.data(), theta_bar.data(), theta.size(), largest(theta_bar));
    }
}
struct windows_of_fp_rnn {
    static auto expression() { return fprnn::models::fp_rnn<2>(); }
};
struct windows_of_opened_tokens {
    static auto expression() { return opened(); }
};
struct windows_of_gated_delta {
    static auto expression() { return gated_delta(); }
};
TEST_CASE_TEMPLATE_INVOKE(differences, windows_of_fp_rnn, windows_of_opened_tokens, windows_of_gated_delta);

/// Long enough that threads share a tile, which holds few sequences.
template <class Expression>
void check_few(Expression expression) {
    constexpr fprnn::dims wide{.d_in = 4, .d_inner = 64, .d_state = 3, .d_out = 5};
    const index T = 330;
    const std::vector<std::vector<index>> lengths =
        FPRNN_SANITIZED
            ? std::vector<std::vector<index>>{{170, 0, 330}}
            : std::vector<std::vector<index>>{{170}, {330, 170}, {0, 300}, {170, 0, 330, 2, 290}, {2, 2, 0}};
    for (const index C : {index{160}, fprnn::whole_sequence})
        for (const fprnn::adjoint& adjoint :
             {fprnn::adjoint(fprnn::implicit{.tolerance = 1e-4, .ell_max = 9}), fprnn::adjoint(fprnn::truncated{2})})
            for (const std::vector<index>& n : lengths) {
                CAPTURE(C);
                CAPTURE(adjoint.index());
                CAPTURE(n.size());
                const fprnn::layer l(expression, {.length = C, .tolerance = 1e-3, .ell_max = 9}, adjoint);
                auto theta = fprnn::init<float>(l, wide, fprnn::seed{3});
                shake(theta, 0.1);
                const auto few = static_cast<index>(n.size()), carried = l.carry_width(wide);
                batch<float> of{normal<float>({few, T, 4}, 1), normal<float>({few, T, l.output_width(wide)}, 2),
                                normal<float>({few, carried}, 3, 0.3), normal<float>({few, carried}, 4)};
                const auto whole = of;
                of.x = spoilt_behind(of.x, n);
                const auto got = there_and_back(l, theta, of, n, fprnn::eigen(1));
                for (const int threads : {3, 2}) {
                    const auto shared = there_and_back(l, theta, of, n, fprnn::eigen(threads));
                    CHECK(same_bits(got.sol.value, shared.sol.value));
                    CHECK(same_bits(got.sol.carry, shared.sol.carry));
                    CHECK(same_bits(got.x_bar, shared.x_bar));
                    CHECK(same_bits(got.carry_bar, shared.carry_bar));
                    CHECK(same_bits(got.theta_bar, shared.theta_bar));
                    for (index b = 0; b < few; ++b) CHECK(same_convergence(got.sol, shared.sol, b));
                    if (FPRNN_SANITIZED) break;
                }
                if (FPRNN_SANITIZED) continue;  // no other memory and no other threads
                for (index b = 0; b < few; ++b) {
                    const index L = at(n, b);
                    if (L == 0) continue;
                    const batch<float> its{tokens(sequences(whole.x, b, 1), 0, L),
                                           tokens(sequences(whole.y_bar, b, 1), 0, L), sequences(whole.carry, b, 1),
                                           sequences(whole.carry_bar, b, 1)};
                    const auto alone = there_and_back(l, theta, its, {}, fprnn::eigen(2));
                    CHECK(same_bits(tokens(sequences(got.sol.value, b, 1), 0, L), alone.sol.value));
                    CHECK(same_bits(sequences(got.sol.carry, b, 1), alone.sol.carry));
                    CHECK(same_bits(tokens(sequences(got.x_bar, b, 1), 0, L), alone.x_bar));
                    CHECK(same_bits(sequences(got.carry_bar, b, 1), alone.carry_bar));
                    CHECK(got.sol.total_iterations[static_cast<std::size_t>(b)] == alone.sol.total_iterations[0]);
                    CHECK(got.sol.residual[static_cast<std::size_t>(b)] == alone.sol.residual[0]);
                }
            }
}
TEST_CASE("lengths: what is infinite for x = 0 alone sends nothing from places without a token") {
    const fprnn::layer l(exp(fprnn::affine<"g">(in)));
    auto theta = fprnn::init<float>(l, {.d_in = 1, .d_inner = 4});
    for (int i = 0; i < 4; ++i) theta["g"].data()[i] = -120, theta["g.bias"].data()[i] = 120;
    const auto gradient = [&](index sequences, index T, const std::vector<index>& n) {
        batch<float> of{tensor<float>({sequences, T, 1}), tensor<float>({sequences, T, 4}), {}, {}};
        of.x.fill(1), of.y_bar.fill(1);
        return there_and_back(l, theta, of, n).theta_bar;
    };
    for (const auto& [got, tokens] :
         {std::pair(gradient(1, 2, {}), 2), std::pair(gradient(2, 3, {2, 3}), 5), std::pair(gradient(2, 3, {0, 3}), 3)})
        for (int i = 0; i < 4; ++i) {
            CHECK(got["g"].data()[i] == static_cast<float>(tokens));
            CHECK(got["g.bias"].data()[i] == static_cast<float>(tokens));
        }
}

TEST_CASE("lengths: one sequence and few have the bits that they have alone, with any number of threads") {
    check_few(fprnn::models::fp_rnn<2>());
    check_few(fprnn::models::fp_mamba<2>());
    check_few(gated_delta());
    check_few(opened());
    check_few(two_fixed_points());
}

TEST_CASE(
    "lengths: without a tape and on it, from a carry or none, with any number of threads, a batch has one value") {
    const fprnn::layer l(fprnn::models::fp_mamba<2>());
    const auto theta = fprnn::init<double>(l, sizes, fprnn::seed{3});
    const auto n = make_lengths(7, 1);
    const auto of = make_batch<double>(l, 7);
    const auto x = spoilt_behind(of.x, n);
    const auto plain = l(theta, x, n), from = l(theta, x, n, of.carry);
    CHECK(distance(plain.value, from.value) > 0);
    CHECK(same_bits(plain.value, l(theta, x.view(), n, view<const double>{}, fprnn::eigen(3)).value));
    CHECK(same_bits(from.value, l(theta, x.view(), n, of.carry.view(), fprnn::eigen(1)).value));
    CHECK(distance(from.value, l(theta, x, n, of.carry, fprnn::reference{}).value) < 1e-3);
    fprnn::tape<double> tape(theta);
    const auto leaf = tape.leaf(tensor<double>(x));
    fprnn::solution<double> how;
    const auto y = l(tape, sizes, "", leaf, n, &how);
    CHECK(same_bits(tape.value(y), plain.value));
    CHECK(how.total_iterations == plain.total_iterations);
    const auto [z, carry] = l(tape, sizes, "", leaf, n, tape.leaf(tensor<double>(of.carry)), &how);
    CHECK(same_bits(tape.value(z), from.value));
    CHECK(same_bits(tape.value(carry), from.carry));
    CHECK(how.total_iterations == from.total_iterations);

    const std::vector<index> none, all(B, 7);
    CHECK(same_bits(l(theta, of.x, none).value, l(theta, of.x).value));
    CHECK(same_bits(l(theta, of.x, all).value, l(theta, of.x).value));
    CHECK(l(theta, tensor<double>({0, 7, 4}), none).value.size() == 0);
    const std::vector<index> nothing(3, 0);
    CHECK(same_bits(l(theta, tensor<double>({3, 0, 4}), nothing, sequences(of.carry, 0, 3)).carry,
                    sequences(of.carry, 0, 3)));
}

TEST_CASE("lengths: what are none is refused") {
    const fprnn::layer l(fprnn::models::fp_rnn<2>());
    const auto theta = fprnn::init<double>(l, sizes);
    const auto x = normal({3, 4, 4}, 1);
    const auto with = [&](const std::vector<index>& n) { return l(theta, x, n); };
    CHECK_THROWS_WITH_AS(with({1, 2}), "layer: lengths must be 3 numbers, one a sequence, or none, got 2",
                         fprnn::argument_error);
    CHECK_THROWS_WITH_AS(with({1, 2, 3, 4}), "layer: lengths must be 3 numbers, one a sequence, or none, got 4",
                         fprnn::argument_error);
    CHECK_THROWS_WITH_AS(with({1, -1, 3}), "layer: lengths[1] must lie in [0,4], got -1", fprnn::argument_error);
    CHECK_THROWS_WITH_AS(with({1, 2, 5}), "layer: lengths[2] must lie in [0,4], got 5", fprnn::argument_error);
    fprnn::tape<double> tape(theta);
    const std::vector<index> n{1, 2, 5};
    CHECK_THROWS_WITH_AS(l(tape, sizes, "", tape.leaf(tensor<double>(x)), n),
                         "layer: lengths[2] must lie in [0,4], got 5", fprnn::argument_error);
}

}  // namespace
