#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/lstm.hpp>
#include <fprnn/models/transformer.hpp>
#include <fprnn/train/trainer.hpp>

#include <train/small_model.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace {

using fprnn::index;
using fprnn::state_passing;
using fprnn::tensor;
using fprnn::training_options;
using fprnn::training_step;
using state = fprnn::training_state<float>;

/// Token t of sequence s is 100 s + t, its target the negative of that.
void numbered(fprnn::view<std::int32_t> tokens, fprnn::view<std::int32_t> targets, std::uint64_t first) {
    for (index b = 0; b < tokens.shape()[0]; ++b)
        for (index t = 0; t < tokens.shape()[1]; ++t) {
            tokens(b, t) = static_cast<std::int32_t>(100 * (static_cast<index>(first) + b) + t);
            targets(b, t) = -tokens(b, t);
        }
}

using batch_of_tokens = fprnn::detail::batch_of<float, decltype((numbered))>;
using windows = fprnn::detail::windows_of<float, batch_of_tokens>;
const fprnn::detail::reader_of<batch_of_tokens> read_numbered = [](batch_of_tokens& batch, index sequences,
                                                                   index length, std::uint64_t first) {
    batch.read(numbered, sequences, length, first);
};

/// The windows of all rows; returns how many sequences begin.
index next(windows& rows, fprnn::ongoing_sequences<float>& at, index first, batch_of_tokens& batch) {
    const index begun = rows.begin(at, first);
    rows.read(read_numbered, at, {0, static_cast<index>(at.left.size())}, batch);
    return begun;
}

TEST_CASE("windows: rows go on where they were, and where a sequence has ended the next one begins, from zeros") {
    const state_passing how{.windows = 3};
    batch_of_tokens batch;
    windows rows(how, 2, 4);
    fprnn::ongoing_sequences<float> at;
    const auto first_tokens = [&] { return std::pair(batch.inputs(0, 0), batch.inputs(1, 0)); };
    const auto right = [](index) { return false; };

    CHECK(next(rows, at, 7, batch) == 2);
    CHECK(batch.inputs.shape() == fprnn::shape{2, 4});
    CHECK(first_tokens() == std::pair(700, 800));
    CHECK(batch.targets(1, 3) == -803);
    CHECK(at.left == std::vector<index>{2, 3});
    at.carry.blocks = {tensor<float>({2, 1}, {1, 2}), tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6})};
    rows.advance(at, [](index row) { return row == 1; });
    CHECK(next(rows, at, 9, batch) == 1);  // row 1 was wrong
    CHECK(first_tokens() == std::pair(704, 900));
    CHECK(batch.targets(0, 1) == -705);
    CHECK(std::vector<float>(at.carry.blocks[0].begin(), at.carry.blocks[0].end()) == std::vector<float>{1, 0});
    CHECK(std::vector<float>(at.carry.blocks[1].begin(), at.carry.blocks[1].end()) ==
          std::vector<float>{1, 2, 3, 0, 0, 0});
    rows.advance(at, right);
    CHECK(next(rows, at, 10, batch) == 1);  // row 0's first sequence has two windows
    CHECK(first_tokens() == std::pair(1000, 904));
    rows.advance(at, right);
    CHECK(next(rows, at, 11, batch) == 0);
    CHECK(first_tokens() == std::pair(1004, 908));
    rows.advance(at, right);
    CHECK(next(rows, at, 11, batch) == 1);  // row 1 was at its end
    CHECK(first_tokens() == std::pair(1008, 1100));

    // Others that know the rows alone find the same.
    windows others(how, 2, 4);
    batch_of_tokens again;
    CHECK(next(others, at, 12, again) == 0);
    CHECK(again.inputs(0, 3) == 1011);
    CHECK(again.inputs(1, 2) == 1102);

    // And those that read a row alone.
    windows part(how, 2, 4);
    part.read(read_numbered, at, {1, 1}, again);
    CHECK(again.inputs.shape() == fprnn::shape{1, 4});
    CHECK(again.inputs(0, 2) == 1102);
    CHECK(again.targets(0, 2) == -1102);
}

