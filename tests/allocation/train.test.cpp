#include "allocations.hpp"

#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>
#include <fprnn/models/sequence_model.hpp>
#include <fprnn/tasks/word_problem.hpp>
#include <fprnn/train/trainer.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <new>
#include <string>
#include <vector>

namespace {

using fprnn::adjoint;
using fprnn::chunked;
using fprnn::eigen;
using fprnn::index;
using fprnn::training_options;
using fprnn::training_state;
using fprnn::training_step;

const fprnn::word_problem data{.group = fprnn::finite_group("A4"), .seed = {3}};

constexpr fprnn::models::model_dims sizes{
    .vocabulary = 12, .classes = 12, .d_model = 20, .d_inner = 24, .d_state = 4, .layers = 2};

training_options options(index steps) { return {.batch = 20, .length = 5, .steps = steps, .warmup_steps = 1}; }

/// Allocations in each step, from one call of observe to the next.
template <class Block>
std::vector<long> count_steps(Block block, fprnn::models::model_dims size, chunked schedule, adjoint a,
                              training_options o, int threads) {
    const fprnn::models::sequence_model model(block, size, schedule, a);
    training_state<float> state(model.template init<float>({1}), o);
    std::vector<long> counts;
    counts.reserve(static_cast<std::size_t>(o.steps));
    long before = allocations::count();
    fprnn::train(
        model, state, o, data,
        [&](const training_step&) {
            counts.push_back(allocations::count() - before);
            before = allocations::count();
            return true;
        },
        eigen(threads));
    return counts;
}

template <class Block>
void check_silent(Block block, fprnn::models::model_dims size, training_options o) {
    for (const index C : {index{1}, index{4}, fprnn::whole_sequence})
        for (const adjoint& a : {adjoint(fprnn::implicit{}), adjoint(fprnn::one_step{}), adjoint(fprnn::neumann{3})})
            for (const int threads : {1, 2}) {
                CAPTURE(C);
                CAPTURE(a.index());
                CAPTURE(threads);
                const auto counts = count_steps(block, size, {.length = C}, a, o, threads);
                CHECK(counts.front() > 0);
                for (std::size_t k = 1; k < counts.size(); ++k) CHECK(counts[k] == 0);
            }
}

TEST_CASE("train: after the first step nothing is allocated") {
    SUBCASE("fp_mamba") { check_silent(fprnn::models::fp_mamba<2>(), sizes, options(4)); }
    SUBCASE("fp_rnn") { check_silent(fprnn::models::fp_rnn<2>(), sizes, options(4)); }
    SUBCASE("mamba") { check_silent(fprnn::models::mamba(), sizes, options(4)); }
}

TEST_CASE("train: in micro-batches nothing is allocated after the first step, also where they are unequal") {
    for (const index n : {2, 3}) {
        CAPTURE(n);
        training_options o = options(4);
        o.micro_batches = n;
        const auto counts = count_steps(fprnn::models::fp_mamba<2>(), sizes, {.length = 1}, fprnn::implicit{}, o, 2);
        for (std::size_t k = 1; k < counts.size(); ++k) CHECK(counts[k] == 0);
    }
}

TEST_CASE("train: products that Eigen would pack on the heap are packed in the layer's own memory") {
    if (!allocations::malloc_is_counted()) {
        MESSAGE("skipped: a sanitizer has replaced malloc, so that what Eigen takes from it is not counted");
        return;
    }
    fprnn::models::model_dims wide = sizes;
    wide.d_model = wide.d_inner = 160;
    wide.layers = 1;
    training_options o = options(3);
    o.batch = 20;
    o.length = 48;
    for (const index C : {index{1}, index{20}}) {
        const auto counts = count_steps(fprnn::models::fp_mamba<2>(), wide, {.length = C}, fprnn::one_step{}, o, 2);
        CHECK(counts[1] == 0);
        CHECK(counts[2] == 0);
    }
}

TEST_CASE("train: in a curriculum, the first step of a length may allocate, and no other") {
    training_options o = options(8);
    o.length = 16;
    o.first_length = 4;
    o.full_length_at = 0.5;
    const auto counts = count_steps(fprnn::models::fp_mamba<2>(), sizes, {.length = 1}, fprnn::implicit{}, o, 2);
    for (std::size_t k = 1; k < counts.size(); ++k)
        if (k != 4) CHECK(counts[k] == 0);
}

bool same_bits(const fprnn::parameter_tree<float>& a, const fprnn::parameter_tree<float>& b) {
    return a.size() == b.size() &&
           std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(float)) == 0;
}
/// All but the clock.
bool same_bits(const training_state<float>& a, const training_state<float>& b) {
    return same_bits(a.theta, b.theta) && same_bits(a.last_good, b.last_good) &&
           same_bits(a.optimiser.first_moment(), b.optimiser.first_moment()) &&
           same_bits(a.optimiser.second_moment(), b.optimiser.second_moment()) &&
           a.optimiser.steps() == b.optimiser.steps() && a.last_good_steps == b.last_good_steps && a.steps == b.steps &&
           a.sequences == b.sequences && a.length == b.length && a.learnt == b.learnt;
}

/// Lets allocation 1, 2, … of a step fail until one of them is beyond the step; returns how many failed.
template <class Block>
long check_failures(Block block, chunked schedule, int threads, bool all_after) {
    training_options o = options(3);
    o.batch = 17;  // two tiles
    o.length = 3;
    const fprnn::models::sequence_model model(
        block, {.vocabulary = 12, .classes = 12, .d_model = 8, .d_inner = 8, .d_state = 2}, schedule);
    const eigen backend(threads);
    const auto one_step = [&](training_state<float>& state) {
        fprnn::train(
            model, state, o, data, [](const training_step&) { return false; }, backend);
    };
    training_state<float> before(model.template init<float>({1}), o);
    one_step(before);
    training_state<float> after = before;
    one_step(after);

    for (long n = 1;; ++n) {
        training_state<float> state = before;
        fprnn::scratch_pool<float>::shared().clear();
        const long live = allocations::live();
        bool thrown = false, other = false;
        allocations::fail_at(n, all_after);
        try {
            one_step(state);
        } catch (const std::bad_alloc&) {
            thrown = true;
        } catch (...) {
            other = true;
        }
        const bool failed = allocations::stop_failing();
        fprnn::scratch_pool<float>::shared().clear();
        const long left = allocations::live() - live;
        CAPTURE(n);
        CHECK(left == 0);
        CHECK(thrown == failed);
        CHECK_FALSE(other);
        if (!failed) {
            CHECK(same_bits(state, after));
            return n - 1;
        }
        CHECK(same_bits(state, before));
        CHECK(state.seconds == before.seconds);
        one_step(state);
        CHECK(same_bits(state, after));
    }
}

TEST_CASE("train: whichever allocation of a step fails, std::bad_alloc leaves the last whole step and no leak") {
    for (const bool all_after : {false, true})
        for (const int threads : {1, 2}) {
            CAPTURE(all_after);
            CAPTURE(threads);
            CHECK(check_failures(fprnn::models::fp_mamba<2>(), {.length = 1}, threads, all_after) > 50);
        }
    CHECK(check_failures(fprnn::models::fp_rnn<2>(), fprnn::parallel(), 2, false) > 50);
    CHECK(check_failures(fprnn::models::mamba(), {.length = 4}, 1, false) > 50);
}

}  // namespace
