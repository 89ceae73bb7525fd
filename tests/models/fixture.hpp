#pragma once

#include "fixed_point/tools.hpp"

#include <fprnn/io/npy.hpp>
#include <fprnn/io/parameters.hpp>

#include <doctest/doctest.h>

namespace fprnn::testing {

/// What tests/fixtures/make_blocks.py wrote for one block.
struct fixture {
    tensor<double> input, output_bar;
    std::string name;
    safetensors_content expected;

    static std::filesystem::path path(const std::string& file) { return std::filesystem::path(FPRNN_FIXTURES) / file; }
    static safetensors_content read(const std::string& file) {
        return decode_safetensors(read_file(path(file), 100'000), file);
    }

    explicit fixture(const std::string& block)
        : input(load_npy<double>(path("input.npy"))),
          output_bar(load_npy<double>(path("output_bar.npy"))),
          name(block),
          expected(read(block + ".expected.safetensors")) {
        if (has("input")) input = array("input"), output_bar = array("output_bar");
    }

    bool has(std::string_view key) const {
        return std::any_of(expected.arrays.begin(), expected.arrays.end(),
                           [&](const named_array& a) { return a.name == key; });
    }

    tensor<double> array(std::string_view key) const {
        for (const named_array& a : expected.arrays)
            if (a.name == key) {
                REQUIRE(a.dtype == "F64");
                REQUIRE(a.extents.size() == 3);
                tensor<double> x({a.extents[0], a.extents[1], a.extents[2]});
                std::memcpy(x.data(), a.bytes.data(), a.bytes.size());
                return x;
            }
        FAIL("the fixture has no array " << key);
        return {};
    }
    bool has_gradient() const { return std::filesystem::exists(path(name + ".gradient.safetensors")); }
};

template <class T>
tensor<T> converted(const tensor<double>& x) {
    tensor<T> y(x.shape());
    std::transform(x.begin(), x.end(), y.begin(), [](double v) { return static_cast<T>(v); });
    return y;
}

/// ‖got − expected‖_∞ / ‖expected‖_∞
template <class A>
double error(const A& got, const tensor<double>& expected) {
    REQUIRE(got.size() == expected.size());
    double difference = 0;
    for (index i = 0; i < got.size(); ++i) {
        difference = larger(difference, std::abs(static_cast<double>(got.data()[i]) - expected.data()[i]));
    }
    return difference / largest(expected);
}

/// What gradients in float reach, relative to the largest entry of each; the tests print it. Measured:
/// 3.84e-6 at most, for Q.alpha of scale 2 over the whole sequence, with AVX2 and -O1, whether the adjoint
/// stops at 5e-7 or at 1e-7. Weights and inputs rounded to float, and the rest in double, give 4.1e-7 there;
/// so it is the way back that rounds. The equations are tested in double.
inline constexpr double float_gradients = 8e-6;

/// The block's output and its gradients, exact ones, for one-token chunks and for the whole sequence. Each
/// gradient is measured against its largest entry, that of parameter `cancels`, to which the block is
/// indifferent but for a norm's ε, against that of `beside`.
template <class T, class Root>
void check_fixture(Root expression, const fixture& fixed, double value_bound, double gradient_bound,
                   const std::string& cancels = "", const std::string& beside = "") {
    const bool is_double = std::is_same_v<T, double>;
    // In float until nothing but rounding changes; the adjoint, whose steps can go round in a few roundings,
    // to eight.
    const chunked schedule{.tolerance = is_double ? 1e-14 : 1e-9, .ell_max = is_double ? 2000 : 300};
    const dims size{.d_in = fixed.input.shape()[2], .d_inner = 6, .d_state = 3, .heads = 2, .d_key = 2};
    layer l(expression, schedule, implicit{.tolerance = is_double ? 1e-14 : 5e-7, .ell_max = schedule.ell_max});
    auto theta = init<T>(l, size);
    const auto metadata = load_parameters(fixture::path(fixed.name + ".safetensors"), theta, precision::converted);
    CHECK(metadata.at("block") == fixed.name);
    auto theta_bar = init<double>(l, size);
    if (fixed.has_gradient()) load_parameters(fixture::path(fixed.name + ".gradient.safetensors"), theta_bar);

    double worst_value = 0, worst_gradient = 0;
    for (const index C : {index{1}, whole_sequence}) {
        CAPTURE(C);
        l.schedule.length = C;
        const auto got = differentiate(l, theta, converted<T>(fixed.input), converted<T>(fixed.output_bar));
        for (const status s : got.sol.status) CHECK(s <= (is_double ? status::converged : status::max_iterations));
        CHECK(got.adjoint.all_converged());
        worst_value = larger(worst_value, error(got.sol.value, fixed.array("output")));
        worst_gradient = larger(worst_gradient, error(got.x_bar, fixed.array("input_gradient")));
        if (!fixed.has_gradient()) continue;
        for (const auto& p : theta.entries()) {
            tensor<double> expected(p.shape);
            std::copy_n(theta_bar[p.name].data(), expected.size(), expected.data());
            CAPTURE(p.name);
            double e = error(got.theta_bar[p.name], expected);
            if (p.name == cancels) {
                double most = 0;
                for (const double g : theta_bar[beside]) most = larger(most, std::abs(g));
                e *= largest(expected) / most;
            }
            CHECK(e <= gradient_bound);
            worst_gradient = larger(worst_gradient, e);
        }
    }
    CHECK(worst_value <= value_bound);
    CHECK(worst_gradient <= gradient_bound);
    MESSAGE(fixed.name << ", " << dtype_of<T> << ": values " << worst_value << ", gradients " << worst_gradient);
}

/// f itself: the iterates from y = 0, f evaluated at 0 and at what that gave, and the fixed point without the
/// read-out.
template <class Root>
void check_iterates(Root, const fixture& fixed) {
    const dims size{.d_in = fixed.input.shape()[2], .d_inner = 6, .d_state = 3, .heads = 2, .d_key = 2};
    layer f(node_at<typename nodes_of<Root>::types, layer<Root>::nodes.stages[0].fixed_point>{});
    const safetensors_content file = fixture::read(fixed.name + ".safetensors");
    auto theta = init<double>(f, size);
    for (const auto& p : theta.entries()) {
        const auto found = std::find_if(file.arrays.begin(), file.arrays.end(),
                                        [&](const named_array& a) { return a.name == p.name; });
        REQUIRE(found != file.arrays.end());
        REQUIRE(found->bytes.size() == static_cast<std::size_t>(p.shape.count()) * sizeof(double));
        std::memcpy(theta[p.name].data(), found->bytes.data(), found->bytes.size());
    }
    const auto iterate = [&](chunked schedule) {
        f.schedule = schedule;
        return f(theta, fixed.input).value;
    };
    for (const int ell : {1, 2})
        CHECK(error(iterate({.length = whole_sequence, .tolerance = 1e-14, .ell_max = ell}),
                    fixed.array("iterate_" + std::to_string(ell))) <= 1e-12);
    for (const index C : {index{1}, whole_sequence})
        CHECK(error(iterate({.length = C, .tolerance = 1e-14, .ell_max = 2000}), fixed.array("fixed_point")) <= 1e-12);
}

}  // namespace fprnn::testing
