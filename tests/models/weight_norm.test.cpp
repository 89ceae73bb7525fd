#include "models/block_gradients.hpp"
#include "operations/plain_weights.hpp"

#include <fprnn/models/fp_mamba2.hpp>

#include <string>

namespace {

using namespace fprnn::testing;
using fprnn::index;
using fprnn::tensor;
using options = fprnn::models::fp_mamba_options;

constexpr options weight_norm{.weight_norm = true};
constexpr fprnn::models::fp_mamba2_options weight_norm2{.gate_outside = true, .groups = 2, .weight_norm = true};
constexpr fprnn::models::fp_mamba2_options plain2{.gate_outside = true, .groups = 2};
constexpr fprnn::dims sizes{.d_in = 4, .d_inner = 5, .d_state = 3};
constexpr fprnn::dims sizes_of_heads{.d_in = 4, .d_inner = 8, .d_state = 3, .heads = 4};

/// The parameters of the block with plain maps, whose b, c and z see both operands.
void put_joined_weights(const fprnn::parameter_tree<double>& theta, fprnn::parameter_tree<double>& plain) {
    for (const auto& p : plain.entries()) {
        const bool is_joined = theta.contains(p.name + "_y");
        const tensor<double> of_y = is_joined ? plain_weights(theta, p.name + "_y") : tensor<double>();
        const bool is_normed = theta.contains(p.name + ".scale");
        const tensor<double> W = is_normed ? plain_weights(theta, p.name) : tensor<double>();
        const auto own = theta[p.name];
        for (index i = 0; i < p.shape.count(); ++i) {
            const index columns = p.shape.back(), before = own.shape().back(), r = i / columns, k = i % columns;
            double& to = plain[p.name].data()[i];
            if (is_joined)
                to = k < before ? own(r, k) : of_y(r, k - before);
            else
                to = is_normed ? W.data()[i] : own.data()[i];
        }
    }
}

TEST_CASE("weight_norm of a block: the plain block with these W, in every schedule, reduced to R numbers or not") {
    double worst = 0;
    const auto check = [&](auto normed_block, auto plain_block, const fprnn::dims& size, double y_weight = 1) {
        fprnn::layer normed(normed_block);
        fprnn::layer plain(plain_block);
        auto theta = fprnn::init<double>(normed, size);
        shake(theta, 0.1);
        for (double& w : theta["y_norm.weight"]) w *= y_weight;
        auto joined = fprnn::init<double>(plain, size);
        put_joined_weights(theta, joined);
        const auto x = normal({19, 6, 4}, 1), y_bar = normal({19, 6, 4}, 2);
        for (const index C : {index{1}, index{2}, index{4}, fprnn::whole_sequence}) {
            CAPTURE(C);
            normed.schedule = plain.schedule = {.length = C, .tolerance = 1e-14, .ell_max = 2000};
            normed.adjoint = plain.adjoint = fprnn::implicit{.tolerance = 1e-13, .ell_max = 2000};
            const auto got = differentiate(normed, theta, x, y_bar), expected = differentiate(plain, joined, x, y_bar);
            REQUIRE(expected.sol.all_converged());
            const double value = distance(got.sol.value, expected.sol.value) / largest(expected.sol.value);
            const double gradient = distance(got.x_bar, expected.x_bar) / largest(expected.x_bar);
            CHECK(value <= 1e-13);
            CHECK(gradient <= 1e-13);
            worst = larger(worst, larger(value, gradient));
        }
    };
    CHECK(decltype(fprnn::layer(fprnn::models::fp_mamba<weight_norm>(fprnn::householder<2>)))::is_reduced);
    check(fprnn::models::fp_mamba<weight_norm>(fprnn::householder<2>), fprnn::models::fp_mamba<2>(), sizes);
    check(fprnn::models::fp_mamba<weight_norm>(fprnn::kronecker), fprnn::models::fp_mamba(fprnn::kronecker), sizes);
    check(fprnn::models::fp_mamba2<weight_norm2>(fprnn::householder<1>),
          fprnn::models::fp_mamba2<plain2>(fprnn::householder<1>), sizes_of_heads, 0.3);
    MESSAGE("weight-normalised and plain blocks differ by " << worst);
}

TEST_CASE("weight_norm of a block: which maps are weight-normalised, whatever makes the mixer") {
    const auto normed = [](auto block) {
        std::string names;
        for (const auto& p : fprnn::layer(block).declare(sizes_of_heads))
            if (p.name.ends_with(".scale")) names += p.name + " ";
        return names;
    };
    using fprnn::models::fp_mamba;
    using fprnn::models::fp_mamba2;
    const auto others_than_the_authors = [&](auto block, const std::string& gate = "z_y") {
        std::string names = normed(block);
        for (const std::string& name :
             {std::string("Q.u"), std::string("Q.alpha"), std::string("b_y"), std::string("c_y"), gate}) {
            const auto at = names.find(name + ".scale ");
            REQUIRE(at != std::string::npos);
            names.erase(at, name.size() + 7);
        }
        return names;
    };
    CHECK(others_than_the_authors(fp_mamba<weight_norm>(fprnn::householder<1>)).empty());
    CHECK(others_than_the_authors(fp_mamba<weight_norm>(weight_normed(fprnn::householder<1>))).empty());
    CHECK(others_than_the_authors(fp_mamba<weight_norm>([](auto s) { return fprnn::dplr<1>(s); })).empty());
    constexpr options gated_by_u{.gate = options::gating::inside, .weight_norm = true};
    constexpr options gated_by_both{.gate = options::gating::inside_seeing_y, .weight_norm = true};
    CHECK(normed(fp_mamba<gated_by_u>(fprnn::householder<1>)).find("z_y") == std::string::npos);
    CHECK(others_than_the_authors(fp_mamba<gated_by_both>(fprnn::householder<1>)).empty());
    CHECK(normed(fp_mamba(fprnn::householder<1>)).empty());
    CHECK(others_than_the_authors(fp_mamba2<weight_norm2>(fprnn::householder<1>), "gate_y").empty());
    CHECK(normed(fp_mamba2<plain2>(fprnn::householder<1>)).empty());
}

TEST_CASE("fp_mamba with weight_norm: every gradient of the block is that of central differences") {
    check_block_gradients(fprnn::models::fp_mamba<weight_norm>(fprnn::householder<1>),
                          {.d_in = 3, .d_inner = 4, .d_state = 2}, 2, 5, 0.1, 0.5);
}

TEST_CASE("fp_rnn with a weight-normalised mixer: every gradient of the block is that of central differences") {
    check_block_gradients(fprnn::models::fp_rnn(weight_normed(fprnn::householder<1>)), {.d_in = 3, .d_inner = 4}, 2, 5,
                          0.1);
}

}  // namespace
