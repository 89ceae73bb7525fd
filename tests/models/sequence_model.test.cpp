#include "fixed_point/tools.hpp"

#include <fprnn/models/delta_product.hpp>
#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>
#include <fprnn/models/lstm.hpp>
#include <fprnn/models/sequence_model.hpp>
#include <fprnn/models/swiglu.hpp>
#include <fprnn/models/transformer.hpp>
#include <fprnn/models/xlstm.hpp>
#include <fprnn/tasks/word_problem.hpp>
#include <fprnn/train/trainer.hpp>

#include <doctest/doctest.h>

#include <numeric>

namespace {

using fprnn::chunked;
using fprnn::implicit;
using fprnn::index;
using fprnn::tensor;
using fprnn::models::model_dims;
using fprnn::models::sequence_model;
using fprnn::models::stack;
using fprnn::testing::gradient_error;
using fprnn::testing::same_bits;

const chunked tight{.length = 1, .tolerance = 1e-13, .ell_max = 1000};

tensor<std::int32_t> numbers(index B, index T, std::uint64_t below, std::uint64_t stream) {
    tensor<std::int32_t> t({B, T});
    const fprnn::random_stream r(fprnn::seed{8}, stream);
    for (index i = 0; i < t.size(); ++i) t[i] = static_cast<std::int32_t>(r.below(i, below));
    return t;
}

template <class F, class... Blocks>
void each_block(sequence_model<Blocks...>& model, F&& f) {
    [&]<std::size_t... i>(std::index_sequence<i...>) { (f(model.template block<i>()), ...); }
    (std::index_sequence_for<Blocks...>());
}

template <class Block>
void check_gradients(Block block, const model_dims& size, index B, index T);
template <class Block>
void check_gradients(Block block, index B, index T) {
    check_gradients(
        block, model_dims{.vocabulary = 3, .classes = 4, .d_model = 4, .d_inner = 5, .d_state = 3, .layers = 2}, B, T);
}
template <class Block>
void check_gradients(Block block, const model_dims& size, index B, index T) {
    sequence_model model(block, size, tight, implicit{.tolerance = 1e-13, .ell_max = 1000});
    auto theta = model.template init<double>(fprnn::seed{6});
    fprnn::testing::shake(theta, 0.1);
    if (size.tied)  // differences of a norm of small numbers are poor
        for (double& e : theta["embedding"]) e *= 20;
    const auto tokens = numbers(B, T, 3, 1);
    auto targets = numbers(B, T, static_cast<std::uint64_t>(size.classes), 2);
    targets[1] = fprnn::ignored_target;

    bool solved = true;
    const auto loss = [&] {
        std::vector<fprnn::solution<double>> how;
        tensor<double> value({1});
        value[0] =
            cross_entropy(model.evaluate(theta, tokens.view(), &how, fprnn::reference{}).view(), targets.view()).loss;
        for (const auto& s : how) solved = solved && s.all_converged();
        return value;
    };
    tensor<double> one({1});
    one[0] = 1;
    auto expected = theta.zeros_like();
    for (index i = 0; i < theta.size(); ++i)
        expected.data()[i] = fprnn::testing::slope(loss, one, theta.data()[i], 5e-4);
    CHECK(solved);

    for (const index C : {index{1}, index{2}, fprnn::whole_sequence}) {
        CAPTURE(C);
        each_block(model, [&](auto& b) { b.schedule.length = C; });
        fprnn::tape<double> tape(theta, fprnn::eigen{2});
        const auto logits = model(tape, tokens.view());
        const auto value = cross_entropy(tape, logits, targets.view());
        CHECK(tape.value(value)[0] == doctest::Approx(loss()[0]).epsilon(1e-11));
        const auto& gradient = tape.gradient(value);
        gradient_error e;
        for (const auto& p : theta.entries())
            e.take(p.name, gradient.data() + p.offset, expected.data() + p.offset, p.shape.count());
        CAPTURE(e.where);
        CHECK(e.worst <= 1e-7);
        MESSAGE("C = " << C << ", model - differences: " << e.worst);
    }
}

TEST_CASE("sequence_model: the tape's gradient of every parameter is that of central differences, FP-RNN") {
    check_gradients(fprnn::models::fp_rnn<2>(), 3, 5);
}

TEST_CASE("sequence_model: the tape's gradient of every parameter is that of central differences, FP-Mamba") {
    check_gradients(fprnn::models::fp_mamba<2>(), 2, 5);
}

TEST_CASE(
    "sequence_model: the tape's gradient of every parameter, of a stack of different blocks with a tied embedding") {
    using namespace fprnn::models;
    const model_dims size{.vocabulary = 3, .classes = 3, .d_model = 4, .d_inner = 4, .d_state = 2, .tied = true};
    check_gradients(stack(lstm(), swiglu<fprnn::fixed_width<5>>(), fp_rnn<1>()), size, 2, 4);
}

TEST_CASE("sequence_model: a block is one record of the tape, whatever the number of iterations") {
    const auto tokens = numbers(2, 5, 3, 1), targets = numbers(2, 5, 4, 2);
    for (const int layers : {1, 3})
        for (const int ell_max : {1, 50}) {
            sequence_model model(
                fprnn::models::fp_rnn<2>(),
                model_dims{.vocabulary = 3, .classes = 4, .d_model = 4, .d_inner = 5, .layers = layers},
                fprnn::parallel({.tolerance = 1e-13, .ell_max = ell_max}));
            const auto theta = model.init<double>(fprnn::seed{6});
            fprnn::tape<double> tape(theta);
            (void)cross_entropy(tape, model(tape, tokens.view()), targets.view());
            CHECK(tape.records() == static_cast<std::size_t>(layers + 3));  // embedding, blocks, head, loss
        }
}

/// The first step of a training.
template <class Block>
fprnn::training_step first_step(Block block, chunked schedule, fprnn::adjoint a) {
    const sequence_model model(
        block, model_dims{.vocabulary = 6, .classes = 6, .d_model = 8, .d_inner = 8, .d_state = 2, .layers = 2},
        schedule, a);
    auto theta = model.template init<double>(fprnn::seed{6});
    const fprnn::word_problem data{.group = fprnn::finite_group("S3")};
    fprnn::training_step first;
    fprnn::train(model, theta, {.batch = 5, .length = 6, .steps = 2}, data, [&](const fprnn::training_step& s) {
        first = s;
        return false;
    });
    return first;
}

TEST_CASE("sequence_model: a training step reports how the adjoint's solves ended, where an equation is solved") {
    const auto fp_rnn = fprnn::models::fp_rnn<2>();
    const auto direct = first_step(fp_rnn, {.length = 1}, implicit{});
    CHECK(direct.adjoint_iterations == 1.0);
    CHECK(direct.adjoint_share_converged == 1.0);
    CHECK(direct.share_converged == 1.0);
    const auto repeated = first_step(fp_rnn, fprnn::parallel(), implicit{});
    CHECK(repeated.adjoint_iterations > 2.0);
    CHECK(repeated.adjoint_share_converged == 1.0);
    const auto ended = first_step(fp_rnn, fprnn::parallel(), implicit{.tolerance = 1e-14, .ell_max = 2});
    CHECK(ended.adjoint_iterations == 2.0);
    CHECK(ended.adjoint_share_converged == 0.0);
    CHECK(ended.share_converged == 1.0);  // the way there is another solve
    for (const fprnn::adjoint& a : {fprnn::adjoint(fprnn::one_step{}), fprnn::adjoint(fprnn::unrolled{})}) {
        const auto none = first_step(fp_rnn, {.length = 1}, a);
        CHECK(none.share_converged.has_value());
        CHECK_FALSE(none.adjoint_iterations.has_value());
        CHECK_FALSE(none.adjoint_share_converged.has_value());
    }
    CHECK_FALSE(first_step(fprnn::models::mamba(), {.length = 1}, implicit{}).adjoint_share_converged.has_value());
}

TEST_CASE("sequence_model: it evaluates to the same bits with and without a tape") {
    sequence_model model(
        fprnn::models::fp_mamba<2>(),
        model_dims{.vocabulary = 5, .classes = 5, .d_model = 8, .d_inner = 8, .d_state = 4, .layers = 2});
    const auto theta = model.init<float>(fprnn::seed{6});
    const auto tokens = numbers(19, 7, 5, 1);
    fprnn::tape<float> tape(theta);
    std::vector<fprnn::solution<float>> how;
    const auto logits = model(tape, tokens.view(), &how);
    CHECK(fprnn::testing::same_bits(tape.value(logits), model.evaluate(theta, tokens.view())));
    REQUIRE(how.size() == 2);
    CHECK(how[1].iterations.size() == 19);
    CHECK(how[1].iterations[0] > 1);
}

/// Evaluates tokens in calls of these lengths, which follow each other, and compares with one call.
template <class Block>
void check_pieces(Block block, index C, const std::vector<index>& lengths) {
    const sequence_model model(block,
                               model_dims{.vocabulary = 5,
                                          .classes = 6,
                                          .d_model = 8,
                                          .d_inner = 8,
                                          .d_state = 4,
                                          .heads = 2,
                                          .d_key = 4,
                                          .layers = 2},
                               chunked{.length = C});
    auto theta = model.template init<float>(fprnn::seed{6});
    for (const auto& p : theta.entries())  // FP-Mamba2 contracts where the norm in the loop makes little of y
        if (p.name.ends_with("y_norm.weight"))
            for (float& w : theta[p.name]) w = 0.3F;
    const index B = 19, T = std::accumulate(lengths.begin(), lengths.end(), index{0});
    const auto tokens = numbers(B, T, 5, 1);
    const auto once = model.evaluate(theta, tokens.view());
    fprnn::models::model_carry<float> carry;
    index at = 0;
    bool same = true;
    for (const index n : lengths) {
        std::vector<fprnn::solution<float>> how;
        const auto logits = model.evaluate(theta, fprnn::testing::tokens(tokens, at, n).view(), carry, &how);
        REQUIRE(logits.shape() == fprnn::shape{B, n, 6});
        CHECK(how[1].all_converged());
        for (index b = 0; b < B; ++b)
            same = same && std::equal(&logits(b, 0, 0), &logits(b, 0, 0) + n * 6, &once(b, at, 0));
        at += n;
    }
    CHECK(same);
}

TEST_CASE("sequence_model: calls that hand on their carry give the bits of one call, where a chunk ends with each") {
    SUBCASE("one-token chunks, cut anywhere") {
        for (const auto& lengths : std::vector<std::vector<index>>{{3, 4}, {6, 1}, {1, 1, 1, 1, 1, 1, 1}}) {
            check_pieces(fprnn::models::fp_rnn<2>(), 1, lengths);
            check_pieces(fprnn::models::fp_mamba<2>(), 1, lengths);
            check_pieces(fprnn::models::mamba(), 1, lengths);
            check_pieces(fprnn::models::lstm(), 1, lengths);
            check_pieces(fprnn::models::fp_mamba2(fprnn::householder<2>), 1, lengths);
            check_pieces(fprnn::models::published_mamba(), 1, lengths);
            check_pieces(stack(fprnn::models::mamba2(), fprnn::models::swiglu(), fprnn::models::gated_deltanet()), 1,
                         lengths);
        }
    }
    SUBCASE("longer chunks, cut between them") {
        check_pieces(fprnn::models::fp_rnn<2>(), 3, {3, 6, 2});
        check_pieces(fprnn::models::fp_mamba<2>(), 2, {2, 4, 1});
    }
}

/// A tape's windows: values and carries are those of evaluate, from a carry of zeros those from none, and a
/// gradient is that of the window alone, whose carry is given.
template <class Block>
void check_window(Block block, const model_dims& size) {
    const sequence_model model(block, size, tight, implicit{.tolerance = 1e-13, .ell_max = 1000});
    auto theta = model.template init<double>(fprnn::seed{6});
    fprnn::testing::shake(theta, 0.1);
    const index V = size.vocabulary;
    const auto before = numbers(2, 3, static_cast<std::uint64_t>(V), 1);
    const auto tokens = numbers(2, 2, static_cast<std::uint64_t>(V), 2);
    const auto targets = numbers(2, 2, static_cast<std::uint64_t>(size.classes), 3);
    using carry_of = fprnn::models::model_carry<double>;
    const auto same_carry = [](const carry_of& a, const carry_of& b) {
        bool same = a.blocks.size() == b.blocks.size();
        for (std::size_t i = 0; same && i < a.blocks.size(); ++i) same = same_bits(a.blocks[i], b.blocks[i]);
        return same;
    };
    carry_of of_tape, of_evaluate;
    const auto first = model.evaluate(theta, before.view(), of_evaluate);
    const carry_of begins = of_evaluate;
    carry_of zeros = of_evaluate;
    for (auto& c : zeros.blocks) std::fill(c.begin(), c.end(), 0.0);
    CHECK(same_bits(model.evaluate(theta, before.view(), zeros), first));
    CHECK(same_carry(zeros, begins));

    fprnn::tape<double> tape(theta);
    CHECK(same_bits(tape.value(model(tape, before.view(), of_tape)), first));
    CHECK(same_carry(of_tape, begins));
    tape.clear();
    std::vector<fprnn::solution<double>> how;
    const auto logits = model(tape, tokens.view(), of_tape, &how);
    CHECK(how.size() == begins.blocks.size());
    CHECK(same_bits(tape.value(logits), model.evaluate(theta, tokens.view(), of_evaluate)));
    CHECK(same_carry(of_tape, of_evaluate));
    const auto& gradient = tape.gradient(cross_entropy(tape, logits, targets.view()));

    const auto loss = [&] {
        carry_of c = begins;
        tensor<double> value({1});
        value[0] = cross_entropy(model.evaluate(theta, tokens.view(), c).view(), targets.view()).loss;
        return value;
    };
    tensor<double> one({1});
    one[0] = 1;
    auto expected = theta.zeros_like();
    double largest = 0;
    for (index i = 0; i < theta.size(); ++i) {
        expected.data()[i] = fprnn::testing::slope(loss, one, theta.data()[i]);
        largest = std::max(largest, std::abs(expected.data()[i]));
    }
    // Of two tokens ω has a gradient whose differences are rounding errors.
    gradient_error e{.nothing = 1e-4 * largest};
    for (const auto& p : theta.entries())
        e.take(p.name, gradient.data() + p.offset, expected.data() + p.offset, p.shape.count());
    CAPTURE(e.where);
    CHECK(e.worst <= 1e-7);
}

TEST_CASE("sequence_model: a window on a tape goes on from a carry, and its gradient ends there") {
    const model_dims size{.vocabulary = 3,
                          .classes = 4,
                          .d_model = 4,
                          .d_inner = 4,
                          .d_state = 3,
                          .heads = 2,
                          .d_head = 2,
                          .d_key = 2,
                          .context = 8,
                          .layers = 2};
    check_window(fprnn::models::fp_mamba<2>(), size);
    check_window(fprnn::models::published_mamba(), size);
    check_window(fprnn::models::lstm(), size);
    check_window(stack(fprnn::models::transformer(), fprnn::models::mamba2()), size);
    check_window(stack(fprnn::models::gated_deltanet(), fprnn::models::mlstm_block(), fprnn::models::slstm_block()),
                 size);
}

TEST_CASE("sequence_model: a window on a tape that cannot go on leaves its carry as it was") {
    const model_dims two{.vocabulary = 3, .classes = 4, .d_model = 4, .d_inner = 5, .layers = 2};
    const sequence_model model(fprnn::models::fp_rnn<2>(), two);
    const auto theta = model.init<double>(fprnn::seed{0});
    fprnn::models::model_carry<double> carry;
    fprnn::tape<double> tape(theta);
    (void)model(tape, numbers(2, 3, 3, 1).view(), carry);
    const auto before = carry;
    const auto width = std::to_string(before.blocks[0].shape()[1]);
    CHECK_THROWS_WITH_AS(
        (void)model(tape, numbers(3, 1, 3, 2).view(), carry),
        ("sequence_model: carry must be of [3," + width + "] in block 0, got [2," + width + "]").c_str(),
        fprnn::argument_error);
    tensor<std::int32_t> wrong({2, 1});
    wrong[1] = 3;
    CHECK_THROWS_AS((void)model(tape, wrong.view(), carry), fprnn::argument_error);
    CHECK(same_bits(carry.blocks[1], before.blocks[1]));
    auto seven = two;
    seven.classes = 7;
    CHECK_THROWS_AS((void)sequence_model(fprnn::models::fp_rnn<2>(), seven)(tape, numbers(2, 1, 3, 2).view(), carry),
                    fprnn::argument_error);
    CHECK(same_bits(carry.blocks[1], before.blocks[1]));
    carry.blocks.pop_back();
    CHECK_THROWS_WITH_AS((void)model(tape, numbers(2, 1, 3, 2).view(), carry),
                         "sequence_model: carry must be empty or of 2 blocks, got 1", fprnn::argument_error);
}

TEST_CASE("sequence_model: a carry of other layers or sequences is refused, and an evaluation that throws keeps it") {
    const model_dims two{.vocabulary = 3, .classes = 4, .d_model = 4, .d_inner = 5, .layers = 2};
    const sequence_model model(fprnn::models::fp_rnn<2>(), two);
    const auto theta = model.init<double>(fprnn::seed{0});
    const auto tokens = numbers(2, 3, 3, 1);
    fprnn::models::model_carry<double> carry;
    (void)model.evaluate(theta, tokens.view(), carry);
    REQUIRE(carry.blocks.size() == 2);
    const auto before = carry;
    const auto next = numbers(2, 1, 3, 2);
    const auto expected = model.evaluate(theta, next.view(), carry);

    carry = before;
    tensor<std::int32_t> wrong({2, 1});
    wrong[1] = 3;
    CHECK_THROWS_AS((void)model.evaluate(theta, wrong.view(), carry), fprnn::argument_error);
    const auto width = std::to_string(before.blocks[0].shape()[1]);
    CHECK_THROWS_WITH_AS(
        (void)model.evaluate(theta, numbers(3, 1, 3, 2).view(), carry),
        ("sequence_model: carry must be of [3," + width + "] in block 0, got [2," + width + "]").c_str(),
        fprnn::argument_error);
    CHECK(fprnn::testing::same_bits(model.evaluate(theta, next.view(), carry), expected));
    carry.blocks.pop_back();
    CHECK_THROWS_WITH_AS((void)model.evaluate(theta, next.view(), carry),
                         "sequence_model: carry must be empty or of 2 blocks, got 1", fprnn::argument_error);
    carry = {};
    (void)model.evaluate(theta, tensor<std::int32_t>({0, 3}).view(),
                         carry);  // of no sequence, which is not the beginning
    CHECK_THROWS_WITH_AS(
        (void)model.evaluate(theta, next.view(), carry),
        ("sequence_model: carry must be of [2," + width + "] in block 0, got [0," + width + "]").c_str(),
        fprnn::argument_error);
}

TEST_CASE("sequence_model: parameters are named by layer, and sizes below one are refused") {
    sequence_model model(fprnn::models::mamba(),
                         model_dims{.vocabulary = 3, .classes = 4, .d_model = 4, .d_inner = 5, .layers = 2});
    const auto theta = model.init<double>(fprnn::seed{0});
    CHECK(theta.entries().front().name == "embedding");
    CHECK(theta["blocks.0.x"].shape() == fprnn::shape{5, 4});
    CHECK(theta["blocks.1.x"].shape() == fprnn::shape{5, 4});
    CHECK(theta["head.logits"].shape() == fprnn::shape{4, 4});
    CHECK(fprnn::testing::distance(theta["blocks.0.x"], theta["blocks.1.x"]) > 0.01);  // each layer has its own start
    CHECK_THROWS_WITH_AS(sequence_model(fprnn::models::mamba(), model_dims{.vocabulary = 3, .classes = 4, .layers = 0}),
                         "model_dims: layers must be at least 1, got 0", fprnn::argument_error);
}

TEST_CASE(
    "sequence_model: a stack stands there several times, its blocks by turns, and a carry is that of its blocks") {
    const model_dims size{.vocabulary = 3, .classes = 4, .d_model = 4, .d_inner = 5, .layers = 2};
    sequence_model model(stack(fprnn::models::mamba(), fprnn::models::lstm(), fprnn::models::swiglu()), size);
    const auto theta = model.init<double>(fprnn::seed{0});
    for (const char* name : {"blocks.0.ssm.omega", "blocks.1.f.bias", "blocks.2.down", "blocks.3.ssm.omega",
                             "blocks.4.f.bias", "blocks.5.down"})
        CHECK(theta.contains(name));
    CHECK_FALSE(theta.contains("blocks.6.norm.weight"));
    CHECK(theta["blocks.5.up"].shape() == fprnn::shape{12, 4});

    // By hand: the blocks' layers one after the other.
    const auto tokens = numbers(2, 5, 3, 1);
    fprnn::models::model_carry<double> carry;
    std::vector<fprnn::solution<double>> how;
    const auto logits = model.evaluate(theta, tokens.view(), carry, &how);
    REQUIRE(how.size() == 6);
    REQUIRE(carry.blocks.size() == 6);
    tensor<double> x({2, 5, 4});
    for (index i = 0; i < tokens.size(); ++i)
        std::copy_n(&theta["embedding"].data()[4 * tokens[i]], 4, x.data() + 4 * i);
    const auto apply = [&](const auto& block, std::size_t i) {
        const auto name = fprnn::models::prefix_of_block(i);
        const auto* own = theta.data() + block.parameter_offset(theta, model.block_dims(), name);
        fprnn::default_backend backend;
        x = block.template run<double>(model.block_dims(), own, x.view(), {}, backend, nullptr).value;
    };
    for (const std::size_t i : {0U, 3U}) {
        apply(model.block<0>(), i);
        apply(model.block<1>(), i + 1);
        apply(model.block<2>(), i + 2);
    }
    fprnn::default_backend backend;
    const auto* head = theta.data() + model.head.parameter_offset(theta, model.head_dims(), "head.");
    CHECK(same_bits(logits, model.head.run<double>(model.head_dims(), head, x.view(), {}, backend, nullptr).value));

    // A carry of another model is refused, and stays what it was.
    const sequence_model other(stack(fprnn::models::lstm(), fprnn::models::mamba(), fprnn::models::swiglu()), size);
    const auto before = carry;
    const auto of_other = other.init<double>(fprnn::seed{0});
    const auto width = std::to_string(carry.blocks[0].shape()[1]),
               expected = std::to_string(carry.blocks[1].shape()[1]);
    CHECK_THROWS_WITH_AS(
        (void)other.evaluate(of_other, tokens.view(), carry),
        ("sequence_model: carry must be of [2," + expected + "] in block 0, got [2," + width + "]").c_str(),
        fprnn::argument_error);
    for (std::size_t i = 0; i < 6; ++i) CHECK(same_bits(carry.blocks[i], before.blocks[i]));
}

TEST_CASE("sequence_model: with a tied embedding the logits are products with the embedding's rows") {
    const model_dims size{.vocabulary = 5, .classes = 5, .d_model = 4, .d_inner = 6, .tied = true};
    const sequence_model model(fprnn::models::mamba(), size);
    const auto theta = model.init<double>(fprnn::seed{0});
    CHECK_FALSE(theta.contains("head.logits"));
    CHECK(theta.contains("head.norm.weight"));
    CHECK(fprnn::testing::largest(theta["embedding"]) < 0.1);  // deviation 0.02
    const auto tokens = numbers(19, 7, 5, 1);
    fprnn::tape<double> tape(theta);
    const auto logits = model(tape, tokens.view());
    CHECK(same_bits(tape.value(logits), model.evaluate(theta, tokens.view())));
    CHECK_THROWS_WITH_AS(
        sequence_model(fprnn::models::mamba(), model_dims{.vocabulary = 5, .classes = 4, .tied = true}),
        "model_dims: classes must be those of the vocabulary, 5, where the embedding is tied, got 4",
        fprnn::argument_error);
}

TEST_CASE("sequence_model: parameters of another model, and sizes changed to nonsense, are refused") {
    const auto of = [](fprnn::index words, int layers, bool tied) {
        return sequence_model(
            fprnn::models::mamba(),
            model_dims{
                .vocabulary = words, .classes = words, .d_model = 4, .d_inner = 5, .layers = layers, .tied = tied});
    };
    const auto refused = [](const auto& model, const auto& theta, const std::string& what) {
        const auto tokens = numbers(2, 3, 3, 1);
        fprnn::tape<double> tape(theta);
        CHECK_THROWS_WITH_AS(model.evaluate(theta, tokens.view()), what.c_str(), fprnn::argument_error);
        CHECK_THROWS_WITH_AS(model(tape, tokens.view()), what.c_str(), fprnn::argument_error);
    };
    for (const bool tied : {false, true}) {
        CAPTURE(tied);
        refused(of(50, 1, tied), of(3, 1, tied).init<double>(fprnn::seed{0}),
                "sequence_model: 'embedding' must be [50,4], got [3,4]");
        refused(of(3, 1, tied), of(3, 2, tied).init<double>(fprnn::seed{0}),
                "sequence_model: parameters must be of 1 blocks, got 'blocks.1.norm.weight'");
    }
    auto model = of(3, 1, false);
    const auto theta = model.init<double>(fprnn::seed{0});
    for (const int layers : {0, -1}) {
        model.size.layers = layers;
        refused(model, theta, "model_dims: layers must be at least 1, got " + std::to_string(layers));
    }
}

TEST_CASE("sequence_model: in a ragged batch, a sequence has the logits and the gradient that it has alone") {
    const sequence_model model(
        fprnn::models::fp_mamba<2>(),
        model_dims{.vocabulary = 3, .classes = 4, .d_model = 4, .d_inner = 5, .d_state = 3, .layers = 2}, tight,
        implicit{.tolerance = 1e-13, .ell_max = 1000});
    const auto theta = model.init<double>(fprnn::seed{6});
    const std::vector<index> n{5, 2, 0, 4};
    const auto tokens = numbers(4, 5, 3, 1), targets = numbers(4, 5, 4, 2);
    auto padded = tokens, counted = targets;
    for (index b = 0; b < 4; ++b)
        for (index t = n[static_cast<std::size_t>(b)]; t < 5; ++t)
            padded(b, t) = -7, counted(b, t) = fprnn::ignored_target;

    std::vector<fprnn::solution<double>> how;
    fprnn::models::model_carry<double> carry;
    const auto logits = model.evaluate(theta, padded.view(), n, carry, &how);
    CHECK(fprnn::testing::same_bits(logits, model.evaluate(theta, padded.view(), n)));
    fprnn::tape<double> tape(theta);
    const auto loss = cross_entropy(tape, model(tape, padded.view(), n), counted.view());
    const auto gradient = tape.gradient(loss);
    auto sum = theta.zeros_like();
    for (index b = 0; b < 4; ++b) {
        CAPTURE(b);
        const index length = n[static_cast<std::size_t>(b)];
        CHECK(how[0].tokens_converged[static_cast<std::size_t>(b)] == length);
        CHECK(fprnn::testing::largest(
                  fprnn::testing::tokens(fprnn::testing::sequences(logits, b, 1), length, 5 - length)) == 0);
        if (length == 0) continue;
        tensor<std::int32_t> own({1, length}), own_targets({1, length});
        std::copy_n(tokens.data() + b * 5, length, own.data());
        std::copy_n(targets.data() + b * 5, length, own_targets.data());
        fprnn::models::model_carry<double> own_carry;
        const auto alone = model.evaluate(theta, own.view(), own_carry);
        CHECK(fprnn::testing::distance(fprnn::testing::tokens(fprnn::testing::sequences(logits, b, 1), 0, length),
                                       alone) < 1e-14);
        for (const std::size_t i : {0U, 1U})
            CHECK(fprnn::testing::distance(fprnn::testing::sequences(carry.blocks[i], b, 1), own_carry.blocks[i]) <
                  1e-14);
        fprnn::tape<double> its(theta);
        const auto& part = its.gradient(cross_entropy(its, model(its, own.view()), own_targets.view()));
        for (index i = 0; i < sum.size(); ++i)  // means over 11 tokens and over its own
            sum.data()[i] += part.data()[i] * static_cast<double>(length) / 11;
    }
    CHECK(fprnn::testing::distance(gradient, sum) < 1e-12 * fprnn::testing::largest(sum));

    // The next tokens of those that go on.
    const std::vector<index> next{0, 3, 1, 0};
    const auto before = carry;
    model.evaluate(theta, tokens.view(), next, carry);
    for (const std::size_t i : {0U, 1U})
        CHECK(fprnn::testing::same_bits(fprnn::testing::sequences(carry.blocks[i], 0, 1),
                                        fprnn::testing::sequences(before.blocks[i], 0, 1)));
    const std::vector<index> few{5, 2}, long_one{5, 2, 0, 6};
    CHECK_THROWS_WITH_AS(model.evaluate(theta, padded.view(), few),
                         "sequence_model: lengths must be 4 numbers, one a sequence, or none, got 2",
                         fprnn::argument_error);
    CHECK_THROWS_WITH_AS(model(tape, padded.view(), long_one), "sequence_model: lengths[3] must lie in [0,5], got 6",
                         fprnn::argument_error);
    const std::vector<index> all(4, 5);
    CHECK_THROWS_AS(model.evaluate(theta, padded.view(), all), fprnn::argument_error);  // −7 is no token
}

}  // namespace
