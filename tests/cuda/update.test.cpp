// Where CUDA's headers are: what a step does with parameters in the memory of a device, whose kernels run on
// the host.
#if __has_include(<cuda_runtime_api.h>)

#include "distance.hpp"
#include "host_backend.hpp"
#include "random.hpp"

#include <fprnn/cuda/train.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using fprnn::index;
using fprnn::parameter_tree;
using fprnn::tensor;
using fprnn::training_end;
using fprnn::training_options;
using fprnn::training_state;
using fprnn::training_step;
namespace cuda = fprnn::cuda;

constexpr index classes = 5;

/// Some that decay and some that do not, of several stretches and of one number.
parameter_tree<double> mixed() {
    constexpr fprnn::initialiser normal{fprnn::initialiser::rule::normal, 1.0, 0.0};
    parameter_tree<double> theta;
    theta.add({"a", {100, 90}, normal, true}, {1});
    theta.add({"b", {1}, normal, false}, {1});
    theta.add({"c", {4096}, normal, false}, {1});
    theta.add({"d", {3}, normal, true}, {1});
    return theta;
}

/// Steps with some gradients, here or there.
template <class Backend>
training_state<double> steps(Backend backend, double max_norm, double scale, std::vector<double>& norms) {
    const training_options options{.optimiser = {.weight_decay = 0.3}};
    training_state<double> state(mixed(), options);
    const index n = state.theta.size();
    fprnn::detail::updates_on<double, Backend> updates(backend, state.theta, state);
    fprnn::tape<double, Backend> records(updates.theta, updates.there, backend);
    for (unsigned k = 0; k < 3; ++k) {
        const auto gradient = gpu::random<double>({n}, k, scale);
        backend.put(n, gradient.data(), records.parameter_bar_data());
        norms.emplace_back();
        updates.remember();
        REQUIRE_FALSE(updates.measure(records, max_norm, norms.back()));
        REQUIRE_FALSE(updates.step(records, 0.1 * (k + 1)));
    }
    updates.fetch();
    updates.hand_over();
    return state;
}

double difference(const parameter_tree<double>& a, const parameter_tree<double>& b) {
    const auto flat = [](const parameter_tree<double>& t) { return tensor<double>({t.size()}, {t.begin(), t.end()}); };
    return gpu::distance(flat(a), flat(b));
}

TEST_CASE("cuda update: clipping and AdamW do what they do on the host, decaying what decays") {
    const host::guarded_devices guard;
    for (const int threads : {1, 3})
        for (const double max_norm : {1.0, std::numeric_limits<double>::infinity()})
            // Squares that leave the range of double are no reason to stop: the gradient is not clipped.
            for (const double scale : {1.0, 1e200, 1e-170}) {
                host::threads = {.of_row = threads, .rows = threads, .of_grid = threads};
                std::vector<double> here, there;
                const auto expected = steps(fprnn::default_backend(), max_norm, scale, here);
                const auto got = steps(cuda::device(), max_norm, scale, there);
                for (std::size_t k = 0; k < 3; ++k)
                    CHECK((here[k] == there[k] || std::abs(there[k] - here[k]) <= 1e-13 * here[k]));
                CHECK(difference(got.theta, expected.theta) <= 1e-14);
                CHECK(difference(got.last_good, expected.last_good) <= 1e-14);
                CHECK(difference(got.optimiser.first_moment(), expected.optimiser.first_moment()) <= 1e-13);
                CHECK(got.optimiser.steps() == 3);
                if (scale == 1)
                    CHECK(difference(got.optimiser.second_moment(), expected.optimiser.second_moment()) <= 1e-13);
            }
}

/// Logits are the rows of a table, the target of x is x + 1.
struct lookup {
    template <class T, class Backend>
    fprnn::variable operator()(fprnn::tape<T, Backend>& t, fprnn::view<const std::int32_t> tokens,
                               std::vector<fprnn::solution<T, typename Backend::template array<T>>>*) const {
        return fprnn::embedding(t, "table", tokens);
    }
};
void successor(fprnn::view<std::int32_t> tokens, fprnn::view<std::int32_t> targets, std::uint64_t first) {
    for (index i = 0; i < tokens.size(); ++i) {
        tokens[i] = static_cast<std::int32_t>((first + static_cast<std::uint64_t>(i)) % classes);
        targets[i] = static_cast<std::int32_t>((tokens[i] + 1) % classes);
    }
}
parameter_tree<float> table(float first = 0.1f) {
    parameter_tree<float> theta;
    theta.add({"table", {classes, classes}, {fprnn::initialiser::rule::normal, 0.1}}, fprnn::seed{0});
    theta.data()[0] = first;
    return theta;
}
training_options small(index steps, double rate = 0.1) {
    return {.batch = 4, .length = 5, .steps = steps, .optimiser = {.learning_rate = rate}, .warmup_steps = 2};
}
const auto go_on = [](const training_step&) { return true; };

