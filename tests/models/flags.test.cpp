#include "fixed_point/tools.hpp"

#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>
#include <fprnn/models/lstm.hpp>
#include <fprnn/models/transformer.hpp>

#include <doctest/doctest.h>
#include <raised.hpp>

namespace {

using namespace fprnn::testing;
using fprnn::chunked;
using fprnn::index;

/// Values and gradients of a layer with every schedule and every adjoint. A program that has enabled traps
/// lives only if no flag is raised, in the places of a register that hold no channel as little as in others.
template <class T, class Backend, class Root>
void check_flags(Root expression, Backend backend) {
    const fprnn::adjoint methods[] = {fprnn::implicit{}, fprnn::one_step{}, fprnn::unrolled{}};
    for (const index D : {5, 17}) {
        const auto x = normal<T>({3, 4, 4}, 1), y_bar = normal<T>({3, 4, 4}, 2);
        for (const index C : {index{1}, index{3}, fprnn::whole_sequence})
            for (const auto& method : methods) {
                CAPTURE(D);
                CAPTURE(C);
                CAPTURE(method.index());
                const fprnn::layer l(expression, chunked{.length = C}, method);
                auto theta = fprnn::init<T>(l, {.d_in = 4, .d_inner = D, .d_state = 3, .d_out = 4, .d_key = 2});
                shake(theta, 0.1);
                differentiated<T> got;
                CHECK(raised([&] { got = differentiate(l, theta, x, y_bar, backend); }) == "");
                CHECK(got.sol.all_converged());
            }
    }
}

/// Each model and each kind of mixer in the number and on the backend that have the most empty places in a
/// register; the others share its bodies, which tests/ops/flags.test.cpp has in both.
TEST_CASE("flags: values and gradients of a layer raise no invalid operation, division by zero or overflow") {
    using namespace fprnn::models;
    SUBCASE("fp_rnn") { check_flags<double>(fp_rnn<2>(), fprnn::eigen(1)); }
    SUBCASE("fp_rnn on the reference") { check_flags<float>(fp_rnn<2>(), fprnn::reference{}); }
    SUBCASE("fp_rnn with a mixer of full rank") {
        check_flags<double>(fp_rnn(fprnn::kronecker * fprnn::block_diagonal<1>), fprnn::eigen(1));
    }
    SUBCASE("fp_rnn with a bounded mixer") {
        check_flags<double>(fp_rnn(fprnn::contractive<1, 2>(fprnn::dplr<3>)), fprnn::eigen(1));
    }
    SUBCASE("fp_mamba") { check_flags<float>(fp_mamba<2>(), fprnn::eigen(1)); }
    SUBCASE("mamba") { check_flags<double>(mamba(), fprnn::eigen(1)); }
    SUBCASE("transformer") { check_flags<float>(transformer(), fprnn::eigen(1)); }
    SUBCASE("lstm") { check_flags<float>(lstm(), fprnn::eigen(1)); }
}

}  // namespace
