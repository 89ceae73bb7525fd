#include <fixed_point/tools.hpp>
#include <sanitized.hpp>

#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>

#include <doctest/doctest.h>

#include <memory>

namespace {

using namespace fprnn::symbols;
using namespace fprnn::testing;
using fprnn::affine;
using fprnn::eigen;
using fprnn::fixed_width;
using fprnn::index;
using fprnn::linear;

/// Few sequences are one tile, whose tokens and channels threads share: bits, gradients and counts are those
/// of a batch that fills the tile.
template <class Block>
void check_shared(Block block, const fprnn::dims& size) {
    const index T = 150;  // more than two blocks of rows of each width below
    const fprnn::implicit exact{.tolerance = 1e-5, .ell_max = 40};
    for (const index C : {index{1}, fprnn::whole_sequence}) {
        CAPTURE(C);
        fprnn::layer l(block, fprnn::chunked{.length = C, .tolerance = 1e-4, .ell_max = 30}, exact);
        const auto theta = fprnn::init<float>(l, size, fprnn::seed{3});
        const auto x = normal<float>({16, T, size.d_in}, 1), y_bar = normal<float>({16, T, size.d_in}, 2);
        const auto all = differentiate(l, theta, x, y_bar, eigen(1));
        for (const index B : {1, 3}) {
            CAPTURE(B);
            std::unique_ptr<differentiated<float>> one;
            for (const int threads : {1, 2, 5}) {
                CAPTURE(threads);
                const auto got = differentiate(l, theta, sequences(x, 5, B), sequences(y_bar, 5, B), eigen(threads));
                CHECK(same_bits(got.sol.value, sequences(all.sol.value, 5, B)));
                CHECK(same_bits(got.sol.carry, sequences(all.sol.carry, 5, B)));
                CHECK(same_bits(got.x_bar, sequences(all.x_bar, 5, B)));
                for (index b = 0; b < B; ++b) {
                    const auto i = static_cast<std::size_t>(b), there = static_cast<std::size_t>(5 + b);
                    CHECK(got.sol.total_iterations[i] == all.sol.total_iterations[there]);
                    CHECK(got.sol.residual[i] == all.sol.residual[there]);
                }
                if (!one) one = std::make_unique<differentiated<float>>(got);
                CHECK(same_bits(got.theta_bar, one->theta_bar));
                CHECK(got.sol.work == one->sol.work);
            }
        }
    }
}

#if !FPRNN_SANITIZED  // these take minutes otherwise; lengths.test.cpp has threads that share tiles, too

TEST_CASE("bits: threads that share FP-Mamba's tile change none") {
    check_shared(fprnn::models::fp_mamba<2>(), {.d_in = 6, .d_inner = 165, .d_state = 3});
}

TEST_CASE("bits: threads that share FP-RNN's tile change none") {
    check_shared(fprnn::models::fp_rnn<2>(), {.d_in = 7, .d_inner = 161});
}

TEST_CASE(
    "bits: threads that share the tile of a recurrence with a matrix state change none, inside of a fixed point and "
    "outside") {
    const auto of = [](auto s) {
        return fprnn::gated_delta(sigmoid(affine<"alpha", fixed_width<2>>(s)),
                                  fprnn::normalise(linear<"k", fixed_width<8>>(s)), linear<"v", fixed_width<160>>(s),
                                  sigmoid(affine<"beta", fixed_width<2>>(s)), linear<"q", fixed_width<8>>(s));
    };
    const auto half = fprnn::constant<1, 2>();
    const auto y = fixed_point(linear<"u">(in) + half * tanh(linear<"r">(of(shift(prev)))));
    check_shared(linear<"out", fprnn::d_in>(y), {.d_in = 5, .d_inner = 160});
    check_shared(linear<"out", fprnn::d_in>(of(in)), {.d_in = 5, .d_inner = 160});
}

#endif

/// On one thread and on two.
template <class Block>
void check_threads(Block block, const fprnn::dims& size, index B, index T, index C) {
    const fprnn::layer l(block, fprnn::chunked{.length = C, .tolerance = 1e-4, .ell_max = 20});
    const auto theta = fprnn::init<float>(l, size, fprnn::seed{3});
    const auto x = normal<float>({B, T, size.d_in}, 1);
    const auto one = l(theta, x, {}, eigen(1)), two = l(theta, x, {}, eigen(2));
    CHECK(same_bits(one.value, two.value));
    CHECK(same_bits(one.carry, two.carry));
}

TEST_CASE("bits: threads that share a tile have memory of their own for products, each on a cache line") {
    const auto y = fixed_point(tanh(linear<"u">(in) + linear<"w">(prev) * linear<"g">(in)));
    for (const index D : {65, 66, 67, 68}) {
        CAPTURE(D);
        check_threads(y, {.d_in = 5, .d_inner = D}, 1, 512, fprnn::whole_sequence);
    }
}

TEST_CASE("bits: blocks of as many rows as a tile has are no one-token chunk, whose rows are packed for all maps") {
    const auto y = fixed_point(tanh(linear<"u">(in) + linear<"w">(prev) * linear<"g">(in)));
    for (int i = 0; i < 3; ++i)
        check_threads(y, {.d_in = 5, .d_inner = 576}, 16, 5, 4);  // the last chunk has one token
}

}  // namespace
