#include <fprnn/train/evaluate.hpp>

#include <doctest/doctest.h>

namespace {

using fprnn::answer;
using fprnn::index;
using fprnn::measure_accuracy;
using fprnn::median;
using fprnn::tensor;

TEST_CASE("evaluate: a sequence counts when all its tokens are right, of a prefix when those of the prefix are") {
    constexpr auto r = answer::right, w = answer::wrong;
    const std::vector<answer> answers{r, r, r, r,  //
                                      r, r, w, r,  //
                                      w, r, r, r};
    CHECK(measure_accuracy(answers, 3, 4).token == doctest::Approx(10.0 / 12));
    CHECK(measure_accuracy(answers, 3, 4).sequence == doctest::Approx(1.0 / 3));
    CHECK(measure_accuracy(answers, 3, 2).token == doctest::Approx(5.0 / 6));
    CHECK(measure_accuracy(answers, 3, 2).sequence == doctest::Approx(2.0 / 3));
    CHECK(measure_accuracy({}, 0, 0).token == 0);
}

TEST_CASE("evaluate: a token whose target is ignored is neither right nor wrong, nor is a sequence of them") {
    constexpr auto r = answer::right, w = answer::wrong, i = answer::ignored;
    const std::vector<answer> answers{i, i, i, r,  //
                                      i, w, i, r,  //
                                      i, i, i, i};
    CHECK(measure_accuracy(answers, 3, 4).token == doctest::Approx(2.0 / 3));
    CHECK(measure_accuracy(answers, 3, 4).sequence == doctest::Approx(1.0 / 2));
    CHECK(measure_accuracy(answers, 3, 2).token == 0);
    CHECK(measure_accuracy(answers, 3, 2).sequence == 0);
    CHECK(measure_accuracy(answers, 3, 1).sequence == 0);  // of none
}

TEST_CASE("evaluate: the median of an even number of values is between the middle two") {
    std::vector<int> odd{5, 1, 3}, even{4, 1, 3, 2}, none;
    CHECK(median(odd) == 3);
    CHECK(median(even) == 2.5);
    CHECK(median(none) == 0);
}

TEST_CASE("evaluate: the summary runs over all layers and sequences, and is none where nothing iterated") {
    fprnn::convergence a(2), b(2);
    CHECK_FALSE(fprnn::summarise(std::vector<const fprnn::convergence*>{&a, &b}, 4).has_value());
    a.iterations = {3, 5};
    b.iterations = {7, 9};
    a.residual = {1e-5, 2e-5};
    b.residual = {3e-5, 4e-1};
    a.tokens_converged = {4, 4};
    b.tokens_converged = {4, 2};
    const auto s = fprnn::summarise(std::vector<const fprnn::convergence*>{&a, &b}, 4);
    REQUIRE(s.has_value());
    CHECK(s->median_iterations == 6);
    CHECK(s->median_residual == doctest::Approx(2.5e-5).epsilon(1e-12).scale(0));
    CHECK(s->largest_residual == doctest::Approx(4e-1).epsilon(1e-12).scale(0));
    CHECK(s->share_converged == doctest::Approx(14.0 / 16).epsilon(1e-12));
}

TEST_CASE("evaluate: a layer without a fixed point does not count in the summary") {
    fprnn::convergence mamba(2), rnn(2);
    rnn.iterations = {20, 20};
    rnn.residual = {1e-5, 3e-5};
    rnn.tokens_converged = {4, 4};
    for (const auto& layers : {std::vector{&mamba, &rnn}, std::vector{&rnn, &mamba, &mamba}}) {
        const auto s = fprnn::summarise(layers, 4);
        REQUIRE(s.has_value());
        CHECK(s->share_converged == 1);
        CHECK(s->median_iterations == 20);
        CHECK(s->median_residual == doctest::Approx(2e-5).epsilon(1e-12).scale(0));
        CHECK(s->largest_residual == 3e-5);
    }
}

/// A model whose logits name the token itself.
struct echo {
    index classes;
    tensor<float> evaluate(const fprnn::parameter_tree<float>&, fprnn::view<const std::int32_t> tokens,
                           std::vector<fprnn::solution<float>>*, const fprnn::eigen&) const {
        tensor<float> logits({tokens.shape()[0], tokens.shape()[1], classes});
        for (index i = 0; i < tokens.size(); ++i) logits[i * classes + tokens[i]] = 1;
        return logits;
    }
};

TEST_CASE("evaluate: every sequence is seen once, also where they do not fill the last batch") {
    // Sequence s holds token s mod 5; the target is the token, except in sequences 0 and 299.
    const auto sample = [](fprnn::view<std::int32_t> tokens, fprnn::view<std::int32_t> targets, std::uint64_t first) {
        for (index b = 0; b < tokens.shape()[0]; ++b)
            for (index t = 0; t < tokens.shape()[1]; ++t) {
                const auto s = first + static_cast<std::uint64_t>(b);
                tokens(b, t) = static_cast<std::int32_t>(s % 5);
                targets(b, t) = static_cast<std::int32_t>((s == 0 || s == 299 ? s + 1 : s) % 5);
            }
    };
    const fprnn::parameter_tree<float> none;
    const auto e = fprnn::evaluate(echo{5}, none, 3, 300, sample, fprnn::eigen(2));
    CHECK(e.accuracy.sequence == doctest::Approx(298.0 / 300));
    CHECK(e.accuracy.token == doctest::Approx(298.0 / 300));
    CHECK(e.answers.size() == 900);
    // The token has the logit 1, the others 0.
    const double all = std::log(4 + std::exp(1.0)), right = all - 1;
    CHECK(e.loss == doctest::Approx((298 * right + 2 * all) / 300).epsilon(1e-6));
    CHECK_FALSE(e.convergence.has_value());
    CHECK_THROWS_WITH_AS(fprnn::evaluate(echo{5}, none, 0, 1, sample, fprnn::eigen(1)),
                         "evaluate: length must be at least 1, got 0", fprnn::argument_error);
    CHECK_THROWS_AS(fprnn::evaluate(echo{5}, none, 1, 0, sample, fprnn::eigen(1)), fprnn::argument_error);
    constexpr fprnn::index many = fprnn::index{1} << 40;
    CHECK_THROWS_WITH_AS(fprnn::evaluate(echo{5}, none, many, many, sample, fprnn::eigen(1)),
                         "evaluate: sequences * length: 1099511627776 x 1099511627776 does not fit 64 bits",
                         fprnn::argument_error);
}

TEST_CASE("evaluate: the loss is the mean over the tokens that count, of all batches together") {
    // Of sequence s the first s mod 3 tokens count, and the target is the token where s is even.
    const auto sample = [](fprnn::view<std::int32_t> tokens, fprnn::view<std::int32_t> targets, std::uint64_t first) {
        for (index b = 0; b < tokens.shape()[0]; ++b)
            for (index t = 0; t < tokens.shape()[1]; ++t) {
                const auto s = static_cast<std::int32_t>(first) + static_cast<std::int32_t>(b);
                tokens(b, t) = s % 5;
                targets(b, t) = t >= s % 3 ? fprnn::ignored_target : (s + s % 2) % 5;
            }
    };
    const fprnn::parameter_tree<float> none;
    const auto e = fprnn::evaluate(echo{5}, none, 4, 600, sample, fprnn::eigen(2));
    const double all = std::log(4 + std::exp(1.0));
    CHECK(e.loss == doctest::Approx(all - 0.5).epsilon(1e-6));
    CHECK(e.accuracy.token == 0.5);
    const auto nothing = [&](auto tokens, auto targets, std::uint64_t first) {
        sample(tokens, targets, first);
        std::fill(targets.begin(), targets.end(), fprnn::ignored_target);
    };
    CHECK(fprnn::evaluate(echo{5}, none, 4, 3, nothing, fprnn::eigen(1)).loss == 0);
}

TEST_CASE("measure_accuracy: what is not whole sequences, or shorter than the prefix, is refused") {
    const std::vector<answer> six(6, answer::right);
    CHECK(fprnn::measure_accuracy(six, 2, 3).sequence == 1);
    CHECK_THROWS_WITH_AS(fprnn::measure_accuracy(six, 2, 4), "measure_accuracy: prefix must be in [0,3], got 4",
                         fprnn::argument_error);
    // Twice this is no index.
    CHECK_THROWS_WITH_AS(fprnn::measure_accuracy(six, 2, fprnn::index{1} << 62),
                         "measure_accuracy: prefix must be in [0,3], got 4611686018427387904", fprnn::argument_error);
    CHECK_THROWS_WITH_AS(fprnn::measure_accuracy(six, 2, -1), "measure_accuracy: prefix must be in [0,3], got -1",
                         fprnn::argument_error);
    CHECK_THROWS_WITH_AS(fprnn::measure_accuracy(six, 4, 1),
                         "measure_accuracy: answers must hold sequences = 4 of equal length, got 6 entries",
                         fprnn::argument_error);
    CHECK_THROWS_AS(fprnn::measure_accuracy(six, 0, 1), fprnn::argument_error);
    CHECK(fprnn::measure_accuracy({}, 0, 0).token == fprnn::measure_accuracy(six, 2, 0).token);
}

}  // namespace
