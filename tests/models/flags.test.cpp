#include "fixed_point/tools.hpp"

#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>
#include <fprnn/models/lstm.hpp>

#include <doctest/doctest.h>
#include <raised.hpp>

namespace {

using namespace fprnn::testing;
using fprnn::chunked;
using fprnn::index;

/// Values and gradients of a layer with every schedule and every adjoint. A program that has enabled traps lives only if no
/// flag is raised, in the places of a register that hold no channel as little as in others.
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
                auto theta = fprnn::init<T>(l, {.d_in = 4, .d_inner = D, .d_state = 3, .d_out = 4});
                shake(theta, 0.1);
                differentiated<T> got;
                CHECK(raised([&] { got = differentiate(l, theta, x, y_bar, backend); }) == "");
                CHECK(got.sol.all_converged());
            }
    }
}

TEST_CASE_TEMPLATE("flags: values and gradients of a layer raise no invalid operation, division by zero or overflow", T,
                   float, double) {
    const auto check = [](auto expression) {
        SUBCASE("eigen") { check_flags<T>(expression, fprnn::eigen(1)); }
        SUBCASE("reference") { check_flags<T>(expression, fprnn::reference{}); }
    };
    SUBCASE("fp_rnn") { check(fprnn::models::fp_rnn<2>()); }
    SUBCASE("fp_mamba") { check(fprnn::models::fp_mamba<2>()); }
    SUBCASE("mamba") { check(fprnn::models::mamba()); }
    SUBCASE("lstm") { check(fprnn::models::lstm()); }
}

}  // namespace
