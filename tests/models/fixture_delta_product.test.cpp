#include "models/fixture.hpp"

#include <fprnn/models/delta_product.hpp>

namespace {

using namespace fprnn::testing;

TEST_CASE("gated_deltanet: values and gradients are those of NumPy, a token after the other") {
    const auto block = fprnn::models::gated_deltanet<3>();
    const fixture fixed("gated_deltanet");
    check_fixture<double>(block, fixed, 1e-12, 1e-12);
    check_fixture<float>(block, fixed, 1e-6, float_gradients);
}

TEST_CASE("delta_product: values and gradients are those of NumPy, a token after the other") {
    const auto block = fprnn::models::state_tracking_delta_product<3>();
    const fixture fixed("delta_product");
    check_fixture<double>(block, fixed, 1e-12, 1e-12);
    check_fixture<float>(block, fixed, 1e-6, float_gradients);
}

}  // namespace