double most_apart(const parameter_tree<float>& a, const parameter_tree<float>& b) {
    double most = 0;
    for (index i = 0; i < a.size(); ++i) most += std::abs(static_cast<double>(a.data()[i] - b.data()[i]));
    return most;
}

TEST_CASE("cuda update: a training's state is here when it is fetched, and in the end; before it is what it was") {
    const host::guarded_devices guard;
    training_state<float> state(table(), small(8)), expected = state, halfway = state;
    fprnn::train(lookup{}, expected, small(8), successor, go_on);
    const auto result = fprnn::train(
        lookup{}, state, small(8), successor,
        [&](const training_step& s) {
            if (s.step == 3) {
                CHECK(state.steps == 0);
                CHECK(most_apart(state.theta, table()) == 0);
                s.fetch();
                CHECK(state.steps == 3);
                CHECK(state.optimiser.steps() == 3);
                CHECK(most_apart(state.theta, table()) > 0.1);
                halfway = state;
            }
            CHECK(state.steps == (s.step < 3 ? 0 : 3));
            return true;
        },
        cuda::device());
    CHECK(result.steps == 8);
    CHECK(state.steps == 8);
    CHECK(state.sequences == 32);
    CHECK(most_apart(state.theta, expected.theta) <= 1e-5);
    CHECK(most_apart(state.last_good, expected.last_good) <= 1e-5);

    // From what was fetched the same bits follow.
    fprnn::train(lookup{}, halfway, small(8), successor, go_on, cuda::device());
    CHECK(most_apart(halfway.theta, state.theta) == 0);
    CHECK(most_apart(halfway.optimiser.second_moment(), state.optimiser.second_moment()) == 0);
}

TEST_CASE("cuda update: an observer that stops or throws leaves a whole step") {
    const host::guarded_devices guard;
    training_state<float> state(table(), small(8));
    const auto stop = fprnn::train(
        lookup{}, state, small(8), successor, [](const training_step& s) { return s.step < 2; }, cuda::device());
    CHECK(stop.end == training_end::stopped);
    CHECK(state.steps == 2);
    const auto two = state;
    const auto throws = [](const training_step& s) -> bool {
        if (s.step == 4) s.fetch();
        if (s.step == 6) throw std::runtime_error("no");
        return true;
    };
    CHECK_THROWS_AS(fprnn::train(lookup{}, state, small(8), successor, throws, cuda::device()), std::runtime_error);
    CHECK(state.steps == 4);
    CHECK(state.optimiser.steps() == 4);
    CHECK(most_apart(state.theta, two.theta) > 0.1);
    CHECK(fprnn::train(lookup{}, state, small(8), successor, go_on, cuda::device()).steps == 8);
}

TEST_CASE("cuda update: numbers that are not finite end a training as they do on the host") {
    const host::guarded_devices guard;
    constexpr float infinity = std::numeric_limits<float>::infinity();
    // A loss; a parameter after its update.
    struct {
        float first;
        double rate;
    } const cases[] = {{infinity, 0.1}, {0.1f, 1e38}};
    for (const auto& [first, rate] : cases) {
        const training_options options = small(6, rate);
        training_state<float> here(table(first), options), there = here;
        const auto expected = fprnn::train(lookup{}, here, options, successor, go_on);
        const auto got = fprnn::train(lookup{}, there, options, successor, go_on, cuda::device());
        CHECK(got.end == training_end::nonfinite);
        CHECK(expected.end == training_end::nonfinite);
        CHECK(got.message == expected.message);
        CHECK(got.steps == expected.steps);
        if (first != infinity) CHECK(most_apart(there.theta, here.theta) <= 1e-5);
    }
}

/// The gradient of one parameter becomes NaN.
struct spoilt {
    template <class T, class Backend>
    fprnn::variable operator()(fprnn::tape<T, Backend>& t, fprnn::view<const std::int32_t> tokens,
                               std::vector<fprnn::solution<T, typename Backend::template array<T>>>* how) const {
        const auto logits = lookup{}(t, tokens, how);
        auto same = t.make(t.value(logits).shape());
        t.backend().copy(same.size(), t.value(logits).data(), same.data());
        return t.record(std::move(same), [](fprnn::tape<T, Backend>& tp, fprnn::variable) {
            tp.backend().fill(1, tp.parameter_bar_data() + 7, std::numeric_limits<T>::quiet_NaN());
        });
    }
};

TEST_CASE("cuda update: a gradient that is not finite is named, and nothing is updated") {
    const host::guarded_devices guard;
    training_state<float> state(table(), small(6)), here = state;
    const auto result = fprnn::train(spoilt{}, state, small(6), successor, go_on, cuda::device());
    const auto expected = fprnn::train(spoilt{}, here, small(6), successor, go_on);
    CHECK(result.message == expected.message);
    CHECK(result.end == training_end::nonfinite);
    CHECK(result.message == "train: step 1: the gradient of parameter 'table' is not finite");
    CHECK(most_apart(state.theta, table()) == 0);
    CHECK(state.steps == 0);
}

}  // namespace

#endif
