#include "fixed_point/tools.hpp"

#include <fprnn/models/fp_rnn.hpp>
#include <fprnn/models/lstm.hpp>
#include <fprnn/models/sequence_model.hpp>
#include <fprnn/models/transformer.hpp>
#include <fprnn/tape/gradcheck.hpp>
#include <fprnn/train/trainer.hpp>

#include <doctest/doctest.h>

#include <limits>

namespace {

using fprnn::index;
using fprnn::tensor;
using fprnn::models::model_dims;
using fprnn::models::sequence_model;
using fprnn::testing::normal;
using fprnn::testing::same_bits;

constexpr model_dims real{.classes = 2, .d_model = 4, .d_inner = 5, .layers = 2, .inputs = 3};

auto model_of(const model_dims& size) {
    return sequence_model(fprnn::models::fp_rnn<1>(), size, {.length = 1, .tolerance = 1e-13, .ell_max = 1000},
                          fprnn::implicit{.tolerance = 1e-13, .ell_max = 1000});
}

TEST_CASE("real inputs: the gradient of the mean square by every parameter is that of central differences") {
    const auto model = model_of(real);
    auto theta = model.init<double>(fprnn::seed{6});
    fprnn::testing::shake(theta, 0.1);
    for (double& w : theta["embedding.map"]) w *= 4;  // differences of a norm of small numbers are poor
    CHECK(theta["embedding.map"].shape() == fprnn::shape{4, 3});
    CHECK(theta["embedding.map.bias"].shape() == fprnn::shape{4});
    CHECK_FALSE(theta.contains("embedding"));
    const auto x = normal({3, 5, 3}, 1);
    auto targets = normal({3, 5, 2}, 2);
    targets[4] = std::numeric_limits<double>::quiet_NaN();

    fprnn::tape<double, fprnn::reference> tape(theta, fprnn::reference{});
    fprnn::mean_square_result how_far;
    const auto loss = mean_square(tape, model(tape, x.view()), targets.view(), &how_far);
    CHECK(how_far.numbers == 29);
    const auto gradient = tape.gradient(loss);
    const auto loss_at = [&](const auto& at) {
        return fprnn::mean_square(model.evaluate(at, x.view(), nullptr, fprnn::reference{}), targets.view()).loss;
    };
    CHECK(loss_at(theta) == doctest::Approx(how_far.loss).epsilon(1e-14));
    const auto result = fprnn::gradcheck(loss_at, theta, gradient, {.step = 1e-4});
    INFO(result.to_string());
    MESSAGE("gradient - differences: " << result.error);
    CHECK(result.error <= 1e-7);
}

TEST_CASE("real inputs: calls that hand on their carry give the bits of one call, and lengths cut sequences off") {
    const auto model = model_of(real);
    const auto theta = model.init<double>(fprnn::seed{6});
    auto x = normal({2, 6, 3}, 1);
    const auto whole = model.evaluate(theta, x.view());
    fprnn::models::model_carry<double> carry;
    for (index t = 0; t < 6; ++t) {
        tensor<double> token({2, 1, 3});
        for (index b = 0; b < 2; ++b) std::copy_n(&x(b, t, 0), 3, &token(b, 0, 0));
        const auto y = model.evaluate(theta, token.view(), carry);
        for (index b = 0; b < 2; ++b)
            for (index k = 0; k < 2; ++k) CHECK(y(b, 0, k) == whole(b, t, k));
    }
    const std::vector<index> lengths{4, 6};
    fprnn::models::model_carry<double> ragged, first;
    const auto before = model.evaluate(theta, x.view(), lengths, ragged);
    for (index t = 4; t < 6; ++t)
        for (index k = 0; k < 3; ++k) x(0, t, k) = 1e300;
    const auto after = model.evaluate(theta, x.view(), lengths, first);
    CHECK(same_bits(before, after));
    CHECK(same_bits(before, model.evaluate(theta, x.view(), lengths)));
    for (std::size_t i = 0; i < 2; ++i) CHECK(same_bits(ragged.blocks[i], first.blocks[i]));
    for (index k = 0; k < 2; ++k) {
        CHECK(before(0, 3, k) == whole(0, 3, k));
        CHECK(before(0, 4, k) == 0);
        CHECK(before(1, 5, k) == whole(1, 5, k));
    }
}

TEST_CASE("real inputs: lengths of other sequences are refused, also where attention asks for room") {
    auto size = real;
    size.d_inner = 4;
    const sequence_model model(fprnn::models::transformer(), size);
    const auto theta = model.init<double>(fprnn::seed{6});
    const auto x = normal({3, 5, 3}, 1);
    const std::vector<index> few{5};
    const auto message = doctest::Contains("sequence_model: lengths must be 3 numbers");
    fprnn::models::model_carry<double> carry;
    CHECK_THROWS_WITH_AS((void)model.evaluate(theta, x.view(), few, carry), message, fprnn::argument_error);
    fprnn::tape<double> tape(theta);
    CHECK_THROWS_WITH_AS((void)model(tape, x.view(), few), message, fprnn::argument_error);
}

TEST_CASE("real inputs: a model of tokens takes none, and the other way round; sizes and shapes are said") {
    const auto of_reals = model_of(real);
    const auto of_tokens = model_of({.vocabulary = 3, .classes = 2, .d_model = 4, .d_inner = 5});
    const auto theta = of_reals.init<double>(fprnn::seed{6}), other = of_tokens.init<double>(fprnn::seed{6});
    const auto x = normal({2, 6, 3}, 1), narrow = normal({2, 6, 2}, 1), flat = normal({6, 3}, 1);
    const tensor<std::int32_t> tokens({2, 6});
    CHECK_THROWS_WITH_AS(of_tokens.evaluate(other, x.view()),
                         "sequence_model: expected tokens, got real numbers: model_dims::inputs is 0",
                         fprnn::argument_error);
    CHECK_THROWS_WITH_AS(of_reals.evaluate(theta, tokens.view()),
                         "sequence_model: expected 3 real numbers a token, got tokens", fprnn::argument_error);
    CHECK_THROWS_AS(of_reals.evaluate(theta, narrow.view()), fprnn::argument_error);
    CHECK_THROWS_AS(of_reals.evaluate(theta, flat.view()), fprnn::argument_error);
    CHECK_THROWS_WITH_AS(model_of({.vocabulary = 3, .classes = 2, .inputs = 1}),
                         "model_dims: a model of real inputs has neither a vocabulary nor a tied embedding, got inputs "
                         "= 1 and vocabulary = 3",
                         fprnn::argument_error);
    CHECK_THROWS_WITH_AS(model_of({.classes = 2, .inputs = -1}),
                         "model_dims: inputs must be at least 1, or 0 for tokens, got -1", fprnn::argument_error);
}

/// The sum of the inputs so far: real inputs, real targets.
struct running_sum {
    static index inputs() { return 1; }
    static index outputs() { return 1; }

