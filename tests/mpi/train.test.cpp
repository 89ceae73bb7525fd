#include "world.hpp"

#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/lstm.hpp>
#include <fprnn/mpi/train.hpp>

#include <train/small_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>

namespace {

using fprnn::index;
using fprnn::training_options;
using fprnn::training_step;
using fprnn::testing::all_ranks;

const fprnn::word_problem& data = fprnn::testing::small_data;
template <class Block>
auto model_of(Block block, index d_inner = 6) {
    return fprnn::testing::small_model(block, 1e-4, d_inner);
}
const auto go_on = [](const training_step&) { return true; };

training_options options() {
    training_options o{.batch = 7, .micro_batches = 5, .length = 6, .steps = 8, .optimiser = {.learning_rate = 0.01}};
    o.state_passing = fprnn::state_passing{.windows = 4, .from = 0.4};
    return o;
}
using state = fprnn::training_state<float>;
template <class Tree>
bool same_bits(const Tree& a, const Tree& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

TEST_CASE("mpi: train and evaluate have the bits of one process, from the state of rank 0") {
    const auto model = model_of(fprnn::models::fp_mamba<1>());
    state alone(model.init<float>(fprnn::seed{0}), options());
    fprnn::train(model, alone, options(), data, go_on);

    const auto of_rank = static_cast<std::uint64_t>(all_ranks().rank());
    state together(model.init<float>(fprnn::seed{of_rank}), options());
    index observed = 0;
    const auto result = fprnn::mpi::train(all_ranks(), model, together, options(), data, [&](const training_step&) {
        ++observed;
        return true;
    });
    CHECK(result.end == fprnn::training_end::steps);
    CHECK(observed == (of_rank == 0 ? 8 : 0));
    CHECK(same_bits(together.theta, alone.theta));
    CHECK(same_bits(together.optimiser.first_moment(), alone.optimiser.first_moment()));
    CHECK(together.ongoing.sequence == alone.ongoing.sequence);

    const auto a = fprnn::evaluate(model, alone.theta, 20, 600, data);
    const auto b = fprnn::mpi::evaluate(all_ranks(), model, together.theta, 20, 600, data);
    CHECK(a.loss == b.loss);
    CHECK(a.answers == b.answers);
}

TEST_CASE("mpi: rank 0 ends a training for all") {
    const auto model = model_of(fprnn::models::lstm());
    state s(model.init<float>(fprnn::seed{0}), options());
    const auto result =
        fprnn::mpi::train(all_ranks(), model, s, options(), data, [](const training_step& t) { return t.step < 3; });
    CHECK(result.end == fprnn::training_end::stopped);
    CHECK(s.steps == 3);
}

/// What train says on every rank when the last one differs in something; nothing of one rank alone.
template <class Model, class Sample>
void check_refused(const Model& model, const training_options& o, Sample sample, const std::string& says) {
    state s(model.template init<float>(fprnn::seed{0}), o);
    if (all_ranks().size() == 1)
        fprnn::mpi::train(all_ranks(), model, s, o, sample, go_on);
    else
        CHECK_THROWS_WITH_AS(fprnn::mpi::train(all_ranks(), model, s, o, sample, go_on),
                             doctest::Contains(says.c_str()), fprnn::argument_error);
}

TEST_CASE("mpi: ranks that disagree are refused on all of them") {
    const bool is_last = all_ranks().rank() + 1 == all_ranks().size() && all_ranks().size() > 1;
    const std::string last = "train: rank " + std::to_string(all_ranks().size() - 1) + ": rank 0's state: ";
    const auto model = model_of(fprnn::models::lstm());
    SUBCASE("on an option") {
        training_options o = options();
        if (is_last) o.label_smoothing = 0.25;
        check_refused(model, o, data, last);
        check_refused(model, o, data, "label_smoothing");
    }
    SUBCASE("on the data") {
        fprnn::word_problem other = data;
        if (is_last) other.seed = {2};
        check_refused(model, options(), other, "first_sequence");
    }
    SUBCASE("on the model") { check_refused(model_of(fprnn::models::lstm(), is_last ? 7 : 6), options(), data, last); }
    SUBCASE("on whether an option is possible") {
        training_options o = options();
        if (is_last) o.max_norm = -1;
        check_refused(model, o, data, "max_norm must be positive, got -1");
    }
}

TEST_CASE("mpi: an evaluation of others is refused on all ranks") {
    if (all_ranks().size() == 1) return;
    const auto model = model_of(fprnn::models::lstm());
    const auto theta = model.init<float>(fprnn::seed{0});
    CHECK_THROWS_WITH_AS(fprnn::mpi::evaluate(all_ranks(), model, theta, 20 + all_ranks().rank(), 6, data),
                         doctest::Contains("evaluate: rank 1: expected length 20, "), fprnn::argument_error);
}

TEST_CASE("mpi: more ranks than micro-batches are refused") {
    if (all_ranks().size() == 1) return;
    const auto model = model_of(fprnn::models::lstm());
    training_options o = options();
    o.micro_batches = 1;
    check_refused(model, o, data, "micro_batches must be at least the number of ranks");
}

}  // namespace
