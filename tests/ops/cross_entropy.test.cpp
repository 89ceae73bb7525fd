#include <fprnn/ops/cross_entropy.hpp>

#include <ops/checks.hpp>

namespace {

using checks::random;
using fprnn::answer;
using fprnn::argument_error;
using fprnn::eigen;
using fprnn::ignored_target;
using fprnn::index;
using fprnn::shape;
using fprnn::tensor;
using targets_of = tensor<std::int32_t>;

/// Every third token is ignored, unless it is the only one.
targets_of targets_for(const shape& s) {
    targets_of targets({s[0], s[1]});
    for (index i = 0; i < targets.size(); ++i)
        targets[i] = i % 3 == 1 ? ignored_target : static_cast<std::int32_t>(i * 7 % s[2]);
    return targets;
}

TEST_CASE("cross_entropy: the mean of −log softmax over the targets that count") {
    for (const shape& s : checks::odd_sizes()) {
        const auto logits = random<double>(s, 1, 3);
        const auto targets = targets_for(s);
        double loss = 0;
        index counted = 0;
        std::vector<answer> answers;
        for (index i = 0; i < targets.size(); ++i) {
            const double* x = logits.data() + i * s[2];
            double sum = 0;
            for (index v = 0; v < s[2]; ++v) sum += std::exp(x[v]);
            const auto best = std::max_element(x, x + s[2]) - x;
            answers.push_back(targets[i] == ignored_target ? answer::ignored
                              : targets[i] == best         ? answer::right
                                                           : answer::wrong);
            if (targets[i] == ignored_target) continue;
            loss -= std::log(std::exp(x[targets[i]]) / sum);
            ++counted;
        }
        for (const auto& r :
             {fprnn::cross_entropy(logits, targets), fprnn::cross_entropy(logits, targets, {}, eigen(2))}) {
            CHECK(std::abs(r.loss - loss / static_cast<double>(counted)) <= 1e-14 * std::max(1.0, loss));
            CHECK(r.tokens == counted);
            CHECK(r.answers == answers);
        }
    }
}

TEST_CASE("cross_entropy: of several largest logits the first is the answer") {
    const tensor<double> logits({1, 3, 4}, {1, 2, 2, 0, 1, 2, 2, 0, 3, 3, 3, 3});
    const tensor<std::int32_t> targets({1, 3}, {1, 2, 3});
    for (const auto& r : {fprnn::cross_entropy(logits, targets), fprnn::cross_entropy(logits, targets, {}, eigen(2))})
        CHECK(r.answers == std::vector{answer::right, answer::wrong, answer::wrong});
}

TEST_CASE("cross_entropy: gradients agree with central differences; fused and accumulating adjoint agree") {
    for (const shape& s : checks::odd_sizes()) {
        auto logits = random<double>(s, 1);
        const auto targets = targets_for(s);
        tensor<double> fused(s), bar(s), more(s);
        fused.fill(77);
        fprnn::cross_entropy(logits, targets, fused);
        fprnn::cross_entropy_back(logits, targets, 2.5, bar);
        checks::check_gradients(
            fprnn::gradcheck([&] { return fprnn::cross_entropy(logits, targets).loss; }, {{"logits", logits, fused}}));
        for (index i = 0; i < bar.size(); ++i) CHECK(bar[i] == doctest::Approx(2.5 * fused[i]).epsilon(1e-14));
        more.fill(10);
        fprnn::cross_entropy_back(logits, targets, 2.5, more);
        checks::check_added_to_ten(more, bar);
    }
}

TEST_CASE("cross_entropy: labels that are smoothed give every class a share, in value and gradient") {
    constexpr double smoothing = 0.3;
    for (const shape& s : checks::odd_sizes()) {
        auto logits = random<double>(s, 1);
        const auto targets = targets_for(s);
        tensor<double> fused(s), bar(s);
        const auto with = fprnn::cross_entropy(logits, targets, fused, fprnn::reference{}, smoothing);
        const index V = s[2];
        double loss = (1 - smoothing) * fprnn::cross_entropy(logits, targets).loss;
        for (index k = 0; k < V; ++k) {
            targets_of all_k = targets;
            for (index i = 0; i < all_k.size(); ++i)
                if (all_k[i] != fprnn::ignored_target) all_k[i] = static_cast<std::int32_t>(k);
            loss += smoothing / static_cast<double>(V) * fprnn::cross_entropy(logits, all_k).loss;
        }
        CHECK(with.loss == doctest::Approx(loss).epsilon(4e-15));
        CHECK(with.answers == fprnn::cross_entropy(logits, targets).answers);
        fprnn::cross_entropy_back(logits, targets, 2.5, bar, fprnn::reference{}, smoothing);
        checks::check_gradients(fprnn::gradcheck(
            [&] { return fprnn::cross_entropy(logits, targets, {}, fprnn::reference{}, smoothing).loss; },
            {{"logits", logits, fused}}));
        for (index i = 0; i < bar.size(); ++i) CHECK(bar[i] == doctest::Approx(2.5 * fused[i]).epsilon(2e-15));
        tensor<double> packs(s);
        const auto p = fprnn::cross_entropy(logits, targets, packs, eigen(2), smoothing);
        CHECK(p.loss == doctest::Approx(with.loss).epsilon(2e-15));
        // Of what is at most 1; with one class it is 0 but for roundings.
        for (index i = 0; i < packs.size(); ++i) CHECK(std::abs(packs[i] - fused[i]) <= 1e-15);
    }
}

TEST_CASE_TEMPLATE("cross_entropy: packs are equivalent to the reference", T, float, double) {
    for (const shape& s : checks::odd_sizes()) {
        const auto logits = random<T>(s, 1, 3);
        const auto targets = targets_for(s);
        tensor<T> a(s), b(s);
        const auto p = fprnn::cross_entropy(logits, targets, a, eigen(2)), q = fprnn::cross_entropy(logits, targets, b);
        CHECK(std::abs(p.loss - q.loss) / static_cast<double>(std::numeric_limits<T>::epsilon()) <= 1);
        CHECK(p.answers == q.answers);
        CHECK(checks::ulps(a, b) <= 2);
    }
}

TEST_CASE_TEMPLATE("cross_entropy: a token's gradient does not depend on its place, nor any bit on the threads", T,
                   float, double) {
    for (index V : {1, 3, 17})
        checks::equal_slices_give_equal_bits(random<T>({1, 21, V}, 1), 21, [](const auto& v) {
            tensor<T> bar(v.shape());
            // One of 40 counts for 1/40 in each: the number of tokens that count is part of the loss.
            fprnn::cross_entropy_back(v, targets_of({1, v.shape()[1]}), static_cast<T>(v.shape()[1]), bar, eigen(2));
            return bar;
        });
    const auto logits = random<T>({5, 30, 17}, 1);
    const auto targets = targets_for({5, 30, 17});
    checks::threads_give_equal_bits([&](eigen e) {
        tensor<T> bar({5, 30, 17});
        const double loss = fprnn::cross_entropy(logits, targets, bar, e).loss;
        CHECK(loss == fprnn::cross_entropy(logits, targets, {}, eigen(1)).loss);
        return bar;
    });
}

TEST_CASE("cross_entropy: logits of any size do not overflow, and those that are not finite show in the loss") {
    const tensor<float> far({1, 1, 3}, {1e30f, -1e30f, 0}), flat({1, 1, 3}, {1e8f, 1e8f, 1e8f});
    CHECK(fprnn::cross_entropy(far, targets_of({1, 1})).loss == 0);
    CHECK(fprnn::cross_entropy(flat, targets_of({1, 1})).loss == doctest::Approx(std::log(3.0)));
    for (float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                      std::numeric_limits<float>::quiet_NaN()}) {
        const tensor<float> logits({1, 1, 3}, {0, bad, 0});
        for (const auto& r : {fprnn::cross_entropy(logits, targets_of({1, 1})),
                              fprnn::cross_entropy(logits, targets_of({1, 1}), {}, eigen(1))}) {
            CHECK(std::isnan(r.loss));
            CHECK(r.answers[0] == answer::wrong);
        }
    }
}