    void operator()(fprnn::view<float> x, fprnn::view<float> y, std::uint64_t first) const {
        for (index b = 0; b < x.shape()[0]; ++b) {
            const fprnn::random_stream random(fprnn::seed{1}, first + static_cast<std::uint64_t>(b));
            float sum = 0;
            for (index t = 0; t < x.shape()[1]; ++t) {
                sum += x(b, t, 0) = static_cast<float>(0.3 * random.normal(t));
                y(b, t, 0) = t == 0 ? std::numeric_limits<float>::quiet_NaN() : sum;
            }
        }
    }
};
/// Its sign alone: real inputs, classes.
struct sign_of_sum {
    static index inputs() { return 1; }

    void operator()(fprnn::view<float> x, fprnn::view<std::int32_t> y, std::uint64_t first) const {
        tensor<float> sums(x.shape());
        running_sum()(x, sums.view(), first);
        for (index i = 0; i < y.size(); ++i) y[i] = sums[i] > 0;
    }
};
/// Tokens 0 and 1, of which the number is to be told: tokens, real targets.
struct count_of_ones {
    static index outputs() { return 1; }

    void operator()(fprnn::view<std::int32_t> x, fprnn::view<float> y, std::uint64_t first) const {
        for (index b = 0; b < x.shape()[0]; ++b) {
            const fprnn::random_stream random(fprnn::seed{1}, first + static_cast<std::uint64_t>(b));
            int ones = 0;
            for (index t = 0; t < x.shape()[1]; ++t) {
                ones += x(b, t) = static_cast<std::int32_t>(random.below(t, 2));
                y(b, t, 0) = 0.1F * static_cast<float>(ones);
            }
        }
    }
};

TEST_CASE("train and evaluate: real inputs, real targets and both are learnt") {
    const auto learn = [](const auto& data, model_dims size) {
        size.d_model = size.d_inner = 16;
        const sequence_model model(fprnn::models::lstm(), size);
        auto theta = model.template init<float>(fprnn::seed{0});
        const auto before = fprnn::evaluate(model, theta, 8, 70, data);
        double first = 0, last = 0;
        const auto result =
            fprnn::train(model, theta, {.batch = 16, .length = 8, .steps = 300, .optimiser = {.learning_rate = 0.01}},
                         data, [&](const fprnn::training_step& step) {
                             (step.step == 1 ? first : last) = step.loss;
                             return true;
                         });
        CHECK(result.end == fprnn::training_end::steps);
        const auto after = fprnn::evaluate(model, theta, 8, 70, data);
        CHECK(last < 0.3 * first);
        CHECK(after.loss < 0.3 * before.loss);
        return after;
    };
    const auto sums = learn(running_sum{}, {.classes = 1, .inputs = 1});
    CHECK(sums.answers.empty());
    CHECK(sums.accuracy.token == 0);
    const auto signs = learn(sign_of_sum{}, {.classes = 2, .inputs = 1});
    CHECK(signs.answers.size() == 560);
    CHECK(signs.accuracy.token > 0.9);
    learn(count_of_ones{}, {.vocabulary = 2, .classes = 1});
}

}  // namespace
