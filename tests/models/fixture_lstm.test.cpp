#include "models/fixture.hpp"

#include <fprnn/models/lstm.hpp>

namespace {

using namespace fprnn::testing;

TEST_CASE("lstm: values and gradients are those of NumPy, a token after the other") {
    const auto block = fprnn::models::lstm();
    const fixture fixed("lstm");
    check_iterates(block, fixed);
    check_fixture<double>(block, fixed, 1e-12, 1e-12);
    check_fixture<float>(block, fixed, 1e-6, float_gradients);
}

}  // namespace
