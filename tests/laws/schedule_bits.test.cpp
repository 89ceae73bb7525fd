#include "fixed_point/tools.hpp"

#include <sanitized.hpp>

#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>
#include <fprnn/models/lstm.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace {

using namespace fprnn::testing;
using fprnn::eigen;
using fprnn::index;

/// What differs in bits alone is measured without sanitizers: they see the same memory and the same threads
/// in fewer calls.
using some = std::vector<index>;
const some threads_tried = FPRNN_SANITIZED ? some{2, 8} : some{1, 2, 3, 4, 5, 6, 7, 8},
           first_tried = FPRNN_SANITIZED ? some{31} : some{0, 1, 5, 16, 31},
           count_tried = FPRNN_SANITIZED ? some{3} : some{1, 2, 3, 6},
           place_tried = FPRNN_SANITIZED ? some{15} : some{0, 7, 15, 16, 19};

/// Values, gradients and counts of a block do not depend on threads, on the place in the batch or on the
/// neighbours.
template <class Block>
void check_bits(Block block, const fprnn::dims& size, index C, fprnn::adjoint adjoint) {
    const index B = 37, T = 6;
    fprnn::layer l(block, fprnn::chunked{.length = C, .tolerance = 1e-4, .ell_max = 60}, adjoint);
    const auto theta = fprnn::init<float>(l, size, fprnn::seed{3});
    const auto x = normal<float>({B, T, size.d_in}, 1), y_bar = normal<float>({B, T, size.d_in}, 2);
    const auto one = differentiate(l, theta, x, y_bar, eigen(1));
    CHECK(largest(one.theta_bar) > 0);

    for (const index threads : threads_tried) {
        CAPTURE(threads);
        const auto got = differentiate(l, theta, x, y_bar, eigen(static_cast<int>(threads)));
        CHECK(same_bits(got.sol.value, one.sol.value));
        CHECK(same_bits(got.sol.carry, one.sol.carry));
        CHECK(same_bits(got.x_bar, one.x_bar));
        CHECK(same_bits(got.theta_bar, one.theta_bar));
        CHECK(got.sol.total_iterations == one.sol.total_iterations);
        CHECK(got.sol.work == one.sol.work);
    }

    const auto is_that_of = [&](const differentiated<float>& got, index place, index b) {
        return same_bits(sequences(got.sol.value, place, 1), sequences(one.sol.value, b, 1)) &&
               same_bits(sequences(got.sol.carry, place, 1), sequences(one.sol.carry, b, 1)) &&
               same_bits(sequences(got.x_bar, place, 1), sequences(one.x_bar, b, 1)) &&
               got.sol.total_iterations[static_cast<std::size_t>(place)] ==
                   one.sol.total_iterations[static_cast<std::size_t>(b)];
    };
    for (const index first : first_tried)
        for (const index n : count_tried) {
            const auto part = differentiate(l, theta, sequences(x, first, n), sequences(y_bar, first, n), eigen(2));
            for (index b = 0; b < n; ++b) {
                CAPTURE(first);
                CAPTURE(n);
                CAPTURE(b);
                CHECK(is_that_of(part, b, first + b));
            }
        }
    // Other neighbours, another place, values of another size beside it.
    auto crowd = normal<float>({20, T, size.d_in}, 7, 30), crowd_bar = normal<float>({20, T, size.d_in}, 8, 1e3);
    for (const index place : place_tried) {
        CAPTURE(place);
        const index each = T * size.d_in;
        std::copy_n(x.data() + 11 * each, each, crowd.data() + place * each);
        std::copy_n(y_bar.data() + 11 * each, each, crowd_bar.data() + place * each);
        CHECK(is_that_of(differentiate(l, theta, crowd, crowd_bar, eigen(2)), place, 11));
    }
}

const fprnn::dims mamba_size{.d_in = 6, .d_inner = 21, .d_state = 5};
const fprnn::dims rnn_size{.d_in = 7, .d_inner = 18};
const fprnn::implicit exact{.tolerance = 1e-5, .ell_max = 40};

TEST_CASE("bits: FP-Mamba's depend on neither threads nor place nor neighbours") {
    for (const index C : {index{1}, index{2}, fprnn::whole_sequence}) {
        CAPTURE(C);
        check_bits(fprnn::models::fp_mamba<3>(), mamba_size, C, exact);
    }
    check_bits(fprnn::models::fp_mamba<3>(), mamba_size, 1, fprnn::one_step{});
    check_bits(fprnn::models::fp_mamba<3>(), mamba_size, 1, fprnn::neumann{3});
}

TEST_CASE("bits: FP-RNN's depend on neither threads nor place nor neighbours") {
    for (const index C : {index{1}, index{4}, fprnn::whole_sequence}) {
        CAPTURE(C);
        check_bits(fprnn::models::fp_rnn<2>(), rnn_size, C, exact);
    }
    check_bits(fprnn::models::fp_rnn<2>(), rnn_size, 2, fprnn::unrolled{});
    check_bits(fprnn::models::fp_rnn<2>(), rnn_size, 2, fprnn::truncated{2});
}

TEST_CASE("bits: LSTM's depend on neither threads nor place nor neighbours") {
    for (const index C : {index{1}, index{4}, fprnn::whole_sequence}) {
        CAPTURE(C);
        check_bits(fprnn::models::lstm(), rnn_size, C, exact);
    }
}

TEST_CASE("bits: calls that end where a chunk ends give those of one call, a last chunk of one token included") {
    fprnn::layer l(fprnn::models::lstm(), fprnn::chunked{.length = 4, .tolerance = 1e-4, .ell_max = 40}, exact);
    const auto theta = fprnn::init<float>(l, {.d_in = 7, .d_inner = 300}, fprnn::seed{3});
    for (const index T : {5, 6, 8}) {
        CAPTURE(T);
        const auto x = normal<float>({3, T, 7}, 1);
        const auto all = l(theta, x);
        const auto begun = l(theta, tokens(x, 0, 4)), rest = l(theta, tokens(x, 4, T - 4), begun.carry);
        CHECK(same_bits(rest.value, tokens(all.value, 4, T - 4)));
        CHECK(same_bits(rest.carry, all.carry));
    }
}

}  // namespace
