#include "models/fixture.hpp"

#include <fprnn/models/xlstm.hpp>

namespace {

using namespace fprnn::testing;

TEST_CASE("mlstm_block: values and gradients are those of NumPy, a token after the other without a stabiliser") {
    const auto block = fprnn::models::mlstm_block<3, 2>();
    const fixture fixed("mlstm");
    check_fixture<double>(block, fixed, 1e-12, 1e-12);
    check_fixture<float>(block, fixed, 1e-6, float_gradients);
}

TEST_CASE("slstm_block: values and gradients are those of NumPy, a token after the other without a stabiliser") {
    const auto block = fprnn::models::slstm_block<3>();
    const fixture fixed("slstm");
    check_iterates(block, fixed);
    check_fixture<double>(block, fixed, 1e-12, 1e-12);
    check_fixture<float>(block, fixed, 1e-6, float_gradients);
}

}  // namespace
