#include <fprnn/train/interrupt.hpp>
#include <fprnn/train/trainer.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <thread>

namespace {

using fprnn::index;
using fprnn::parameter_tree;
using fprnn::tensor;
using fprnn::training_end;
using fprnn::training_options;
using fprnn::training_step;

constexpr index classes = 5;
using tape = fprnn::tape<float>;

parameter_tree<float> table() {
    parameter_tree<float> theta;
    theta.add({"table", {classes, classes}, {fprnn::initialiser::rule::normal, 0.1}}, fprnn::seed{0});
    return theta;
}

/// Logits are the rows of one table. `spoil` may change them in a step.
struct lookup {
    std::function<void(tensor<float>&)> spoil{};
    std::function<void(tape&)> spoil_gradient{};

    fprnn::variable operator()(tape& t, fprnn::view<const std::int32_t> tokens,
                               std::vector<fprnn::solution<float>>*) const {
        const auto logits = fprnn::embedding(t, "table", tokens);
        tensor<float> value = t.value(logits);
        if (spoil) spoil(value);
        return t.record(std::move(value), [=, gradient = spoil_gradient](tape& tp, fprnn::variable self) {
            for (index i = 0; i < tp.bar(self).size(); ++i) tp.bar(logits)[i] += tp.bar(self)[i];
            if (gradient) gradient(tp);
        });
    }
};

/// The target of token x is x + 1.
void successor(fprnn::view<std::int32_t> tokens, fprnn::view<std::int32_t> targets, std::uint64_t first) {
    for (index i = 0; i < tokens.size(); ++i) {
        tokens[i] = static_cast<std::int32_t>((first + static_cast<std::uint64_t>(i)) % classes);
        targets[i] = static_cast<std::int32_t>((tokens[i] + 1) % classes);
    }
}

training_options small(index steps) {
    return {.batch = 4, .length = 5, .steps = steps, .optimiser = {.learning_rate = 0.1}, .warmup_steps = 2};
}

const auto go_on = [](const training_step&) { return true; };

TEST_CASE("train: a table learns its task, and every step reports what it measured") {
    auto theta = table();
    std::vector<training_step> steps;
    const auto result = fprnn::train(lookup{}, theta, small(60), successor, [&](const training_step& s) {
        steps.push_back(s);
        return true;
    });
    CHECK(result.end == training_end::steps);
    CHECK(result.steps == 60);
    CHECK(result.message.empty());
    REQUIRE(steps.size() == 60);
    CHECK(steps.front().step == 1);
    CHECK(steps.back().loss < 0.1 * steps.front().loss);
    CHECK(steps.back().sequence_accuracy == 1);
    CHECK(steps.back().token_accuracy == 1);
    CHECK_FALSE(steps.back().iterations.has_value());
    CHECK(steps.front().learning_rate == doctest::Approx(0.05).epsilon(1e-12).scale(0));
    CHECK(steps.back().learning_rate > 0);
    CHECK(steps.back().learning_rate < 0.01);
    CHECK(steps.back().done == 1);
}

TEST_CASE("train: with labels that are smoothed the loss ends at their entropy") {
    auto theta = table();
    training_options o = small(400);
    o.label_smoothing = 0.2;
    training_step last;
    fprnn::train(lookup{}, theta, o, successor, [&](const training_step& s) {
        last = s;
        return true;
    });
    const double others = o.label_smoothing / classes, right = 1 - o.label_smoothing + others;
    const double entropy = -right * std::log(right) - (classes - 1) * others * std::log(others);
    CHECK(last.loss >= entropy);
    CHECK(last.loss < 1.01 * entropy);
    CHECK(last.token_accuracy == 1);
}

TEST_CASE("train: runs with equal inputs give equal bits for any number of threads") {
    auto a = table(), b = table();
    fprnn::train(lookup{}, a, small(20), successor, go_on, fprnn::eigen(1));
    fprnn::train(lookup{}, b, small(20), successor, go_on, fprnn::eigen(4));
    CHECK(std::equal(a.begin(), a.end(), b.begin()));
}

TEST_CASE("train: a curriculum grows as it is learnt, never above the length, and every step has as many tokens") {
    auto theta = table();
    training_options o = small(400);
    o.first_length = 2;
    o.full_length_at = 1;
    std::vector<training_step> steps;
    const auto keep = [&](const training_step& s) {
        steps.push_back(s);
        return true;
    };
    fprnn::train(lookup{}, theta, o, successor, keep);
    CHECK(steps.front().length == 2);
    CHECK(steps.front().sequences == 10);  // 4 of 5 tokens
    std::vector<fprnn::index> lengths{2};
    for (std::size_t i = 1; i < steps.size(); ++i) {
        if (steps[i].length == lengths.back()) continue;
        lengths.push_back(steps[i].length);
        CHECK(steps[i - 1].sequence_accuracy > o.lengthen_at);
    }
    CHECK(lengths == std::vector<fprnn::index>{2, 3, 4, 5});
    CHECK(steps.back().sequences - steps[steps.size() - 2].sequences == 4);
}

TEST_CASE("train: what is never learnt is trained at its full length in the end") {
    auto theta = table();
    training_options o = small(10);
    o.first_length = 2;
    o.full_length_at = 0.5;
    const auto unlearnable = [](auto tokens, auto targets, std::uint64_t first) {
        successor(tokens, targets, first);
        for (fprnn::index i = 0; i < targets.size(); ++i)
            targets[i] = static_cast<std::int32_t>(fprnn::random_stream({first}, 0).below(i, classes));
    };
    fprnn::train(lookup{}, theta, o, unlearnable, [&](const training_step& s) {
        CHECK(s.length == (s.step <= 5 ? 2 : 5));
        return true;
    });
}

TEST_CASE("train: the observer and the clock end it, and the rate falls with the clock") {
    auto theta = table();
    const auto stopped =
        fprnn::train(lookup{}, theta, small(100), successor, [](const training_step& s) { return s.step < 7; });
    CHECK(stopped.end == training_end::stopped);
    CHECK(stopped.steps == 7);

    training_options limited = small(1000000000);
    limited.time_limit = 0.2;
    double last_rate = 1;
    const auto result = fprnn::train(lookup{}, theta, limited, successor, [&](const training_step& s) {
        last_rate = s.learning_rate;
        return true;
    });
    CHECK(result.end == training_end::time_limit);
    CHECK(result.seconds >= 0.2);
    CHECK(last_rate < 0.01);
}

TEST_CASE("train: the observer's time is not the training's") {
    auto theta = table();
    training_options o = small(4);
    o.time_limit = 2;
    o.warmup_steps = 4;
    std::vector<double> rates;
    const auto result = fprnn::train(lookup{}, theta, o, successor, [&](const training_step& s) {
        std::this_thread::sleep_for(std::chrono::seconds(1));
        rates.push_back(s.learning_rate);
        return true;
    });
    CHECK(result.end == training_end::steps);
    CHECK(result.seconds < 1);
    auto same = table();
    o.time_limit = std::numeric_limits<double>::infinity();
    std::vector<double> expected;
    fprnn::train(lookup{}, same, o, successor, [&](const training_step& s) {
        expected.push_back(s.learning_rate);
        return true;
    });
    CHECK(rates == expected);
}

TEST_CASE("train: the largest number of steps is one, with and without a limit of time") {
    for (const double limit : {std::numeric_limits<double>::infinity(), 0.05}) {
        auto theta = table();
        training_options o = small(std::numeric_limits<fprnn::index>::max());
        o.time_limit = limit;
        double last_rate = 0;
        const auto result = fprnn::train(lookup{}, theta, o, successor, [&](const training_step& s) {
            last_rate = s.learning_rate;
            return std::isfinite(limit) || s.step < 3;
        });
        CHECK(result.end == (std::isfinite(limit) ? training_end::time_limit : training_end::stopped));
        CHECK(last_rate > 0);
    }
}

TEST_CASE("train: data that are used up are said to be") {
    fprnn::training_state<float> state(table(), small(3));
    state.sequences = std::numeric_limits<fprnn::index>::max() - 1;
    CHECK_THROWS_WITH_AS(fprnn::train(lookup{}, state, small(3), successor, [](const training_step&) { return true; }),
                         "train: the data have 2^63 - 1 sequences, and 9223372036854775806 have been seen",
                         fprnn::argument_error);
}

TEST_CASE("train: a signal sets the flag that an observer reads") {
    const fprnn::interrupt guard;
    auto theta = table();
    const auto result = fprnn::train(lookup{}, theta, small(100), successor, [](const training_step& s) {
        if (s.step == 5) std::raise(SIGTERM);
        return !fprnn::interrupt::requested();
    });
    CHECK(result.end == training_end::stopped);
    CHECK(result.steps == 5);
}

TEST_CASE(
    "train: a loss that is not finite names its step and the largest parameter, and the last good state is kept") {
    auto theta = table();
    int calls = 0;
    parameter_tree<float> before;
    lookup model;
    model.spoil = [&](tensor<float>& logits) {
        if (++calls == 4) before = theta;
        if (calls == 5) logits[3] = std::numeric_limits<float>::quiet_NaN();
    };
    const auto result = fprnn::train(model, theta, small(100), successor, go_on);
    CHECK(result.end == training_end::nonfinite);
    CHECK(result.message.find("train: step 5: the loss is nan; the largest parameter is 'table' with ") == 0);
    CHECK(result.steps == 3);  // the parameters are those before update 4
    CHECK(std::equal(theta.begin(), theta.end(), before.begin()));
}

TEST_CASE("train: a gradient that is not finite names step and parameter and is not applied") {
    auto theta = table();
    int calls = 0;
    lookup model;
    model.spoil_gradient = [&](tape& t) {
        if (++calls == 3) t.parameter_bars()["table"][0] = std::numeric_limits<float>::infinity();
    };
    const auto result = fprnn::train(model, theta, small(100), successor, go_on);
    CHECK(result.end == training_end::nonfinite);
    CHECK(result.steps == 2);
    CHECK(result.message == "train: step 3: the gradient of parameter 'table' is not finite");
    CHECK_FALSE(fprnn::first_nonfinite(theta).has_value());
}

TEST_CASE("train: a parameter that an update drives out of range is named and taken back") {
    auto theta = table();
    training_options wild = small(100);
    wild.optimiser.learning_rate = 1e38;
    wild.warmup_steps = 0;
    const auto result = fprnn::train(lookup{}, theta, wild, successor, go_on);
    CHECK(result.end == training_end::nonfinite);
    CHECK(result.message.find("'table'") != std::string::npos);
    CHECK_FALSE(fprnn::first_nonfinite(theta).has_value());
}

TEST_CASE("train: without warmup_steps the rate rises for 200 steps, or for half of fewer than 400") {
    const auto warmup = [](index steps) { return training_options{.steps = steps}.warmup(); };
    CHECK(warmup(100000) == 200);
    CHECK(warmup(400) == 200);
    CHECK(warmup(399) == 199);
    CHECK(warmup(1) == 0);
    CHECK(training_options{.steps = 100, .warmup_steps = 0}.warmup() == 0);

    auto theta = table();
    std::vector<double> rates;
    const auto result =
        fprnn::train(lookup{}, theta, {.batch = 4, .length = 5, .steps = 100}, successor, [&](const training_step& s) {
            rates.push_back(s.learning_rate);
            return true;
        });
    CHECK(result.steps == 100);
    CHECK(std::max_element(rates.begin(), rates.end()) - rates.begin() == 49);
    CHECK(rates[0] == doctest::Approx(3e-3 / 50).epsilon(1e-12).scale(0));
}

TEST_CASE(
    "train: a token or a target out of range is named with its position, and the parameters keep the last update") {
    const auto message = [](std::int32_t token, std::int32_t target) {
        auto theta = table();
        parameter_tree<float> before;
        int calls = 0;
        const auto sample = [&](auto tokens, auto targets, std::uint64_t first) {
            successor(tokens, targets, first);
            if (++calls < 3) return;
            before = theta;
            tokens[7] = token;
            targets[7] = target;
        };
        std::string text;
        try {
            fprnn::train(lookup{}, theta, small(10), sample, go_on);
        } catch (const fprnn::argument_error& e) {
            text = e.what();
        }
        CHECK(calls == (text.empty() ? 10 : 3));
        if (!text.empty()) CHECK(std::equal(theta.begin(), theta.end(), before.begin()));
        return text;
    };
    CHECK(message(0, 0).empty());
    CHECK(message(4, fprnn::ignored_target).empty());
    CHECK(message(5, 0) == "embedding: token 5 at position 7 is outside of the table of 5");
    CHECK(message(-1, 0) == "embedding: token -1 at position 7 is outside of the table of 5");
    CHECK(message(0, 5) == "cross_entropy: target 5 at position 7 is outside of [0,5)");
    CHECK(message(0, -2) == "cross_entropy: target -2 at position 7 is outside of [0,5)");
}

TEST_CASE("train: a step of which no target counts has a loss of 0, and others learn") {
    auto theta = table();
    const auto sample = [&](auto tokens, auto targets, std::uint64_t first) {
        successor(tokens, targets, first);
        if (first % 8 == 0) std::fill(targets.begin(), targets.end(), fprnn::ignored_target);  // every other step
    };
    std::vector<double> losses;
    const auto result = fprnn::train(lookup{}, theta, small(60), sample, [&](const training_step& s) {
        losses.push_back(s.loss);
        return true;
    });
    CHECK(result.end == training_end::steps);
    CHECK(losses[0] == 0);
    CHECK(losses[58] == 0);
    CHECK(losses[59] < 0.1 * losses[1]);
}

/// Two tables whose rows are added.
struct two_tables {
    fprnn::variable operator()(tape& t, fprnn::view<const std::int32_t> tokens,
                               std::vector<fprnn::solution<float>>*) const {
        const auto a = fprnn::embedding(t, "a.table", tokens), b = fprnn::embedding(t, "b.table", tokens);
        tensor<float> sum = t.value(a);
        for (index i = 0; i < sum.size(); ++i) sum[i] += t.value(b)[i];
        return t.record(std::move(sum), [=](tape& tp, fprnn::variable self) {
            for (const auto x : {a, b})
                for (index i = 0; i < tp.bar(self).size(); ++i) tp.bar(x)[i] += tp.bar(self)[i];
        });
    }
    static parameter_tree<float> init() {
        parameter_tree<float> theta;
        for (const char* name : {"a.table", "b.table"})
            theta.add({name, {classes, classes}, {fprnn::initialiser::rule::normal, 0.1}}, fprnn::seed{0});
        return theta;
    }
};

TEST_CASE("train: frozen parameters keep their bits, and the others are trained as if nothing else were there") {
    for (const std::string frozen : {"a", "a.table"}) {
        auto theta = two_tables::init();
        const auto before = theta;
        training_options options = small(60);
        options.optimiser.weight_decay = 0.1;
        options.frozen = {frozen};
        double norm = 0, last = 1;
        fprnn::train(two_tables{}, theta, options, successor, [&](const training_step& s) {
            if (s.step == 1) norm = s.gradient_norm;
            last = s.loss;
            return true;
        });
        CHECK(last < 0.3);
        for (index i = 0; i < classes * classes; ++i) CHECK(theta["a.table"][i] == before["a.table"][i]);
        for (index i = 0; i < classes * classes; ++i) CHECK(theta["b.table"][i] != before["b.table"][i]);
        auto both = two_tables::init();
        options.frozen = {};
        fprnn::train(two_tables{}, both, options, successor, [&](const training_step& s) {
            CHECK(norm ==
                  doctest::Approx(s.gradient_norm / std::sqrt(2.0)).epsilon(1e-6));  // the tables have one gradient
            return false;
        });
    }
}

TEST_CASE("train: what frozen names has to be there, and something has to be left") {
    auto theta = two_tables::init();
    training_options options = small(10);
    const auto refused = [&](std::vector<std::string> frozen, const char* text) {
        options.frozen = std::move(frozen);
        CHECK_THROWS_WITH_AS(fprnn::train(two_tables{}, theta, options, successor, go_on), text, fprnn::argument_error);
    };
    refused({"b", "a.tab"}, "train: frozen: expected parameters or beginnings of their names, got 'a.tab'");
    refused({""}, "train: frozen: expected parameters or beginnings of their names, got ''");
    refused({"a", "b.table"}, "train: frozen: expected to leave a parameter that is trained, got all of them");
    fprnn::training_state<float> state(theta, small(10));
    options.frozen = {"a"};
    CHECK_THROWS_WITH_AS(fprnn::train(two_tables{}, state, options, successor, go_on),
                         "train: the state was made with other frozen parameters: 'a.table'", fprnn::argument_error);
    options.frozen = {"c"};
    CHECK_THROWS_WITH_AS(fprnn::train(two_tables{}, state, options, successor, go_on),
                         "train: frozen: expected parameters or beginnings of their names, got 'c'",
                         fprnn::argument_error);
}

TEST_CASE("train: what has moved cannot be frozen, whether it decays or not") {
    for (const bool decays : {false, true}) {
        auto theta = two_tables::init();
        theta.set_decay("a.table", decays);
        training_options options = small(10);
        fprnn::training_state<float> free(theta, options);
        fprnn::train(two_tables{}, free, options, successor, [](const training_step& s) { return s.step < 4; });
        options.frozen = {"a"};
        const auto refused = [&](fprnn::training_state<float>& state) {
            const auto before = state.theta;
            CHECK_THROWS_WITH_AS(fprnn::train(two_tables{}, state, options, successor, go_on),
                                 "train: the state was made with other frozen parameters: 'a.table'",
                                 fprnn::argument_error);
            CHECK(std::equal(before.begin(), before.end(), state.theta.begin()));
        };
        refused(free);
        fprnn::training_state<float> restored(theta, options);  // as of a checkpoint of the free training
        restored.optimiser.restore(free.optimiser.steps(), free.optimiser.first_moment(),
                                   free.optimiser.second_moment());
        restored.steps = free.steps;
        refused(restored);
    }
}

TEST_CASE("train: last_token leaves the last answer of each sequence alone") {
    tensor<std::int32_t> tokens({3, 4}), targets({3, 4}), all({3, 4});
    successor(tokens.view(), all.view(), 7);
    fprnn::last_token(successor)(tokens.view(), targets.view(), 7);
    for (index b = 0; b < 3; ++b)
        for (index t = 0; t < 4; ++t) CHECK(targets(b, t) == (t == 3 ? all(b, t) : fprnn::ignored_target));
    auto theta = table();
    double last = 1;
    fprnn::train(lookup{}, theta, small(200), fprnn::last_token(successor), [&](const training_step& s) {
        last = s.loss;
        CHECK(s.sequence_accuracy == s.token_accuracy);
        return true;
    });
    CHECK(last < 0.1);
    tensor<std::int32_t> none({3, 0});
    CHECK_NOTHROW(fprnn::last_token(successor)(none.view(), none.view(), 0));

    // Row b is padded behind its first b tokens; row 0 asks for nothing.
    const auto padded = fprnn::last_token([](auto t, auto y, std::uint64_t first) {
        successor(t, y, first);
        for (index b = 0; b < 3; ++b)
            for (index i = b; i < 4; ++i) y(b, i) = fprnn::ignored_target;
    });
    static_assert(fprnn::sampler<decltype(padded)>);
    padded(tokens.view(), targets.view(), 7);
    for (index b = 0; b < 3; ++b)
        for (index t = 0; t < 4; ++t) CHECK(targets(b, t) == (t + 1 == b ? all(b, t) : fprnn::ignored_target));
}

TEST_CASE("train: options out of their range are refused before anything is trained") {
    auto theta = table();
    const auto message = [&](auto change) {
        training_options o = small(10);
        change(o);
        try {
            fprnn::train(lookup{}, theta, o, successor, go_on);
        } catch (const fprnn::argument_error& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    const auto before = theta;
    CHECK(message([](auto& o) { o.batch = 0; }) == "train: batch must be at least 1, got 0");
    CHECK(message([](auto& o) { o.length = 0; }) == "train: length must be at least 1, got 0");
    CHECK(message([](auto& o) { o.first_length = 0; }) == "train: first_length must be at least 1, got 0");
    CHECK(message([](auto& o) { o.lengthen_at = 1; }) == "train: lengthen_at must be in [0,1), got 1");
    CHECK(message([](auto& o) { o.full_length_at = std::numeric_limits<double>::quiet_NaN(); }) ==
          "train: full_length_at must be in [0,1], got nan");
    CHECK(message([](auto& o) { o.steps = 0; }) == "train: steps must be at least 1, got 0");
    CHECK(message([](auto& o) { o.warmup_steps = 11; }) == "train: warmup_steps must be at most steps = 10, got 11");
    CHECK(message([](auto& o) { o.warmup_steps = -1; }) == "train: warmup_steps must be at least 0, got -1");
    CHECK(message([](auto& o) { o.time_limit = std::numeric_limits<double>::quiet_NaN(); }) ==
          "train: time_limit must be positive, got nan");
    CHECK(message([](auto& o) { o.max_norm = 0; }) == "train: max_norm must be positive, got 0");
    CHECK(message([](auto& o) { o.label_smoothing = 1; }) == "train: label_smoothing must be in [0,1), got 1");
    CHECK(message([](auto& o) { o.optimiser.learning_rate = std::numeric_limits<double>::quiet_NaN(); }) ==
          "adamw: learning_rate must be positive and finite, got nan");
    CHECK(std::equal(theta.begin(), theta.end(), before.begin()));
}

}  // namespace