TEST_CASE("windows: without ends_when_wrong a sequence has all of its windows") {
    windows rows({.windows = 2, .ends_when_wrong = false}, 1, 2);
    batch_of_tokens batch;
    fprnn::ongoing_sequences<float> at;
    for (const auto token : {0, 2, 100, 102}) {
        (void)next(rows, at, at.window.empty() ? 0 : 1, batch);
        CHECK(batch.inputs(0, 0) == token);
        rows.advance(at, [](index) { return true; });
    }
}

const fprnn::word_problem& data = fprnn::testing::small_data;
template <class Block>
auto model_of(Block block) {
    return fprnn::testing::small_model(block, 1e-6);
}
training_options with(const state_passing& how, index steps) {
    return {.batch = 4,
            .length = 6,
            .steps = steps,
            .optimiser = {.learning_rate = 0.01},
            .warmup_steps = 0,
            .state_passing = how};
}
const auto go_on = [](const training_step&) { return true; };

TEST_CASE("train: the windows of state_passing have the losses of evaluations of the whole sequences") {
    const auto check = [](const auto& model) {
        auto options = with({.windows = 5, .from = 0, .ends_when_wrong = false}, 9);
        options.optimiser.learning_rate = 1e-30;
        state s(model.template init<float>(fprnn::seed{0}), options);
        tensor<std::int32_t> tokens({12, 30}), targets({12, 30});
        data(tokens, targets, 0);
        const auto logits = model.evaluate(s.theta, std::as_const(tokens).view());
        index longest = 0;
        fprnn::train(model, s, options, data, [&](const training_step& step) {
            tensor<float> part({4, 6, 3});
            tensor<std::int32_t> wanted({4, 6});
            for (index b = 0; b < 4; ++b) {
                const auto row = static_cast<std::size_t>(b);
                const index sequence = s.ongoing.sequence[row], window = s.ongoing.window[row] - 1;
                longest = std::max(longest, window + 1);
                for (index t = 0; t < 6; ++t) {
                    wanted(b, t) = targets(sequence, 6 * window + t);
                    for (index v = 0; v < 3; ++v) part(b, t, v) = logits(sequence, 6 * window + t, v);
                }
            }
            const double expected = cross_entropy(std::as_const(part).view(), std::as_const(wanted).view()).loss;
            CHECK(std::abs(step.loss - expected) <= 6e-8 * expected);  // a rounding of float
            return true;
        });
        CHECK(longest == 5);
        CHECK(s.sequences == 10);
    };
    check(model_of(fprnn::models::fp_mamba<2>()));
    check(model_of(fprnn::models::lstm()));
}

/// The target of (i, 1) is i / 4, of a token and of its window.
struct ramps {
    static index inputs() { return 2; }
    static index outputs() { return 1; }
    void operator()(fprnn::view<float> x, fprnn::view<float> y, std::uint64_t first) const {
        for (index b = 0; b < x.shape()[0]; ++b)
            for (index t = 0; t < x.shape()[1]; ++t) {
                x(b, t, 0) = static_cast<float>(static_cast<index>(first) + b + t);
                x(b, t, 1) = 1;
                y(b, t, 0) = 0.25F * x(b, t, 0);
            }
    }
};

TEST_CASE("train: windows of real inputs and targets are those of the whole sequences") {
    const fprnn::models::sequence_model model(fprnn::models::lstm(),
                                              {.classes = 1, .d_model = 4, .d_inner = 4, .inputs = 2});
    auto options = with({.windows = 3, .from = 0}, 3);
    options.batch = 1;
    options.optimiser.learning_rate = 1e-30;
    auto theta = model.init<float>(fprnn::seed{0});
    tensor<float> x({1, 18, 2}), y({1, 18, 1});
    ramps{}(x, y, 0);
    const auto whole =
        fprnn::mean_square(model.evaluate(theta, std::as_const(x).view()).view(), std::as_const(y).view());
    double sum = 0;
    fprnn::train(model, theta, options, ramps{}, [&](const training_step& s) {
        CHECK(s.sequences == 1);
        sum += s.loss / 3;
        return true;
    });
    CHECK(sum == doctest::Approx(whole.loss).epsilon(1e-15).scale(0));
}

