#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/sequence_model.hpp>
#include <fprnn/tasks/word_problem.hpp>
#include <fprnn/train/trainer.hpp>

#include <doctest/doctest.h>

#include <cstring>

namespace {

using fprnn::index;
using fprnn::parameter_tree;
using fprnn::training_end;
using fprnn::training_options;
using fprnn::training_step;
using state = fprnn::training_state<float>;

const fprnn::models::sequence_model model(
    fprnn::models::fp_mamba<2>(),
    {.vocabulary = 3, .classes = 3, .d_model = 5, .d_inner = 6, .d_state = 3, .layers = 1},
    fprnn::chunked{.length = 1, .tolerance = 1e-3}, fprnn::implicit{});
const fprnn::word_problem data{.group = fprnn::finite_group("Z3"), .seed = {1}};

/// All of it moves within 24 steps: warm-up, curriculum, decay.
const training_options options{.batch = 4,
                               .length = 6,
                               .first_length = 2,
                               .lengthen_at = 0.1,
                               .steps = 24,
                               .optimiser = {.learning_rate = 0.01},
                               .warmup_steps = 5};

state begin() { return {model.init<float>(fprnn::seed{0}), options}; }

bool same_bits(const parameter_tree<float>& a, const parameter_tree<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * 4) == 0;
}

/// But for the time.
void check_equal(const state& a, const state& b) {
    CHECK(same_bits(a.theta, b.theta));
    CHECK(same_bits(a.last_good, b.last_good));
    CHECK(same_bits(a.optimiser.first_moment(), b.optimiser.first_moment()));
    CHECK(same_bits(a.optimiser.second_moment(), b.optimiser.second_moment()));
    CHECK(a.optimiser.steps() == b.optimiser.steps());
    CHECK(a.last_good_steps == b.last_good_steps);
    CHECK(a.steps == b.steps);
    CHECK(a.sequences == b.sequences);
    CHECK(a.length == b.length);
    CHECK(a.learnt == b.learnt);
}

void check_equal(const training_step& a, const training_step& b) {
    CHECK(a.step == b.step);
    CHECK(a.length == b.length);
    CHECK(a.sequences == b.sequences);
    CHECK(a.loss == b.loss);
    CHECK(a.token_accuracy == b.token_accuracy);
    CHECK(a.sequence_accuracy == b.sequence_accuracy);
    CHECK(a.iterations == b.iterations);
    CHECK(a.share_converged == b.share_converged);
    CHECK(a.learning_rate == b.learning_rate);
    CHECK(a.gradient_norm == b.gradient_norm);
    CHECK(a.done == b.done);
}

const auto go_on = [](const training_step&) { return true; };

TEST_CASE("training state: a run that goes on from any step is to the bit the one that was never interrupted") {
    state whole = begin();
    std::vector<state> copies{whole};
    std::vector<training_step> steps;
    const auto result = fprnn::train(model, whole, options, data, [&](const training_step& s) {
        copies.push_back(whole);
        steps.push_back(s);
        return true;
    });
    CHECK(result.end == training_end::steps);
    CHECK(whole.steps == 24);
    REQUIRE(steps.front().length == 2);
    REQUIRE(steps.back().length == 6);

    for (const int threads : {1, 2, 3})
        for (std::size_t from = 0; from < copies.size(); from += 2 + static_cast<std::size_t>(threads)) {
            CAPTURE(threads);
            CAPTURE(from);
            state again = copies[from];
            std::size_t at = from;
            const auto end = fprnn::train(
                model, again, options, data,
                [&](const training_step& s) {
                    check_equal(s, steps[at++]);
                    return true;
                },
                fprnn::eigen(threads));
            CHECK(at == steps.size());
            CHECK(end.end == training_end::steps);
            CHECK(end.steps == 24);
            check_equal(again, whole);
        }
}

TEST_CASE("training state: the call with parameters alone is the one with a state from the beginning") {
    state one = begin();
    auto theta = one.theta;
    fprnn::train(model, one, options, data, go_on);
    fprnn::train(model, theta, options, data, go_on);
    CHECK(same_bits(one.theta, theta));
}

TEST_CASE("training state: what an observer stopped goes on, and what is over does nothing") {
    state whole = begin(), parts = begin();
    fprnn::train(model, whole, options, data, go_on);
    while (parts.steps < options.steps) {
        const index stop = parts.steps + 5;
        const auto result =
            fprnn::train(model, parts, options, data, [&](const training_step& s) { return s.step < stop; });
        CHECK(result.end ==
              (parts.steps < options.steps || stop == options.steps ? training_end::stopped : training_end::steps));
    }
    check_equal(parts, whole);
    const auto result = fprnn::train(model, parts, options, data, [](const training_step&) {
        FAIL("a step after the last one");
        return true;
    });
    CHECK(result.end == training_end::steps);
    CHECK(result.steps == 24);
    check_equal(parts, whole);
}

