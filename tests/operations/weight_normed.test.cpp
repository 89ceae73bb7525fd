#include "models/block_gradients.hpp"
#include "operations/plain_weights.hpp"

#include <array>

namespace {

using namespace fprnn::symbols;
using namespace fprnn::testing;
using fprnn::affine;
using fprnn::index;
using fprnn::linear;
using fprnn::tensor;
using fprnn::weight_normed;

constexpr fprnn::dims sizes{.d_in = 4, .d_inner = 5, .d_state = 3};

constexpr auto wrapped = [](auto map) { return weight_normed(map); };
constexpr auto as_it_is = [](auto map) { return map; };

/// A layer of f(wrap) with weight-normalised maps where wrap is called, and the same with plain ones.
template <class F>
struct pair_of_layers {
    fprnn::layer<decltype(F()(wrapped))> normed{F()(wrapped)};
    fprnn::layer<decltype(F()(as_it_is))> plain{F()(as_it_is)};

    explicit pair_of_layers(F) {}
};

/// Hoisted parts, parts that are iterated or see y_{t−1}, a bias, an operand that stands twice, and a map of
/// what the solution is.
constexpr auto every_part = [](auto wrap) {
    const auto s = cat(in, shift(prev));
    const auto a = sigmoid(wrap(affine<"a">(s)));
    const auto b = wrap(linear<"b">(cat(in, fprnn::constant<1, 8>() * prev, in)));
    const auto y = fixed_point(tanh(a * b + fprnn::constant<1, 4>() * wrap(linear<"c">(shift(prev)))));
    return in + wrap(affine<"out", fprnn::d_in>(cat(y, shift(y))));
};
/// One map that is iterated in two fixed points.
constexpr auto in_two_fixed_points = [](auto wrap) {
    const auto again = wrap(linear<"a">(cat(in, shift(prev))));
    const auto y = fixed_point(tanh(again));
    return fixed_point(tanh(again + fprnn::constant<1, 2>() * y));
};

TEST_CASE("weight_normed: a map starts as the plain one, with g the lengths of its rows") {
    const pair_of_layers layers(every_part);
    const auto theta = fprnn::init<double>(layers.normed, sizes), plain = fprnn::init<double>(layers.plain, sizes);
    for (const auto& p : plain.entries()) {
        CHECK(same_bits(theta[p.name], plain[p.name]));
        if (p.shape.rank() == 1) continue;
        const auto g = theta[p.name + ".scale"];
        REQUIRE(g.shape() == fprnn::shape{p.shape[0]});
        for (index r = 0; r < p.shape[0]; ++r) {
            double squares = 0;
            for (index i = 0; i < p.shape[1]; ++i) squares += plain[p.name](r, i) * plain[p.name](r, i);
            CHECK(g[r] == doctest::Approx(std::sqrt(squares)).epsilon(1e-15));
        }
    }
    for (const auto& p : theta.entries()) CHECK(p.decay == (p.name.find(".bias") == std::string::npos));
    const auto x = normal({2, 4, 4}, 1);
    CHECK(distance(layers.normed(theta, x).value, layers.plain(plain, x).value) <= 1e-14);
}

/// Values and gradients of both layers, where the plain one has the W of the other, sent on to v and g by the
/// formula.
template <class Pair>
double worst_difference(Pair layers, index B, index T, const fprnn::chunked& schedule, const fprnn::adjoint& adjoint,
                        fprnn::eigen backend) {
    layers.normed.schedule = layers.plain.schedule = schedule;
    layers.normed.adjoint = layers.plain.adjoint = adjoint;
    auto theta = fprnn::init<double>(layers.normed, sizes);
    shake(theta, 0.1);
    auto plain = fprnn::init<double>(layers.plain, sizes);
    put_plain_weights(theta, plain);
    const auto x = normal({B, T, 4}, 1), y_bar = normal({B, T, layers.plain.output_width(sizes)}, 2);
    const auto got = differentiate(layers.normed, theta, x, y_bar, backend);
    auto expected = differentiate(layers.plain, plain, x, y_bar, backend);
    CHECK(expected.sol.all_converged());
    fprnn::parameter_tree<double> sent_on = theta.zeros_like();
    send_to_directions(theta, expected.theta_bar, sent_on);
    expected.theta_bar = sent_on;
    return larger(distance(got.sol.value, expected.sol.value), compare(got, expected).worst);
}

TEST_CASE("weight_normed: the plain map with this W, in every schedule, adjoint and number of tiles and threads") {
    using fprnn::chunked;
    double worst = 0;
    for (const fprnn::adjoint& adjoint :
         {fprnn::adjoint(fprnn::implicit{.tolerance = 1e-13, .ell_max = 500}), fprnn::adjoint(fprnn::one_step{}),
          fprnn::adjoint(fprnn::unrolled{}), fprnn::adjoint(fprnn::truncated{1})})
        for (const index C : {index{1}, index{2}, index{5}, fprnn::whole_sequence})
            for (const auto& batch : {std::pair{index{2}, 1}, {index{2}, 3}, {index{37}, 3}}) {
                const index B = batch.first;
                const int threads = batch.second;
                CAPTURE(C);
                CAPTURE(B);
                const chunked schedule{.length = C, .tolerance = 1e-13, .ell_max = 500};
                for (const double difference :
                     {worst_difference(pair_of_layers(every_part), B, 6, schedule, adjoint, fprnn::eigen{threads}),
                      worst_difference(pair_of_layers(in_two_fixed_points), B, 6, schedule, adjoint,
                                       fprnn::eigen{threads})}) {
                    CHECK(difference <= 1e-13);
                    worst = larger(worst, difference);
                }
            }
    MESSAGE("weight-normalised maps differ from plain ones by " << worst);
}

TEST_CASE("weight_normed: gradients of v, g and the bias are those of differences") {
    check_block_gradients(every_part(wrapped), sizes, 2, 5, 0.2);
    check_block_gradients(in_two_fixed_points(wrapped), sizes, 2, 5, 0.2);
}

TEST_CASE("weight_normed: the length of v does not matter, and g is that of W's rows") {
    const fprnn::layer layer(weight_normed(linear<"W">(in)));
    auto theta = fprnn::init<double>(layer, sizes);
    const auto x = normal({1, 3, 4}, 1);
    const auto y = layer(theta, x).value;
    for (double& v : theta["W"]) v *= 0x1p40;
    CHECK(same_bits(layer(theta, x).value, y));
    for (double& g : theta["W.scale"]) g *= -2;
    const auto doubled = layer(theta, x).value;
    for (index i = 0; i < y.size(); ++i) CHECK(doubled[i] == -2 * y[i]);
}

TEST_CASE_TEMPLATE("weight_normed: a row of zeros gives 0 and has no gradient, and one of any other length both", T,
                   float, double) {
    const fprnn::layer layer(weight_normed(affine<"W">(in)));
    auto theta = fprnn::init<T>(layer, sizes);
    auto v = theta["W"];
    const T huge = std::is_same_v<T, float> ? T(1e30) : T(1e200);
    for (index i = 0; i < 4; ++i) v(1, i) = 0, v(2, i) *= huge, v(3, i) /= T(1e15);
    theta["W.scale"][1] = 7;
    const auto x = normal<T>({2, 3, 4}, 1), y_bar = normal<T>({2, 3, 5}, 2);
    const auto got = differentiate(layer, theta, x, y_bar);
    for (const T g : got.theta_bar) CHECK(std::isfinite(g));
    for (index i = 0; i < 4; ++i) CHECK(got.theta_bar["W"](1, i) == 0);
    CHECK(got.theta_bar["W.scale"][1] == 0);
    for (const index r : {2, 3}) CHECK(got.theta_bar["W.scale"][r] != 0);
    for (index row = 0; row < 6; ++row) {
        CHECK(got.sol.value.data()[row * 5 + 1] == 0);
        for (const index r : {2, 3}) {
            const T y = got.sol.value.data()[row * 5 + r];
            CHECK(std::isfinite(y));
            CHECK(y != 0);
        }
    }
}

TEST_CASE("weight_normed: of a mixer, of a function that makes one, and of one's own, all maps") {
    using fprnn::householder;
    using fprnn::kronecker;
    const auto names = [](auto mixer) {
        const auto Q = mixer(cat(in, shift(prev)));
        const fprnn::layer layer(fixed_point(Q * linear<"x">(in) + (identity - Q) * tanh(prev)));
        std::string all;
        for (const auto& p : layer.declare({.d_in = 2, .d_inner = 4})) all += p.name + " ";
        return all;
    };
    const std::string of_q = "Q.u Q.u.scale Q.alpha Q.alpha.scale Q.alpha.bias ";
    CHECK(names(weight_normed(householder<2>)).find(of_q) != std::string::npos);
    CHECK(names([](auto s) { return weight_normed(householder<2>(s)); }).find(of_q) != std::string::npos);
    CHECK(names(weight_normed([](auto s) { return householder<2>(s); })).find(of_q) != std::string::npos);
    CHECK(names(weight_normed(weight_normed(householder<2>))).find(of_q) != std::string::npos);
    CHECK(names(fprnn::contractive<9, 10>(weight_normed(householder<2>))).find(of_q) != std::string::npos);
    CHECK(names(weight_normed(householder<2, "P">)).find("P.u P.u.scale") != std::string::npos);
    CHECK(names(weight_normed(kronecker).named<"P">).find("P.k P.k.scale P.gate P.gate.scale P.gate.bias") !=
          std::string::npos);
    const auto product = names(weight_normed(kronecker * fprnn::dplr<1>));
    CHECK(product.find("Q.0.k Q.0.k.scale") != std::string::npos);
    CHECK(product.find("Q.1.u Q.1.u.scale") != std::string::npos);
    const auto half = names(weight_normed(kronecker) * fprnn::dplr<1>);
    CHECK(half.find("Q.0.k Q.0.k.scale") != std::string::npos);
    CHECK(half.find("Q.1.u.scale") == std::string::npos);
    CHECK(names(weight_normed(fprnn::orthogonal)).find("scale") == std::string::npos);
}

TEST_CASE("weight_normed: explain says so, and what is hoisted of the map") {
    const auto text = explain(pair_of_layers(every_part).normed);
    INFO(text);
    CHECK(text.find("a = weight-normed W (in, shift(prev)) + bias") != std::string::npos);
    CHECK(text.find("[in: for all tokens at once]") != std::string::npos);
}

}  // namespace