TEST_CASE("train: what throws while windows go on leaves the state of the last whole step") {
    const auto model = model_of(fprnn::models::lstm());
    const auto options = with({.windows = 3, .from = 0, .ends_when_wrong = false}, 9);
    state whole(model.init<float>(fprnn::seed{0}), options), parts = whole;
    fprnn::train(model, whole, options, data, go_on);
    bool throws = true;
    const auto sometimes = [&](fprnn::view<std::int32_t> tokens, fprnn::view<std::int32_t> targets,
                               std::uint64_t first) {
        if (throws && first == 6) throw std::runtime_error("no more");
        data(tokens, targets, first);
    };
    CHECK_THROWS_WITH_AS(fprnn::train(model, parts, options, sometimes, go_on), "no more", std::runtime_error);
    CHECK(parts.steps == 3);
    CHECK(parts.sequences == 6);
    throws = false;
    fprnn::train(model, parts, options, sometimes, go_on);
    CHECK(std::memcmp(parts.theta.data(), whole.theta.data(),
                      static_cast<std::size_t>(whole.theta.size()) * sizeof(float)) == 0);
}

TEST_CASE("train: windows begin to go on at their share of the training, and what is wrong begins anew") {
    const auto model = model_of(fprnn::models::lstm());
    auto theta = model.init<float>(fprnn::seed{0});
    std::vector<index> begun;
    index before = 0;
    fprnn::train(model, theta, with({.windows = 3, .from = 0.5, .ends_when_wrong = false}, 12), data,
                 [&](const training_step& s) {
                     begun.push_back(s.sequences - before);
                     before = s.sequences;
                     return true;
                 });
    CHECK(begun == std::vector<index>{4, 4, 4, 4, 4, 4, 4, 1, 1, 2, 1, 1});
    // An untrained model has hardly six right answers in a row.
    auto other = model.init<float>(fprnn::seed{0});
    index all = 0;
    fprnn::train(model, other, with({.windows = 3, .from = 0}, 12), data, [&](const training_step& s) {
        all = s.sequences;
        return true;
    });
    CHECK(all >= 44);
}

TEST_CASE("train: with windows that go on a state that is taken up again gives the same bits") {
    const auto model = model_of(fprnn::models::fp_mamba<2>());
    auto options = with({.windows = 3, .from = 0.2}, 40);
    options.length = 2;  // of which both are right often enough
    state whole(model.init<float>(fprnn::seed{0}), options);
    std::vector<state> copies{whole};
    std::vector<training_step> steps;
    fprnn::train(model, whole, options, data, [&](const training_step& s) {
        copies.push_back(whole);
        steps.push_back(s);
        return true;
    });
    bool goes_on = false, begins_alone = false;
    for (std::size_t i = 9; i < steps.size(); ++i) {
        const index begun = steps[i].sequences - steps[i - 1].sequences;
        goes_on = goes_on || begun < 4;
        begins_alone = begins_alone || (begun > 0 && begun < 4);
    }
    REQUIRE(goes_on);
    REQUIRE(begins_alone);
    for (std::size_t from = 0; from < copies.size(); from += 3) {
        CAPTURE(from);
        state again = copies[from];
        std::size_t at = from;
        fprnn::train(model, again, options, data, [&](const training_step& s) {
            CHECK(s.loss == steps[at].loss);
            CHECK(s.sequences == steps[at++].sequences);
            return true;
        });
        CHECK(std::memcmp(again.theta.data(), whole.theta.data(),
                          static_cast<std::size_t>(whole.theta.size()) * sizeof(float)) == 0);
        CHECK(again.ongoing.window == whole.ongoing.window);
        CHECK(again.ongoing.left == whole.ongoing.left);
        for (std::size_t i = 0; i < 2; ++i)
            CHECK(std::equal(again.ongoing.carry.blocks[i].begin(), again.ongoing.carry.blocks[i].end(),
                             whole.ongoing.carry.blocks[i].begin()));
        CHECK(again.ongoing.sequence == whole.ongoing.sequence);
    }
}

/// Logits of the parameter alone: nothing goes on.
struct table {
    fprnn::variable operator()(fprnn::tape<float>& t, fprnn::view<const std::int32_t> tokens,
                               std::vector<fprnn::solution<float>>*) const {
        return fprnn::embedding(t, "table", tokens);
    }
};

