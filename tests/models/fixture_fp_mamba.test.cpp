#include "models/fixture.hpp"

#include <fprnn/models/fp_mamba.hpp>

namespace {

using namespace fprnn::testing;

TEST_CASE("fp_mamba: values and gradients are those of NumPy, a token after the other") {
    const auto block = fprnn::models::fp_mamba<2>();
    const fixture fixed("fp_mamba");
    check_iterates(block, fixed);
    check_fixture<double>(block, fixed, 1e-12, 1e-12);
    check_fixture<float>(block, fixed, 1e-6, float_gradients);
}

TEST_CASE("fp_mamba: the same with reflections of scale 2, and for weights of the authors' layout in their own order") {
    const auto block = fprnn::models::fp_mamba<2, 2>();
    for (const char* name : {"fp_mamba_scale_2", "fp_mamba_authors"}) {
        const fixture fixed(name);
        check_iterates(block, fixed);
        check_fixture<double>(block, fixed, 1e-12, 1e-12);
        check_fixture<float>(block, fixed, 1e-6, float_gradients);
    }
}

TEST_CASE("fp_mamba: with every option another, values and gradients are those of NumPy") {
    using options = fprnn::models::fp_mamba_options;
    const auto block = fprnn::models::fp_mamba<options{.convolution = 3,
                                                       .gate = options::gating::inside,
                                                       .delta_sees_y = true,
                                                       .delta_rank = 2,
                                                       .normalise = false,
                                                       .mixer_sees = options::seen::sum}>(fprnn::householder<2>);
    const fixture fixed("fp_mamba_options");
    check_iterates(block, fixed);
    check_fixture<double>(block, fixed, 1e-12, 1e-12);
    check_fixture<float>(block, fixed, 1e-6, float_gradients);
}

TEST_CASE("fp_mamba: with weight-normalised maps, values and gradients are those of NumPy") {
    constexpr fprnn::models::fp_mamba_options weight_norm{.weight_norm = true};
    const auto block = fprnn::models::fp_mamba<weight_norm>(fprnn::householder<2, "Q", 2>);
    const fixture fixed("fp_mamba_weight_norm");
    check_iterates(block, fixed);
    check_fixture<double>(block, fixed, 1e-12, 1e-12);
    check_fixture<float>(block, fixed, 1e-6, float_gradients);
}

TEST_CASE("published_mamba: values and gradients are those of NumPy, a token after the other") {
    const fixture fixed("published_mamba");
    check_fixture<double>(fprnn::models::published_mamba<3>(), fixed, 1e-12, 1e-12);
    check_fixture<float>(fprnn::models::published_mamba<3>(), fixed, 1e-6, float_gradients);
}

TEST_CASE("mamba: values and gradients are those of NumPy, a token after the other") {
    const fixture fixed("mamba");
    check_fixture<double>(fprnn::models::mamba(), fixed, 1e-12, 1e-12);
    check_fixture<float>(fprnn::models::mamba(), fixed, 1e-6, float_gradients);
}

}  // namespace
