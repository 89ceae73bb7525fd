#include "models/fixture.hpp"

#include <fprnn/models/fp_rnn.hpp>

namespace {

using namespace fprnn::testing;

TEST_CASE("fp_rnn: values and gradients are those of NumPy, a token after the other") {
    const auto block = fprnn::models::fp_rnn<2>();
    const fixture fixed("fp_rnn");
    check_iterates(block, fixed);
    check_fixture<double>(block, fixed, 1e-12, 1e-12);
    check_fixture<float>(block, fixed, 1e-6, float_gradients);
}

TEST_CASE("fp_rnn: the same with reflections of scale 2, and for weights of the authors' layout in their own order") {
    const auto block = fprnn::models::fp_rnn<2, 2>();
    for (const char* name : {"fp_rnn_scale_2", "fp_rnn_authors"}) {
        const fixture fixed(name);
        check_iterates(block, fixed);
        check_fixture<double>(block, fixed, 1e-12, 1e-12);
        check_fixture<float>(block, fixed, 1e-6, float_gradients);
    }
}

}  // namespace
