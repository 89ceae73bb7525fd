#include "models/block_gradients.hpp"

#include <limits>
#include <numeric>
#include <vector>

namespace {

using namespace fprnn::symbols;
using namespace fprnn::testing;
using fprnn::d_head;
using fprnn::d_key;
using fprnn::index;
using fprnn::linear;
using fprnn::positions;
using fprnn::product_width;
using fprnn::tensor;

using keys = product_width<fprnn::heads, d_key>;
using values = product_width<fprnn::heads, d_head>;
constexpr fprnn::dims sizes{.d_in = 4, .d_inner = 1, .heads = 2, .d_head = 3, .d_key = 6, .context = 9};

template <positions P = positions::none>
constexpr auto attention_of(auto x) {
    return fprnn::attention<P>(linear<"q", keys>(x), linear<"k", keys>(x), linear<"v", values>(x));
}
const fprnn::layer plain_layer(attention_of(in));
const fprnn::layer rotary_layer(attention_of<positions::rotary>(in));

template <class T>
auto parameters(const auto& layer, const fprnn::dims& d) {
    auto theta = fprnn::init<T>(layer, d, fprnn::seed{3});
    shake(theta, 0.3);
    return theta;
}

/// Σ_j W[i,j] x[j]
template <class W>
double product(const W& w, index i, const tensor<double>& x, index b, index t) {
    double sum = 0;
    for (index j = 0; j < x.shape()[2]; ++j) sum += w(i, j) * x(b, t, j);
    return sum;
}
/// Channel c of K, turned by t · 10000^(−2c/K).
template <class Number>
double turned(const Number& number, index c, index K, index t) {
    const index pair = c % (K / 2);
    const double angle = static_cast<double>(t) *
                         std::exp(-2.0 * static_cast<double>(pair) / static_cast<double>(K) * std::log(10000.0));
    const double a = number(pair), b = number(pair + K / 2);
    return c < K / 2 ? a * std::cos(angle) - b * std::sin(angle) : a * std::sin(angle) + b * std::cos(angle);
}
/// The definition, one query after the other, with all logits at hand.
template <class Theta>
tensor<double> by_definition(const Theta& theta, const fprnn::dims& d, const tensor<double>& x, bool is_rotary) {
    const auto q = theta["q"], k = theta["k"], v = theta["v"];
    const index T = x.shape()[1], H = d.heads, K = d.d_key, V = d.d_head;
    tensor<double> y({x.shape()[0], T, H * V});
    for (index b = 0; b < x.shape()[0]; ++b)
        for (index h = 0; h < H; ++h) {
            const auto channel = [&](const auto& w, index c, index t) {
                const auto number = [&](index i) { return product(w, h * K + i, x, b, t); };
                return is_rotary ? turned(number, c, K, t) : number(c);
            };
            for (index t = 0; t < T; ++t) {
                std::vector<double> p(static_cast<std::size_t>(t + 1));
                for (index s = 0; s <= t; ++s) {
                    for (index c = 0; c < K; ++c) p[static_cast<std::size_t>(s)] += channel(q, c, t) * channel(k, c, s);
                    p[static_cast<std::size_t>(s)] /= std::sqrt(static_cast<double>(K));
                }
                const double most = *std::max_element(p.begin(), p.end());
                for (double& one : p) one = std::exp(one - most);
                const double sum = std::accumulate(p.begin(), p.end(), 0.0);
                for (index c = 0; c < V; ++c)
                    for (index s = 0; s <= t; ++s)
                        y(b, t, h * V + c) += p[static_cast<std::size_t>(s)] / sum * product(v, h * V + c, x, b, s);
            }
        }
    return y;
}

TEST_CASE("attention: its values are those of the definition, whatever the sizes") {
    const auto check = [](const auto& layer, bool is_rotary, const fprnn::dims& d, index B, index T) {
        CAPTURE(T);
        const auto theta = parameters<double>(layer, d);
        const auto x = normal({B, T, d.d_in}, 1);
        const auto expected = by_definition(theta, d, x, is_rotary);
        const tensor<double> zero;
        for (const auto& got :
             {layer(theta, x, zero, fprnn::reference()).value, layer(theta, x, zero, fprnn::eigen(2)).value})
            CHECK(distance(got, expected) <= 1e-13 * largest(expected));
    };
    for (const index T : {1, 2, 9}) {
        check(plain_layer, false, sizes, 3, T);
        check(rotary_layer, true, sizes, 3, T);
    }
    // Several blocks of keys, the last of them shorter, and heads of a channel or of more than a register.
    check(rotary_layer, true, {.d_in = 3, .d_inner = 1, .heads = 3, .d_head = 1, .d_key = 2, .context = 150}, 1, 150);
    check(rotary_layer, true, {.d_in = 3, .d_inner = 1, .heads = 1, .d_head = 19, .d_key = 34, .context = 300}, 17, 65);
}

TEST_CASE("attention: gradients of q, k and v are those of differences") {
    check_block_gradients(attention_of(in), sizes, 2, 5, 0.1);
    check_block_gradients(linear<"out", fprnn::d_in>(attention_of<positions::rotary>(in)), sizes, 2, 5, 0.1);
    // Two blocks of keys.
    check_block_gradients(attention_of<positions::rotary>(in),
                          {.d_in = 1, .d_inner = 1, .heads = 1, .d_head = 1, .d_key = 2, .context = 67}, 1, 67, 0.1);
}

TEST_CASE("attention: one node as query, key and value, and of a fixed point that is solved") {
    check_block_gradients(fprnn::attention(in, in, in), {.d_in = 4, .d_inner = 1, .heads = 2, .context = 5}, 2, 5, 0.1);
    const auto y =
        fixed_point(tanh(fprnn::affine<"u">(cat(in, shift(prev))) + fprnn::constant<1, 3>() * linear<"w">(prev)));
    check_block_gradients(fprnn::attention(linear<"q">(y), linear<"k">(in), y),
                          {.d_in = 3, .d_inner = 4, .heads = 2, .context = 6}, 2, 6, 0.1);
    check_block_gradients(fixed_point(attention_of(in) + fprnn::constant<1, 2>() * prev_of<values>), sizes, 2, 4, 0.1);
}

/// A call from a carry on, and back from the cotangent of the carry that it hands on.
struct through_carry {
    tensor<double> value, x_bar, carry_bar;
    fprnn::parameter_tree<double> theta_bar;
};
template <class Layer>
through_carry there_and_back(const Layer& layer, const auto& theta, const tensor<double>& x,
                             const tensor<double>& carry, const tensor<double>& y_bar, const tensor<double>& carry_bar,
                             fprnn::lengths n = std::span<const index>{}) {
    fprnn::eigen backend(1);
    typename Layer::template record<double, fprnn::eigen> kept;
    through_carry r{{}, tensor<double>(x.shape()), tensor<double>(carry.shape()), theta.zeros_like()};
    r.value = layer.template run<double>(theta.widths, theta.data(), x.view(), carry.view(), backend, &kept, n).value;
    layer.template back<double>(kept, x.view(), y_bar.view(), r.x_bar.view(), r.theta_bar.data(), backend,
                                {carry_bar.view(), r.carry_bar.view()});
    return r;
}

TEST_CASE("attention: gradients go through the carry, keys, values and what it hands on") {
    const auto check = [](const auto& layer, index context, index before, index tokens) {
        auto d = sizes;
        d.context = context;
        const auto theta = parameters<double>(layer, d);
        auto x = normal({2, tokens, 4}, 2);
        auto carry = layer(theta, normal({2, before, 4}, 1)).carry;
        const auto y_bar = normal({2, tokens, layer.output_width(d)}, 3), carry_bar = normal(carry.shape(), 4);
        const auto got = there_and_back(layer, theta, x, carry, y_bar, carry_bar);
        // One functional of value and carry out.
        tensor<double> one({y_bar.size() + carry_bar.size()});
        std::copy(y_bar.begin(), y_bar.end(), one.data());
        std::copy(carry_bar.begin(), carry_bar.end(), one.data() + y_bar.size());
        const auto both = [&] {
            const auto sol = layer(theta, x, carry);
            tensor<double> all({one.size()});
            std::copy(sol.value.begin(), sol.value.end(), all.data());
            std::copy(sol.carry.begin(), sol.carry.end(), all.data() + sol.value.size());
            return all;
        };
        const index width = carry.shape()[1];
        double worst = 0;
        for (index i = 0; i < x.size(); ++i) worst = larger(worst, std::abs(slope(both, one, x[i]) - got.x_bar[i]));
        for (index i = 0; i < carry.size(); ++i)
            if (i % width != 0)  // the count is no number to differentiate
                worst = larger(worst, std::abs(slope(both, one, carry[i]) - got.carry_bar[i]));
        CHECK(worst <= 1e-9);
        CHECK(largest(got.carry_bar) > 0.1);
    };
    check(rotary_layer, 9, 4, 3);
    check(plain_layer, 9, 4, 5);
    check(rotary_layer, 70, 62, 4);  // the last block ends at 70
}

TEST_CASE("attention: a sequence window by window has the gradient of the whole") {
    auto d = sizes;
    d.context = 70;
    const auto theta = parameters<double>(rotary_layer, d);
    const auto x = normal({3, 68, 4}, 1), y_bar = normal({3, 68, 6}, 2);
    const std::vector<std::pair<index, index>> windows{{0, 4}, {4, 1}, {5, 60}, {65, 3}};
    const tensor<double> none({3, rotary_layer.carry_width(d)});
    const auto carry_bar = normal(none.shape(), 3);
    const auto whole = there_and_back(rotary_layer, theta, x, none, y_bar, carry_bar);
    std::vector<tensor<double>> carries{none};
    for (const auto& [first, n] : windows)
        carries.push_back(rotary_layer(theta, tokens(x, first, n), carries.back()).carry);
    auto sum = theta.zeros_like();
    auto later = carry_bar;
    for (std::size_t i = windows.size(); i-- > 0;) {
        const auto [first, n] = windows[i];
        const auto part =
            there_and_back(rotary_layer, theta, tokens(x, first, n), carries[i], tokens(y_bar, first, n), later);
        CHECK(distance(part.x_bar, tokens(whole.x_bar, first, n)) <= 1e-13 * largest(whole.x_bar));
        for (index j = 0; j < sum.size(); ++j) sum.data()[j] += part.theta_bar.data()[j];
        later = part.carry_bar;
    }
    CHECK(distance(sum, whole.theta_bar) <= 1e-13 * largest(sum));
    CHECK(distance(later, whole.carry_bar) <= 1e-13 * largest(later));
}

template <class T>
void check_streaming(const auto& layer, const fprnn::dims& d, index B, const std::vector<index>& parts) {
    const index all = std::accumulate(parts.begin(), parts.end(), index{0});
    const auto theta = parameters<T>(layer, d);
    const auto x = normal<T>({B, all, d.d_in}, 1);
    const tensor<T> zero({B, layer.carry_width(d)});
    for (const int threads : {1, 2}) {
        const auto whole = layer(theta, x, zero, fprnn::eigen(threads));
        CHECK(same_bits(whole.value, layer(theta, x).value));
        tensor<T> carry;
        index at = 0;
        for (const index n : parts) {
            const auto part = layer(theta, tokens(x, at, n), carry, fprnn::eigen(threads));
            CHECK(same_bits(part.value, tokens(whole.value, at, n)));
            carry = part.carry;
            at += n;
        }
        CHECK(same_bits(carry, whole.carry));
        for (index b = 0; b < B; ++b) CHECK(carry(b, 0) == static_cast<T>(all));
    }
}

TEST_CASE("attention: tokens one by one, after a prompt, have the bits of one call") {
    check_streaming<float>(plain_layer, sizes, 3, {4, 1, 1, 3});
    check_streaming<float>(rotary_layer, sizes, 17, {1, 1, 1, 1, 1, 1, 1, 1, 1});
    check_streaming<double>(rotary_layer, sizes, 1, {5, 4});
    fprnn::dims d = sizes;
    d.context = 200;
    check_streaming<float>(rotary_layer, d, 2, {60, 1, 1, 1, 1, 1, 70, 1, 1});
    check_streaming<double>(plain_layer, d, 1, std::vector<index>(140, 1));
    d = {.d_in = 16, .d_inner = 32, .heads = 4, .d_head = 16, .d_key = 16, .context = 1100};
    check_streaming<float>(rotary_layer, d, 1, {1090, 1, 1, 8});  // several threads
}

TEST_CASE("attention: a sequence does not see its neighbours, nor what lies behind its end") {
    const fprnn::dims d{.d_in = 4, .d_inner = 1, .heads = 2, .d_head = 3, .d_key = 6, .context = 80};
    const auto theta = parameters<double>(rotary_layer, d);
    const std::vector<index> n{5, 0, 3, 1, 5};
    const auto carry = rotary_layer(theta, normal({5, 63, 4}, 3), std::vector<index>{63, 5, 0, 62, 2}).carry;
    for (const auto& [b, count] : {std::pair{0, 63}, std::pair{1, 5}, std::pair{2, 0}, std::pair{3, 62}})
        CHECK(carry(b, 0) == count);
    auto x = normal({5, 5, 4}, 1), y_bar = normal({5, 5, 6}, 2);
    const auto carry_bar = normal(carry.shape(), 4);
    auto spoilt = x, spoilt_bar = y_bar;
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    for (index b = 0; b < 5; ++b)
        for (index t = n[static_cast<std::size_t>(b)]; t < 5; ++t) {
            for (index c = 0; c < 4; ++c) spoilt(b, t, c) = nan;
            for (index c = 0; c < 6; ++c) spoilt_bar(b, t, c) = nan;
        }
    const auto got = there_and_back(rotary_layer, theta, spoilt, carry, spoilt_bar, carry_bar, n);
    const auto out = rotary_layer(theta, spoilt, n, carry);
    for (index b = 0; b < 5; ++b) {
        CAPTURE(b);
        const index own = n[static_cast<std::size_t>(b)];
        CHECK(largest(tokens(sequences(out.value, b, 1), own, 5 - own)) == 0);
        CHECK(largest(tokens(sequences(got.x_bar, b, 1), own, 5 - own)) == 0);
        const auto mine = sequences(carry, b, 1);
        if (own == 0) {
            CHECK(same_bits(sequences(out.carry, b, 1), mine));
            CHECK(same_bits(sequences(got.carry_bar, b, 1), sequences(carry_bar, b, 1)));
            continue;
        }
        const auto x_b = tokens(sequences(x, b, 1), 0, own), y_bar_b = tokens(sequences(y_bar, b, 1), 0, own);
        const auto alone = there_and_back(rotary_layer, theta, x_b, mine, y_bar_b, sequences(carry_bar, b, 1));
        CHECK(same_bits(tokens(sequences(got.value, b, 1), 0, own), alone.value));
        CHECK(same_bits(tokens(sequences(got.x_bar, b, 1), 0, own), alone.x_bar));
        CHECK(same_bits(sequences(got.carry_bar, b, 1), alone.carry_bar));
        CHECK(same_bits(sequences(out.carry, b, 1), rotary_layer(theta, x_b, mine).carry));
    }
}

TEST_CASE("attention: room that is not in use is not looked at") {
    const auto theta = parameters<double>(rotary_layer, sizes);
    const auto first = rotary_layer(theta, normal({1, 3, 4}, 1)).carry;
    auto spoilt = first;
    for (double& v : spoilt)
        if (v == 0) v = std::numeric_limits<double>::quiet_NaN();
    const auto x = normal({1, 4, 4}, 2), y_bar = normal({1, 4, 6}, 3);
    CHECK(same_bits(rotary_layer(theta, x, first).value, rotary_layer(theta, x, spoilt).value));
    const tensor<double> none(first.shape());
    CHECK(same_bits(there_and_back(rotary_layer, theta, x, first, y_bar, none).x_bar,
                    there_and_back(rotary_layer, theta, x, spoilt, y_bar, none).x_bar));
}

/// Memory that calls take next, of numbers that nobody may read.
void spoil_memory() {
    auto& pool = fprnn::scratch_pool<double>::shared();
    pool.clear();
    constexpr index n = index(1) << 16;
    fprnn::scratch_pool<double>::lease one(pool, n), other(pool, n), third(pool, n);
    for (double* memory : {one.data(), other.data(), third.data()})
        std::fill_n(memory, n, std::numeric_limits<double>::quiet_NaN());
}

TEST_CASE("attention: nothing is read that was not written, behind ends and without a cotangent of the carry") {
    const fprnn::layer l(linear<"out", fprnn::d_in>(attention_of<positions::rotary>(in)));
    auto d = sizes;
    d.context = 70;  // of which the second block is not in use
    const auto theta = parameters<double>(l, d);
    const auto x = normal({2, 5, 4}, 1), y_bar = normal({2, 5, 4}, 2);
    const std::vector<index> n{5, 2};
    const auto carry = l(theta, normal({2, 3, 4}, 3)).carry;
    const auto expected = there_and_back(l, theta, x, carry, y_bar, tensor<double>(carry.shape()), n);
    fprnn::eigen backend(1);
    decltype(l)::record<double, fprnn::eigen> kept;
    spoil_memory();
    (void)l.run<double>(theta.widths, theta.data(), x.view(), carry.view(), backend, &kept, n);
    tensor<double> x_bar(x.shape()), carry_bar(carry.shape());
    auto theta_bar = theta.zeros_like();
    l.back<double>(kept, x.view(), y_bar.view(), x_bar.view(), theta_bar.data(), backend, {{}, carry_bar.view()});
    // What is expected comes from the same memory.
    for (const double g : theta_bar) CHECK(std::isfinite(g));
    for (const double g : carry_bar) CHECK(std::isfinite(g));
    CHECK(same_bits(x_bar, expected.x_bar));
    CHECK(same_bits(carry_bar, expected.carry_bar));
    CHECK(same_bits(theta_bar, expected.theta_bar));
}

TEST_CASE("attention: more tokens than there is room for are refused, and the carry is what it was") {
    const auto theta = parameters<float>(plain_layer, sizes);
    const auto carry = plain_layer(theta, normal<float>({2, 6, 4}, 1), std::vector<index>{6, 2}).carry;
    const auto before = carry;
    CHECK_THROWS_WITH_AS((void)plain_layer(theta, normal<float>({2, 4, 4}, 1), carry),
                         "attention: x must have at most 3 tokens in sequence 0, behind 6 in a context of 9, got 4",
                         fprnn::argument_error);
    CHECK(same_bits(carry, before));
    CHECK_THROWS_WITH_AS((void)plain_layer(theta, normal<float>({1, 10, 4}, 1)),
                         "attention: x must have at most 9 tokens in sequence 0, behind 0 in a context of 9, got 10",
                         fprnn::argument_error);
    CHECK_THROWS_WITH_AS((void)plain_layer(theta, normal<float>({2, 8, 4}, 1), std::vector<index>{3, 8}, carry),
                         "attention: x must have at most 7 tokens in sequence 1, behind 2 in a context of 9, got 8",
                         fprnn::argument_error);
    CHECK_NOTHROW((void)plain_layer(theta, normal<float>({2, 8, 4}, 1), std::vector<index>{3, 7}, carry));
}

TEST_CASE("attention: a carry that counts what cannot be is refused") {
    const auto theta = parameters<double>(plain_layer, sizes);
    tensor<double> carry({1, plain_layer.carry_width(sizes)});
    for (const auto& [count, text] : {std::pair{0.5, "0.5"}, std::pair{-1.0, "-1"}, std::pair{10.0, "10"},
                                      std::pair{std::numeric_limits<double>::quiet_NaN(), "nan"}}) {
        carry[0] = count;
        CHECK_THROWS_WITH_AS(
            (void)plain_layer(theta, normal({1, 1, 4}, 1), carry),
            (std::string("attention: carry must begin with a number of tokens in [0,9] in sequence 0, got ") + text)
                .c_str(),
            fprnn::argument_error);
    }
}

TEST_CASE("attention: widths that heads do not divide are refused") {
    const auto refused = [](const auto& layer, const fprnn::dims& d, const char* message) {
        CHECK_THROWS_WITH_AS((void)fprnn::init(layer, d), message, fprnn::argument_error);
    };
    const fprnn::layer l(
        fprnn::attention(linear<"q", fprnn::d_out>(in), linear<"k", fprnn::d_out>(in), linear<"v">(in)));
    refused(l, {.d_in = 1, .d_inner = 4, .d_out = 7, .heads = 2},
            "attention: q must have a multiple of 2 channels, the heads, got 7");
    refused(l, {.d_in = 1, .d_inner = 5, .d_out = 8, .heads = 2},
            "attention: v must have a multiple of 2 channels, the heads, got 5");
    refused(rotary_layer, {.d_in = 1, .d_inner = 1, .heads = 2, .d_key = 3},
            "attention: q must have an even number of channels for each head where positions are rotary, got 3");
    refused(l, {.d_in = 1, .d_inner = 1, .context = (1 << 24) + 1},
            "attention: context must be at most 16777216, got 16777217");
}

TEST_CASE("attention: logits of 1e4 in float neither overflow nor lose the softmax") {
    const fprnn::dims d{.d_in = 2, .d_inner = 1, .heads = 1, .d_head = 2, .d_key = 1, .context = 200};
    auto theta = fprnn::init<float>(plain_layer, d);
    theta["q"].data()[0] = 100, theta["q"].data()[1] = 0;
    theta["k"].data()[0] = 0, theta["k"].data()[1] = 100;
    for (int i = 0; i < 4; ++i) theta["v"].data()[i] = i % 3 == 0 ? 1 : 0;
    // l = 1e4 x_0 x_1: the largest is that of one token, or the last two share it.
    for (const float sign : {1.0f, -1.0f}) {
        tensor<float> x({1, 150, 2}), y_bar({1, 150, 2});
        for (index t = 0; t < 150; ++t) x(0, t, 0) = sign, x(0, t, 1) = static_cast<float>(t % 75) / 75;
        y_bar(0, 149, 1) = 1;
        const auto got = differentiate(plain_layer, theta, x, y_bar);
        const float last = sign > 0 ? 74.0f / 75 : 0;
        CHECK(got.sol.value(0, 149, 1) == last);
        CHECK(got.sol.value(0, 149, 0) == sign);
        // dy_1/dx_1 = p of the two tokens that share it: 1/2 each.
        for (index t = 0; t < 150; ++t) {
            const bool shares = t % 75 == (sign > 0 ? 74 : 0);
            CHECK(got.x_bar(0, t, 1) == doctest::Approx(shares ? 0.5 : 0).epsilon(1e-6));
        }
    }
}

TEST_CASE("attention: logits that are all far below zero have the softmax that they have near it") {
    const fprnn::dims d{.d_in = 2, .d_inner = 1, .heads = 1, .d_head = 2, .d_key = 1, .context = 200};
    auto theta = fprnn::init<float>(plain_layer, d);
    theta["q"].data()[0] = 100, theta["q"].data()[1] = 0;
    theta["k"].data()[0] = 0, theta["k"].data()[1] = 100;
    for (int i = 0; i < 4; ++i) theta["v"].data()[i] = i % 3 == 0 ? 1 : 0;
    // l = -1e4 x_1 with x_1 >= 1: exp(l) is 0, and the smallest x_1 is that of tokens 0 and 75.
    tensor<float> x({1, 150, 2});
    for (index t = 0; t < 150; ++t) x(0, t, 0) = -1, x(0, t, 1) = 1 + static_cast<float>(t % 75) / 75;
    const auto y = plain_layer(theta, x).value;
    for (index t = 0; t < 150; ++t) CHECK(y(0, t, 1) == 1);
}

TEST_CASE("attention: a token that is not finite spoils those behind it alone") {
    const auto theta = parameters<float>(rotary_layer, sizes);
    auto x = normal<float>({1, 5, 4}, 1);
    const auto clean = rotary_layer(theta, x).value;
    x(0, 3, 1) = std::numeric_limits<float>::quiet_NaN();
    const auto got = rotary_layer(theta, x).value;
    CHECK(same_bits(tokens(got, 0, 3), tokens(clean, 0, 3)));
    for (index t : {3, 4})
        for (index c = 0; c < 6; ++c) CHECK(std::isnan(got(0, t, c)));
}

TEST_CASE("attention: explain says what it sees, and with which positions") {
    const auto text = explain(rotary_layer);
    INFO(text);
    CHECK(text.find("attention(q, k, v), rotary") != std::string::npos);
    CHECK(text.find("heads d_head") != std::string::npos);
    CHECK(explain(plain_layer).find("rotary") == std::string::npos);
}

}  // namespace
