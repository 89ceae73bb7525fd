#include "models/fixture.hpp"

#include <fprnn/models/xlstm.hpp>

namespace {

using namespace fprnn::testing;

TEST_CASE("mlstm_block: values and gradients are those of NumPy, a token after the other without a stabiliser") {
    const auto block = fprnn::models::mlstm_block<3, 2>();
    const fixture fixed("mlstm");
    check_fixture<double>(block, fixed, 1e-12, 1e-12);
    // Where |nᵀq| is below 1, a factor of e^i is one of h, which its norm takes out; above 1 the denominator
    // does: the gradient of i's bias is what is left of terms that cancel.
    check_fixture<float>(block, fixed, 1e-6, 1e-4);
}

TEST_CASE("slstm_block: values and gradients are those of NumPy, a token after the other without a stabiliser") {
    const auto block = fprnn::models::slstm_block<3>();
    const fixture fixed("slstm");
    check_iterates(block, fixed);
    // A factor of e^i at all tokens is one of c and of n: the gradient of i's bias is zero.
    check_fixture<double>(block, fixed, 1e-12, 1e-12, "i.bias", "f.bias");
    check_fixture<float>(block, fixed, 1e-6, float_gradients, "i.bias", "f.bias");
}

}  // namespace
