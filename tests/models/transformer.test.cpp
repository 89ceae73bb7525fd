#include "models/fixture.hpp"

#include <fprnn/models/lstm.hpp>
#include <fprnn/models/sequence_model.hpp>
#include <fprnn/models/transformer.hpp>

namespace {

using namespace fprnn::testing;
using fprnn::index;
using fprnn::tensor;
using fprnn::models::model_carry;
using fprnn::models::model_dims;
using fprnn::models::sequence_model;

TEST_CASE("transformer: values and gradients are those of NumPy, a token after the other") {
    const auto block = fprnn::models::transformer();
    const fixture fixed("transformer");
    check_fixture<double>(block, fixed, 1e-12, 1e-12);
    check_fixture<float>(block, fixed, 1e-6, float_gradients);
}

TEST_CASE("transformer: its parameters, under the names of the documentation") {
    const fprnn::layer layer(fprnn::models::transformer<fprnn::fixed_width<5>>());
    const auto theta = fprnn::init<double>(layer, {.d_in = 4, .d_inner = 6, .heads = 2, .d_key = 2});
    const std::vector<std::pair<std::string, fprnn::shape>> expected{
        {"norm.weight", {4}},     {"q", {4, 4}},    {"k", {4, 4}},  {"v", {6, 4}},   {"out", {4, 6}},
        {"mlp_norm.weight", {4}}, {"gate", {5, 4}}, {"up", {5, 4}}, {"down", {4, 5}}};
    CHECK(theta.entries().size() == expected.size());
    for (const auto& [name, extents] : expected) CHECK(theta[name].shape() == extents);
}

constexpr model_dims size_of_model{
    .vocabulary = 5, .classes = 5, .d_model = 8, .d_inner = 8, .heads = 2, .d_key = 4, .context = 12, .layers = 2};
tensor<std::int32_t> numbers(index B, index T) {
    tensor<std::int32_t> t({B, T});
    const fprnn::random_stream r(fprnn::seed{8}, 1);
    for (index i = 0; i < t.size(); ++i) t[i] = static_cast<std::int32_t>(r.below(i, 5));
    return t;
}

TEST_CASE("transformer: a model goes on token by token, with the bits of one call, until its context is full") {
    const sequence_model model(fprnn::models::transformer(), size_of_model);
    const auto theta = model.init<float>(fprnn::seed{1});
    const auto x = numbers(3, 12);
    const auto whole = model.evaluate(theta, x.view());
    model_carry<float> carry;
    index at = 0;
    for (const index n : {6, 1, 1, 1, 3}) {
        const auto part = model.evaluate(theta, tokens(x, at, n).view(), carry);
        CHECK(same_bits(part, tokens(whole, at, n)));
        at += n;
    }
    const auto before = carry;
    CHECK_THROWS_WITH_AS((void)model.evaluate(theta, tokens(x, 0, 1).view(), carry),
                         "attention: x must have at most 0 tokens in sequence 0, behind 12 in a context of 12, got 1",
                         fprnn::argument_error);
    REQUIRE(carry.blocks.size() == before.blocks.size());
    for (std::size_t i = 0; i < before.blocks.size(); ++i) CHECK(same_bits(carry.blocks[i], before.blocks[i]));
}

TEST_CASE("transformer: a model without room says so before any block has computed") {
    const sequence_model model(fprnn::models::stack(fprnn::models::lstm(), fprnn::models::transformer()),
                               size_of_model);
    const auto theta = model.init<float>(fprnn::seed{1});
    const auto x = numbers(2, 13);
    std::vector<fprnn::solution<float>> how;
    const char* message = "attention: x must have at most 12 tokens in sequence 0, behind 0 in a context of 12, got 13";
    CHECK_THROWS_WITH_AS((void)model.evaluate(theta, x.view(), &how), message, fprnn::argument_error);
    CHECK(how.empty());
    fprnn::tape<float> tape(theta);
    CHECK_THROWS_WITH_AS((void)model(tape, x.view()), message, fprnn::argument_error);
    CHECK(tape.records() == 0);
    CHECK_NOTHROW((void)model(tape, x.view(), std::vector<index>{12, 3}));
}

TEST_CASE("transformer: the last token sees the first one, and no token sees one behind it") {
    const sequence_model model(fprnn::models::transformer(), size_of_model);
    const auto theta = model.init<double>(fprnn::seed{1});
    auto x = numbers(1, 12);
    const auto first = model.evaluate(theta, x.view());
    x[0] = (x[0] + 1) % 5;
    CHECK(distance(tokens(first, 11, 1), tokens(model.evaluate(theta, x.view()), 11, 1)) > 1e-3);
    x[0] = (x[0] + 4) % 5;
    x[11] = (x[11] + 1) % 5;
    CHECK(same_bits(tokens(first, 0, 11), tokens(model.evaluate(theta, x.view()), 0, 11)));
}

TEST_CASE("model_dims: the context must be positive") {
    auto wrong = size_of_model;
    wrong.context = 0;
    CHECK_THROWS_WITH_AS(wrong.validate(), "model_dims: context must be at least 1, got 0", fprnn::argument_error);
}

}  // namespace