TEST_CASE("cross_entropy: without tokens that count the loss is 0 and the gradient is zero") {
    const auto logits = random<float>({2, 2, 3}, 1);
    const targets_of none({2, 2}, {-1, -1, -1, -1});
    tensor<float> bar({2, 2, 3});
    bar.fill(1);
    const auto r = fprnn::cross_entropy(logits, none, bar);
    CHECK(r.loss == 0);
    CHECK(r.tokens == 0);
    CHECK(r.answers == std::vector<answer>(4, answer::ignored));
    CHECK(checks::same_bits(bar, tensor<float>({2, 2, 3})));
    fprnn::cross_entropy_back(logits, none, 1, bar);
    CHECK(checks::same_bits(bar, tensor<float>({2, 2, 3})));
    for (const shape& s : {shape{0, 5, 3}, shape{2, 0, 3}}) {
        tensor<float> empty(s);
        CHECK(fprnn::cross_entropy(empty, targets_of({s[0], s[1]}), empty, eigen(2)).loss == 0);
        fprnn::cross_entropy_back(empty, targets_of({s[0], s[1]}), 1, empty, eigen(2));
    }
}

TEST_CASE("cross_entropy: wrong shapes and targets outside are named") {
    const tensor<float> logits({2, 3, 4}), flat({2, 3});
    const targets_of targets({2, 3}), short_targets({2, 2}), high({2, 3}, {0, 0, 0, 0, 4, 0}),
        low({2, 3}, {0, -2, 0, 0, 0, 0});
    tensor<float> bar({2, 3, 4}), wrong({2, 3, 5});
    CHECK_THROWS_WITH_AS(fprnn::cross_entropy(flat, targets), "cross_entropy: logits must be [B,T,V], got [2,3]",
                         argument_error);
    CHECK_THROWS_WITH_AS(fprnn::cross_entropy(logits, short_targets), "cross_entropy: targets must be [2,3], got [2,2]",
                         argument_error);
    CHECK_THROWS_WITH_AS(fprnn::cross_entropy(logits, high),
                         "cross_entropy: target 4 at position 4 is outside of [0,4)", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::cross_entropy(logits, low),
                         "cross_entropy: target -2 at position 1 is outside of [0,4)", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::cross_entropy(logits, targets, wrong),
                         "cross_entropy: logits_bar must be [2,3,4], got [2,3,5]", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::cross_entropy(logits, targets, {}, fprnn::reference{}, 1),
                         "cross_entropy: label smoothing must be in [0,1), got 1", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::cross_entropy_back(logits, targets, 1, bar, fprnn::reference{}, -0.5),
                         "cross_entropy_back: label smoothing must be in [0,1), got -0.5", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::cross_entropy_back(flat, targets, 1, bar),
                         "cross_entropy_back: logits must be [B,T,V], got [2,3]", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::cross_entropy_back(logits, short_targets, 1, bar),
                         "cross_entropy_back: targets must be [2,3], got [2,2]", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::cross_entropy_back(logits, high, 1, bar),
                         "cross_entropy_back: target 4 at position 4 is outside of [0,4)", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::cross_entropy_back(logits, targets, 1, wrong),
                         "cross_entropy_back: logits is [2,3,4] but logits_bar is [2,3,5]", argument_error);
}

}  // namespace
