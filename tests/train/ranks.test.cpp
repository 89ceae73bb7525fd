#include "thread_ranks.hpp"

#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/lstm.hpp>
#include <fprnn/train/trainer.hpp>

#include <train/small_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using fprnn::index;
using fprnn::training_options;
using fprnn::training_step;
using fprnn::testing::on_ranks;

const fprnn::word_problem& data = fprnn::testing::small_data;
template <class Block>
auto model_of(Block block) {
    return fprnn::testing::small_model(block, 1e-4);
}
training_options options() {
    return {.batch = 7,
            .micro_batches = 5,
            .length = 6,
            .first_length = 3,
            .full_length_at = 0.3,
            .steps = 12,
            .optimiser = {.learning_rate = 0.01},
            .warmup_steps = 0};
}
using state = fprnn::training_state<float>;

struct run {
    state trained;
    std::vector<training_step> steps{};
    fprnn::training_result result{};
};
template <class Model, class Sample>
run train_on(const Model& model, const training_options& o, Sample sample, fprnn::ranks* together) {
    run r{state(model.template init<float>(fprnn::seed{0}), o)};
    r.result = fprnn::detail::train<float>(
        model, r.trained.theta, r.trained, o, sample,
        [&](const training_step& s) {
            r.steps.push_back(s);
            return true;
        },
        fprnn::eigen(1), together);
    return r;
}
template <class Numbers>
bool same_bits(const Numbers& a, const Numbers& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
}
void check_same(const run& a, const run& b) {
    CHECK(same_bits(a.trained.theta, b.trained.theta));
    CHECK(same_bits(a.trained.optimiser.second_moment(), b.trained.optimiser.second_moment()));
    CHECK(a.trained.steps == b.trained.steps);
    CHECK(a.trained.sequences == b.trained.sequences);
    CHECK(a.trained.learnt == b.trained.learnt);
    CHECK(a.trained.ongoing.sequence == b.trained.ongoing.sequence);
    CHECK(a.trained.ongoing.left == b.trained.ongoing.left);
    REQUIRE(a.trained.ongoing.carry.blocks.size() == b.trained.ongoing.carry.blocks.size());
    for (std::size_t i = 0; i < a.trained.ongoing.carry.blocks.size(); ++i)
        CHECK(same_bits(a.trained.ongoing.carry.blocks[i], b.trained.ongoing.carry.blocks[i]));
    CHECK(a.result.end == b.result.end);
    CHECK(a.result.message == b.result.message);
}
/// On 1 to 5 ranks the training is that of one process.
template <class Model, class Sample>
void check_ranks(const Model& model, const training_options& o, Sample sample) {
    const run alone = train_on(model, o, sample, nullptr);
    for (const index size : {1, 2, 3, 4, 5}) {
        CAPTURE(size);
        std::vector<run> all(static_cast<std::size_t>(size), alone);
        on_ranks(size, [&](fprnn::ranks& together) {
            all[static_cast<std::size_t>(together.rank())] = train_on(model, o, sample, &together);
        });
        for (const run& one : all) check_same(one, alone);
        REQUIRE(all[0].steps.size() == alone.steps.size());
        for (std::size_t i = 0; i < alone.steps.size(); ++i) {
            const training_step &a = all[0].steps[i], &b = alone.steps[i];
            CHECK(a.length == b.length);
            CHECK(a.loss == b.loss);
            CHECK(a.token_accuracy == b.token_accuracy);
            CHECK(a.sequence_accuracy == b.sequence_accuracy);
            CHECK(a.iterations == b.iterations);
            CHECK(a.share_converged == b.share_converged);
            CHECK(a.adjoint_iterations == b.adjoint_iterations);
            CHECK(a.gradient_norm == b.gradient_norm);
        }
        for (std::size_t r = 1; r < all.size(); ++r) CHECK(all[r].steps.empty());
    }
}

TEST_CASE("ranks: a training has the bits of one process, whoever computes which micro-batch") {
    SUBCASE("fixed points") { check_ranks(model_of(fprnn::models::fp_mamba<1>()), options(), data); }
    SUBCASE("as many micro-batches as sequences") {
        training_options o = options();
        o.micro_batches = 7;
        check_ranks(model_of(fprnn::models::lstm()), o, data);
    }
    SUBCASE("windows that go on, and end when wrong") {
        training_options o = options();
        o.state_passing = fprnn::state_passing{.windows = 4, .from = 0.4};
        check_ranks(model_of(fprnn::models::fp_mamba<1>()), o, data);
    }
}

/// Logits of NaN where the last sequence begins with token 2.
template <class Model>
struct spoilt {
    Model model;
    fprnn::variable operator()(fprnn::tape<float>& t, fprnn::view<const std::int32_t> tokens,
                               std::vector<fprnn::solution<float>>* how) const {
        const fprnn::variable y = model(t, tokens, how);
        if (tokens(tokens.shape()[0] - 1, 0) != 2) return y;
        fprnn::tensor<float> value = t.value(y);
        std::fill(value.begin(), value.end(), std::numeric_limits<float>::quiet_NaN());
        return t.leaf(std::move(value));
    }
    template <class T>
    auto init(fprnn::seed s) const {
        return model.template init<T>(s);
    }
};