TEST_CASE("training state: whoever throws, the state is that of a whole step and goes on") {
    state whole = begin(), parts = begin();
    fprnn::train(model, whole, options, data, go_on);
    int calls = 0;
    const auto sometimes = [&] {
        if (++calls % 3 == 0) throw std::runtime_error("the data are on a disk that fails now and then");
    };
    const auto sample = [&](auto tokens, auto targets, std::uint64_t first) {
        data(tokens, targets, first);
        sometimes();
    };
    const auto observe = [&](const training_step&) {
        sometimes();
        return true;
    };
    while (parts.steps < options.steps) {
        try {
            fprnn::train(model, parts, options, sample, observe);
        } catch (const std::runtime_error&) {
        }
        REQUIRE(calls < 1000);
    }
    check_equal(parts, whole);
}

TEST_CASE("training state: time that was spent before counts") {
    training_options limited = options;
    limited.time_limit = 3600;
    state s = begin();
    fprnn::train(model, s, limited, data, [](const training_step& step) { return step.step < 3; });
    CHECK(s.seconds > 0);
    CHECK(s.seconds < 1800);

    state late = s;
    late.seconds = 1900;
    double seconds = 0, done = 0;
    fprnn::train(model, late, limited, data, [&](const training_step& step) {
        seconds = step.seconds;
        done = step.done;
        return false;
    });
    CHECK(seconds >= 1900);
    CHECK(done > 0.4);  // by its steps it would be 4/24
    CHECK(late.seconds >= seconds);

    late.seconds = 3600;
    const auto result = fprnn::train(model, late, limited, data, go_on);
    CHECK(result.end == training_end::time_limit);
    CHECK(result.steps == 4);
    CHECK(result.seconds >= 3600);
}

TEST_CASE("training state: a loss that is not finite right after a restart goes back as far as it would have without") {
    const auto spoilt_at = [](int step, state s, state* copy) {
        const auto sample = [&](auto tokens, auto targets, std::uint64_t first) {
            data(tokens, targets, first);
            if (copy && s.steps == step - 1) *copy = s;
            if (s.steps == step - 1) s.theta.data()[0] = std::numeric_limits<float>::quiet_NaN();
        };
        const auto result = fprnn::train(model, s, options, sample, go_on);
        CHECK(result.end == training_end::nonfinite);
        CHECK(result.message.find("train: step 8: the loss is nan") == 0);
        CHECK(result.steps == 6);
        CHECK_FALSE(fprnn::first_nonfinite(s.theta).has_value());
        return s;
    };
    state copy = begin();
    const state whole = spoilt_at(8, begin(), &copy);
    CHECK(copy.steps == 7);
    const state again = spoilt_at(8, copy, nullptr);
    CHECK(same_bits(again.theta, whole.theta));
    CHECK(same_bits(again.theta, copy.last_good));

    // Its optimiser has seen a step that the parameters have not.
    state over = whole;
    CHECK_THROWS_WITH_AS(fprnn::train(model, over, options, data, go_on),
                         "train: the state's optimiser has taken 7 steps, expected 6; a training that ended with "
                         "numbers that are not finite cannot go on",
                         fprnn::argument_error);
}

TEST_CASE("training state: a first loss that is not finite leaves the parameters that training began with") {
    state s = begin();
    const auto sample = [&](auto tokens, auto targets, std::uint64_t first) {
        data(tokens, targets, first);
        s.theta.data()[0] = std::numeric_limits<float>::infinity();
    };
    const auto result = fprnn::train(model, s, options, sample, go_on);
    CHECK(result.end == training_end::nonfinite);
    CHECK(result.steps == 0);
    CHECK(same_bits(s.theta, begin().theta));
}

TEST_CASE("training state: one that cannot be of these options is refused") {
    state s = begin();
    fprnn::train(model, s, options, data, [](const training_step& step) { return step.step < 10; });
    const state before = s;
    const auto message = [&](auto change) {
        training_options o = options;
        state other = s;
        change(other, o);
        try {
            fprnn::train(model, other, o, data, go_on);
        } catch (const fprnn::argument_error& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    CHECK(message([](auto&, auto& o) { o.steps = 9; }) == "train: the state's steps must be in [0,9], got 10");
    CHECK(message([](auto& x, auto&) { x.steps = -1; }) == "train: the state's steps must be in [0,24], got -1");
    CHECK(message([](auto& x, auto&) { x.length = 7; }) == "train: the state's length must be in [1,6], got 7");
    CHECK(message([](auto& x, auto&) { x.length = 0; }) == "train: the state's length must be in [1,6], got 0");
    CHECK(message([](auto& x, auto&) { x.sequences = -1; }) ==
          "train: the state's sequences must be in [0,9223372036854775807], got -1");
    CHECK(message([](auto& x, auto&) { x.last_good_steps = 11; }) ==
          "train: the state's last_good_steps must be in [0,10], got 11");
    CHECK(message([](auto& x, auto&) { x.learnt = 1.5; }) == "train: the state's learnt must be in [0,1], got 1.5");
    CHECK(message([](auto& x, auto&) { x.seconds = std::numeric_limits<double>::quiet_NaN(); }) ==
          "train: the state's seconds must be at least 0 and finite, got nan");
    CHECK(message([](auto& x, auto&) {
              x.steps = x.last_good_steps = 9;
          }).find("train: the state's optimiser has taken 10 steps, expected 9") == 0);
    CHECK(message([](auto&, auto& o) { o.optimiser.beta2 = 0.5; }) ==
          "train: the optimiser's beta2 must be that of the state, 0.99, got 0.5");
    check_equal(s, before);
}

}  // namespace
