#include <fprnn/models/lstm.hpp>

#include "models/block_gradients.hpp"

#include <string>
#include <vector>

namespace {

using namespace fprnn::testing;
using fprnn::chunked;
using fprnn::index;
using fprnn::tensor;

const fprnn::dims widths{.d_in = 5, .d_inner = 7};

/// The block in plain loops, as an LSTM is written: gates, state, output, token after token.
tensor<double> plain_lstm(const fprnn::layer_parameters<double>& theta, const tensor<double>& x) {
    const index B = x.shape()[0], T = x.shape()[1], d = x.shape()[2], D = widths.d_inner;
    const auto at = [](index i) { return static_cast<std::size_t>(i); };
    tensor<double> out(x.shape());
    for (index b = 0; b < B; ++b) {
        std::vector<double> c(at(D), 0.0), y(at(D), 0.0);
        for (index t = 0; t < T; ++t) {
            std::vector<double> s;
            double square = 0;
            for (index j = 0; j < d; ++j) square += x(b, t, j) * x(b, t, j) / static_cast<double>(d);
            for (index j = 0; j < d; ++j) s.push_back(theta["norm.weight"][j] * x(b, t, j) / std::sqrt(square + 1e-5));
            s.insert(s.end(), y.begin(), y.end());
            const auto map = [&](const std::string& name, index row) {
                double sum = theta[name + ".bias"][row];
                for (index j = 0; j < d + D; ++j) sum += theta[name](row, j) * s[at(j)];
                return sum;
            };
            const auto sigmoid = [](double z) { return 1 / (1 + std::exp(-z)); };
            std::vector<double> next(at(D));
            for (index k = 0; k < D; ++k) {
                c[at(k)] = sigmoid(map("f", k)) * c[at(k)] + sigmoid(map("i", k)) * std::tanh(map("g", k));
                next[at(k)] = sigmoid(map("o", k)) * std::tanh(c[at(k)]);
            }
            y = next;
            for (index j = 0; j < d; ++j) {
                out(b, t, j) = x(b, t, j);
                for (index k = 0; k < D; ++k) out(b, t, j) += theta["out"](j, k) * y[at(k)];
            }
        }
    }
    return out;
}

fprnn::layer_parameters<double> shaken_parameters() {
    auto theta = fprnn::init<double>(fprnn::layer(fprnn::models::lstm()), widths, fprnn::seed{2});
    shake(theta, 0.5);
    return theta;
}

TEST_CASE("lstm: the forget gate's bias starts at 1, the others at 0") {
    const auto theta = fprnn::init<double>(fprnn::layer(fprnn::models::lstm()), widths);
    for (index k = 0; k < widths.d_inner; ++k) {
        CHECK(theta["f.bias"][k] == 1);
        for (const char* other : {"i.bias", "o.bias", "g.bias"}) CHECK(theta[other][k] == 0);
    }
}

TEST_CASE("lstm: every schedule gives what an LSTM of plain loops gives, with and without a kept carry") {
    const auto theta = shaken_parameters();
    const index B = 19, T = 23;
    const auto x = normal({B, T, widths.d_in}, 1);
    const auto expected = plain_lstm(theta, x);
    double worst = 0;
    for (const index C : {index{1}, index{4}, T, fprnn::whole_sequence}) {
        CAPTURE(C);
        fprnn::layer l(fprnn::models::lstm(), chunked{.length = C, .tolerance = 1e-14, .ell_max = 100});
        const auto sol = l(theta, x);
        CHECK(sol.all_converged());
        CHECK(distance(sol.value, expected) <= 1e-12 * largest(expected));
        worst = larger(worst, distance(sol.value, expected) / largest(expected));
        // T tokens depend on each other in a chain: T evaluations are the fixed point, one more shows that.
        CHECK(*std::max_element(sol.iterations.begin(), sol.iterations.end()) <= std::min(C, T) + 1);

        const auto first = l(theta, tokens(x, 0, 10));
        const auto second = l(theta, tokens(x, 10, T - 10), first.carry);
        CHECK(distance(first.value, tokens(expected, 0, 10)) <= 1e-12 * largest(expected));
        CHECK(distance(second.value, tokens(expected, 10, T - 10)) <= 1e-12 * largest(expected));
    }
    MESSAGE("schedules and plain loops differ by " << worst);
}

TEST_CASE(
    "lstm: token by token, a token is one evaluation and a product with each gate's map, whatever the tolerance") {
    constexpr index B = 20, T = 7, tiles = 2, tile = fprnn::eigen::tile, gates = 4;
    const auto theta = shaken_parameters();
    for (const double tolerance : {1e-2, 1e-14}) {
        fprnn::layer l(fprnn::models::lstm(), chunked{.length = 1, .tolerance = tolerance});
        const auto sol = l(theta, normal({B, T, widths.d_in}, 1));
        CHECK(sol.all_converged());
        CHECK(sol.iterations == std::vector<int>(B, 1));
        CHECK(sol.residual == std::vector<double>(B, 0.0));
        CHECK(sol.work.evaluations == tiles * tile * T);
        CHECK(sol.work.matrix_products == gates * tiles * T);
        CHECK(sol.work.hoisted_products == (gates + 1) * tiles);  // what the gates see of the input, and out
        CHECK(sol.work.mixer_applications == 0);
    }
}

TEST_CASE("lstm: what is not finite is reported, not taken for a fixed point") {
    auto theta = shaken_parameters();
    theta["g.bias"][3] = std::numeric_limits<double>::quiet_NaN();
    fprnn::layer l(fprnn::models::lstm());
    for (const fprnn::status s : l(theta, normal({3, 4, widths.d_in}, 1)).status) CHECK(s == fprnn::status::nonfinite);
}

TEST_CASE("lstm: every gradient of the block is that of central differences") {
    check_block_gradients(fprnn::models::lstm(), widths, 2, 6, 0.2);
}

}  // namespace
