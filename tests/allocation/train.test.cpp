#include "allocations.hpp"

#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>
#include <fprnn/models/sequence_model.hpp>
#include <fprnn/tasks/word_problem.hpp>
#include <fprnn/train/trainer.hpp>

#include <doctest/doctest.h>

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

training_options options(index steps) { return {.batch = 40, .length = 6, .steps = steps, .warmup_steps = 1}; }

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
        for (const adjoint& a : {adjoint(fprnn::implicit{}), adjoint(fprnn::one_step{})})
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
    SUBCASE("fp_mamba") { check_silent(fprnn::models::fp_mamba<2>(), sizes, options(6)); }
    SUBCASE("fp_rnn") { check_silent(fprnn::models::fp_rnn<2>(), sizes, options(6)); }
    SUBCASE("mamba") { check_silent(fprnn::models::mamba(), sizes, options(6)); }
}

}  // namespace