TEST_CASE("train: state_passing that cannot be is refused before anything is trained") {
    const auto model = model_of(fprnn::models::lstm());
    auto theta = model.init<float>(fprnn::seed{0});
    const auto refused = [&](const state_passing& how, const char* said) {
        CHECK_THROWS_WITH_AS(fprnn::train(model, theta, with(how, 4), data, go_on), said, fprnn::argument_error);
    };
    refused({.windows = 0}, "train: state_passing.windows must be at least 1, got 0");
    refused({.from = -0.5}, "train: state_passing.from must be in [0,1], got -0.5");
    refused({.from = std::numeric_limits<double>::quiet_NaN()}, "train: state_passing.from must be in [0,1], got nan");
    CHECK_THROWS_AS(with({.windows = std::numeric_limits<index>::max()}, 4).validate(), fprnn::argument_error);

    const fprnn::models::sequence_model attends(
        fprnn::models::transformer(),
        {.vocabulary = 3, .classes = 3, .d_model = 4, .d_inner = 4, .heads = 2, .d_key = 2, .context = 17});
    auto weights = attends.init<float>(fprnn::seed{0});
    const auto six = [](index n) { return with({.windows = n, .from = 0}, 4); };
    REQUIRE(six(3).length == 6);
    CHECK_THROWS_WITH_AS(fprnn::train(attends, weights, six(3), data, go_on),
                         "train: state_passing: a sequence must have at most 17 tokens, the context of the model's "
                         "attention, got 3 windows of 6",
                         fprnn::argument_error);
    CHECK_NOTHROW(fprnn::train(attends, weights, six(2), data, [](const training_step&) { return false; }));

    fprnn::parameter_tree<float> rows;
    rows.add({"table", {3, 3}, {fprnn::initialiser::rule::normal, 0.1}}, fprnn::seed{0});
    CHECK_THROWS_WITH_AS(
        fprnn::train(table{}, rows, with({}, 4), data, go_on),
        "train: state_passing needs the CPU and a model that is callable as model(tape, inputs, carry, &how)",
        fprnn::argument_error);

    auto options = with({.windows = 3, .from = 0}, 4);
    state four(model.init<float>(fprnn::seed{0}), options);
    fprnn::train(model, four, options, data, [](const training_step& s) { return s.step < 2; });
    REQUIRE(four.ongoing.window.size() == 4);
    options.batch = 5;
    CHECK_THROWS_WITH_AS(fprnn::train(model, four, options, data, go_on),
                         "train: the state's sequences go on in 4 rows, expected 5, the batch", fprnn::argument_error);
    options.batch = 4;
    options.state_passing.reset();
    CHECK_THROWS_WITH_AS(fprnn::train(model, four, options, data, go_on),
                         "train: the state's sequences go on in 4 rows, expected none", fprnn::argument_error);
    options.state_passing = state_passing{.windows = 3, .from = 0};
    const auto refuses = [&](state s, const auto& change, const std::string& said) {
        change(s.ongoing);
        CHECK_THROWS_WITH_AS(fprnn::train(model, s, options, data, go_on), said.c_str(), fprnn::argument_error);
    };
    using ongoing = fprnn::ongoing_sequences<float>;
    refuses(
        four, [](ongoing& o) { o.window[2] = 4; }, "train: the state's ongoing window must be in [0,3], got 4");
    refuses(
        four, [](ongoing& o) { o.left[2] = -1; },
        "train: the state's ongoing left must be in [0," + std::to_string(3 - four.ongoing.window[2]) + "], got -1");
    refuses(
        four, [](ongoing& o) { o.sequence[0] = 1000; },
        "train: the state's ongoing sequence must be in [0," + std::to_string(four.sequences - 1) + "], got 1000");
    refuses(
        four, [](ongoing& o) { o.sequence.pop_back(); },
        "train: the state's ongoing sequence must be of as many rows as left, 4, got 3");
    refuses(
        four,
        [](ongoing& o) {
            o.left = {0, 0, 1, 0}, o.window = {1, 1, 1, 1}, o.carry.blocks.clear();
        },
        "train: the state's ongoing carry must be there where windows are left, got 0");
    const index width = four.ongoing.carry.blocks[0].shape()[1];
    refuses(
        four,
        [&](ongoing& o) {
            o.carry.blocks[0] = tensor<float>({1, width});
        },
        "train: the carry that windows go on from must be [4,numbers] in every block, got [1," + std::to_string(width) +
            "]");
}

}  // namespace