TEST_CASE("ranks: a loss that is not finite on one of them ends all with the parameters before") {
    const auto whole = model_of(fprnn::models::lstm());
    const spoilt<std::decay_t<decltype(whole)>> model{whole};
    const auto sample = [](fprnn::view<std::int32_t> tokens, fprnn::view<std::int32_t> targets, std::uint64_t first) {
        for (index b = 0; b < tokens.shape()[0]; ++b)
            for (index t = 0; t < tokens.shape()[1]; ++t)
                tokens(b, t) = targets(b, t) = static_cast<std::int32_t>(first) + b == 27 ? 2 : 1;
    };
    training_options o = options();
    o.first_length = o.length;
    const run alone = train_on(model, o, sample, nullptr);
    CHECK(alone.result.end == fprnn::training_end::nonfinite);
    CHECK(alone.result.steps == 2);
    for (const index size : {2, 5}) {
        CAPTURE(size);
        on_ranks(size, [&](fprnn::ranks& together) { check_same(train_on(model, o, sample, &together), alone); });
    }
}

TEST_CASE("ranks: an evaluation has the bits of one process") {
    const auto model = model_of(fprnn::models::fp_mamba<1>());
    const auto theta = model.init<float>(fprnn::seed{0});
    for (const index sequences : {1, 600}) {
        const auto alone = fprnn::evaluate(model, theta, 20, sequences, data);
        for (const index size : {1, 2, 4}) {
            CAPTURE(sequences);
            CAPTURE(size);
            on_ranks(size, [&](fprnn::ranks& together) {
                const auto e =
                    fprnn::detail::evaluate<float>(model, theta, 20, sequences, data, fprnn::eigen(1), &together);
                CHECK(e.loss == alone.loss);
                CHECK(e.answers == alone.answers);
                CHECK(e.accuracy.sequence == alone.accuracy.sequence);
                CHECK(e.convergence->median_iterations == alone.convergence->median_iterations);
                CHECK(e.convergence->largest_residual == alone.convergence->largest_residual);
                CHECK(e.convergence->share_converged == alone.convergence->share_converged);
            });
        }
    }
}

TEST_CASE("ranks: whose parameters come apart are refused by all in the same step") {
    const auto model = model_of(fprnn::models::lstm());
    on_ranks(3, [&](fprnn::ranks& together) {
        state s(model.init<float>(fprnn::seed{0}), options());
        if (together.rank() == 1) s.theta.data()[3] += 1e-6f;
        CHECK_THROWS_WITH_AS(fprnn::detail::train<float>(
                                 model, s.theta, s, options(), data, [](const training_step&) { return true; },
                                 fprnn::eigen(1), &together),
                             doctest::Contains("train: rank 1 has other parameters than rank 0"),
                             fprnn::argument_error);
        CHECK(s.steps == 0);
    });
}

TEST_CASE("ranks: who computes something else of the first sequences is refused by all") {
    using fprnn::models::fp_mamba;
    const auto refused = [](auto&& train_as) {
        on_ranks(2, [&](fprnn::ranks& together) {
            CHECK_THROWS_WITH_AS(train_as(together, together.rank() == 1),
                                 doctest::Contains("train: rank 1 has another loss or gradient of the first sequences"),
                                 fprnn::argument_error);
        });
    };
    SUBCASE("another mixer of equal parameters") {
        refused([](fprnn::ranks& together, bool other) {
            return other ? train_on(model_of(fp_mamba(fprnn::dplr<2>)), options(), data, &together)
                         : train_on(model_of(fp_mamba(fprnn::householder<2>)), options(), data, &together);
        });
    }
    SUBCASE("another adjoint, whose loss is the same") {
        refused([](fprnn::ranks& together, bool other) {
            auto model = model_of(fp_mamba<1>());
            if (other) model.block().adjoint = fprnn::one_step{};
            return train_on(model, options(), data, &together);
        });
    }
    SUBCASE("other data from the second sequence on") {
        refused([](fprnn::ranks& together, bool other) {
            const auto sample = [other](fprnn::view<std::int32_t> tokens, fprnn::view<std::int32_t> targets,
                                        std::uint64_t first) {
                data(tokens, targets, first);
                for (index b = 0; other && b < tokens.shape()[0]; ++b)
                    if (first + static_cast<std::uint64_t>(b) == 1) targets(b, 0) = (targets(b, 0) + 1) % 3;
            };
            return train_on(model_of(fp_mamba<1>()), options(), sample, &together);
        });
    }
}

TEST_CASE("ranks: more of them than micro-batches are refused") {
    const auto model = model_of(fprnn::models::lstm());
    CHECK_THROWS_WITH_AS(on_ranks(6, [&](fprnn::ranks& together) { train_on(model, options(), data, &together); }),
                         "train: micro_batches must be at least the number of ranks = 6, got 5", fprnn::argument_error);
}

TEST_CASE("ranks: shares are consecutive, cover everything and differ by one at most") {
    for (const index items : {0, 1, 5, 12, 100})
        for (const index size : {1, 2, 3, 7, 100}) {
            index next = 0;
            for (index r = 0; r < size; ++r) {
                const auto [first, last] = fprnn::detail::share_of(items, size, r);
                CHECK(first == next);
                CHECK(last - first >= items / size);
                CHECK(last - first <= items / size + 1);
                for (index i = first; i < last; ++i) CHECK(fprnn::detail::owner_of(i, items, size) == r);
                next = last;
            }
            CHECK(next == items);
        }
    constexpr index most = std::numeric_limits<index>::max();
    CHECK(fprnn::detail::share_of(most, 1, 0).last == most);
}

TEST_CASE("ranks: what is packed comes out again") {
    fprnn::detail::packed p;
    p.put(std::vector<int>{1, 2, 3}).put(2.5).put(std::string_view("μ")).put(std::vector<double>{});
    fprnn::detail::packed q({p.bytes().begin(), p.bytes().end()});
    CHECK(q.get_vector<int>() == std::vector<int>{1, 2, 3});
    CHECK(q.get<double>() == 2.5);
    CHECK(q.get_text() == "μ");
    CHECK(q.get_vector<double>().empty());
}

}  // namespace
