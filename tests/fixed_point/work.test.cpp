#include "fixed_point/tools.hpp"

#include <fprnn/models/fp_mamba.hpp>

#include <doctest/doctest.h>

#include <numeric>

namespace {

using namespace fprnn::testing;
using fprnn::chunked;
using fprnn::index;

/// Four maps; Q.u and Q.alpha have an iterated half, which sees y_{t−1}, and a hoisted one.
auto rnn() {
    using namespace fprnn::symbols;
    auto Q = fprnn::householder<2, "Q">(cat(in, shift(prev)));
    auto lambda = sigmoid(fprnn::affine<"lambda">(in));
    return fixed_point(scan(lambda, (1 - lambda) * (Q * fprnn::linear<"B">(in) + (I - Q) * prev)));
}
constexpr index iterated_maps = 2, hoisted_maps = 4;
const fprnn::dims size{.d_in = 3, .d_inner = 6};
constexpr index B = 20, T = 7, tiles = 2, tile = fprnn::eigen::tile;

TEST_CASE("work: a one-token chunk multiplies each iterated map once, whatever the number of iterations") {
    const auto x = normal({B, T, 3}, 1);
    index before = 0;
    for (const double tolerance : {1e-2, 1e-6, 1e-12}) {
        fprnn::layer l(rnn(), chunked{.length = 1, .tolerance = tolerance, .ell_max = 500});
        const auto sol = l(fprnn::init<double>(l, size), x);
        CHECK(sol.work.matrix_products == iterated_maps * T * tiles);
        CHECK(sol.work.hoisted_products == hoisted_maps * tiles);
        const index total = std::accumulate(sol.total_iterations.begin(), sol.total_iterations.end(), index{0});
        CHECK(total > before);
        before = total;
        // Iterations are done in R numbers: f is evaluated to verify the token, and again where rounding asks
        // for it. A place without a sequence is evaluated once.
        CHECK(sol.work.evaluations >= tiles * tile * T);
        CHECK(sol.work.evaluations <= (tiles * tile + B) * T);
        CHECK(sol.work.mixer_applications == sol.work.evaluations + B * T);
    }
}

TEST_CASE("work: a mixer that is not compact is applied once an iteration") {
    using namespace fprnn::symbols;
    using fprnn::testing::plain_householder;
    auto Q = plain_householder<2>(cat(in, shift(prev)));
    auto lambda = sigmoid(fprnn::affine<"lambda">(in));
    auto f = fixed_point(scan(lambda, (1 - lambda) * (Q * fprnn::linear<"B">(in) + (I - Q) * prev)));
    fprnn::layer l(f, chunked{.length = 1, .tolerance = 1e-6, .ell_max = 500});
    const auto sol = l(fprnn::init<double>(l, size), normal({B, T, 3}, 1));
    const index total = std::accumulate(sol.total_iterations.begin(), sol.total_iterations.end(), index{0});
    CHECK(sol.work.evaluations == total + (tiles * tile - B) * T);
    CHECK(sol.work.mixer_applications == sol.work.evaluations);
}

TEST_CASE("work: a longer chunk multiplies each iterated map once per iteration and the hoisted ones once in all") {
    const auto x = normal({13, T, 3}, 1);
    for (const double tolerance : {1e-2, 1e-6}) {
        fprnn::layer l(rnn(), chunked{.length = fprnn::whole_sequence, .tolerance = tolerance, .ell_max = 500});
        const auto sol = l(fprnn::init<double>(l, size), x);
        const index most = *std::max_element(sol.iterations.begin(), sol.iterations.end());
        CHECK(sol.work.matrix_products == iterated_maps * most);
        CHECK(sol.work.hoisted_products == hoisted_maps);
        CHECK(sol.work.evaluations == most * T * tile);
        CHECK(sol.work.mixer_applications == sol.work.evaluations);
    }
    for (const index C : {1, 2, 3, 7}) {
        fprnn::layer l(rnn(), chunked{.length = C});
        CHECK(l(fprnn::init<double>(l, size), x).work.hoisted_products == hoisted_maps);
    }
}

TEST_CASE("work: nothing is iterated in a layer without a fixed point") {
    fprnn::layer l(fprnn::models::mamba());
    const auto sol = l(fprnn::init<double>(l, size), normal({B, T, 3}, 1));
    CHECK(sol.work.evaluations == 0);
    CHECK(sol.work.mixer_applications == 0);
    CHECK(sol.work.matrix_products == 0);
    CHECK(sol.work.hoisted_products == 6 * tiles);  // x, delta, b, c, z, out
    CHECK(sol.iterations == std::vector<int>(B, 0));
}

TEST_CASE("work: what is kept for the way back does not grow with the iterations") {
    const auto x = normal({B, T, 3}, 1), y_bar = normal({B, T, 3}, 2);
    for (const index C : {index{1}, index{3}, fprnn::whole_sequence}) {
        CAPTURE(C);
        fprnn::layer l(fprnn::models::fp_mamba<2>(), chunked{.length = C, .tolerance = 1e-13, .ell_max = 1});
        const auto theta = fprnn::init<double>(l, size);
        const index once = differentiate(l, theta, x, y_bar).bytes;
        CHECK(once > 0);
        l.schedule.ell_max = 40;
        const auto often = differentiate(l, theta, x, y_bar);
        CHECK(often.sol.iterations[0] > 10);
        CHECK(often.bytes == once);
        l.schedule.tolerance = 0.5;
        CHECK(differentiate(l, theta, x, y_bar).bytes == once);
        l.adjoint = fprnn::unrolled{};
        CHECK(differentiate(l, theta, x, y_bar).bytes == once);
    }
}

TEST_CASE("work: an FP-Mamba layer keeps at most what a Mamba layer keeps and (R+4)·B·T·D numbers") {
    constexpr int R = 4;
    const fprnn::dims sizes{.d_in = 64, .d_inner = 64, .d_state = 16};
    const auto x = normal<float>({16, 32, 64}, 1), y_bar = normal<float>({16, 32, 64}, 2);
    fprnn::layer diagonal(fprnn::models::mamba(), {}, fprnn::one_step{});
    const index plain = differentiate(diagonal, fprnn::init<float>(diagonal, sizes), x, y_bar).bytes;
    const index allowed = plain + (R + 4) * 16 * 32 * 64 * index{sizeof(float)};
    for (const index C : {index{1}, index{8}, fprnn::whole_sequence}) {
        fprnn::layer l(fprnn::models::fp_mamba<R>(), chunked{.length = C, .ell_max = 5}, fprnn::one_step{});
        const index fixed = differentiate(l, fprnn::init<float>(l, sizes), x, y_bar).bytes;
        MESSAGE("C = " << C << ": Mamba keeps " << plain << " bytes, FP-Mamba " << fixed << ", allowed " << allowed);
        CHECK(fixed <= allowed);
    }
}

TEST_CASE("work: a layer is one record of the tape, whatever the number of iterations") {
    for (const int ell_max : {1, 100}) {
        fprnn::layer l(rnn(), chunked{.tolerance = 1e-13, .ell_max = ell_max});
        const auto theta = fprnn::init<double>(l, size);
        fprnn::tape<double> tape(theta);
        const auto x = tape.leaf(normal({2, 5, 3}, 1));
        fprnn::solution<double> how;
        (void)l(tape, size, "", x, &how);
        CHECK(tape.records() == 1);
        CHECK((how.iterations[0] > 1) == (ell_max > 1));
    }
}

}  // namespace
