#include <fprnn/ops/embedding.hpp>

#include <ops/checks.hpp>

namespace {

using checks::random;
using fprnn::argument_error;
using fprnn::index;
using fprnn::shape;
using fprnn::tensor;
using tokens_of = tensor<std::int32_t>;

TEST_CASE_TEMPLATE("embedding: y[b,t] is the token's row of the table, to the bit", T, float, double) {
    for (index D : {1, 3, 17}) {
        const auto table = random<T>({5, D}, 1);
        const tokens_of tokens({2, 3}, {4, 0, 1, 1, 2, 4});
        const auto y = fprnn::embedding(table, tokens);
        CHECK(y.shape() == shape{2, 3, D});
        for (index b = 0; b < 2; ++b)
            for (index t = 0; t < 3; ++t)
                for (index d = 0; d < D; ++d) CHECK(y(b, t, d) == table(tokens(b, t), d));
    }
}

TEST_CASE("embedding: the gradient agrees with central differences, tokens that repeat or are absent included") {
    for (const shape& s : checks::odd_sizes()) {
        auto table = random<double>({4, s[2]}, 1);
        tokens_of tokens({s[0], s[1]});
        for (index i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i * i % 3);
        const auto y_bar = random<double>(s, 2);
        tensor<double> table_bar(table.shape());
        fprnn::embedding_back(tokens, y_bar, table_bar);
        checks::check_gradients(fprnn::gradcheck([&] { return checks::dot(fprnn::embedding(table, tokens), y_bar); },
                                                 {{"table", table, table_bar}}));
        tensor<double> more(table.shape());
        more.fill(10);
        fprnn::embedding_back(tokens, y_bar, more);
        checks::check_added_to_ten(more, table_bar);
    }
}

TEST_CASE("embedding: without sequences, tokens or channels the result is empty") {
    for (const shape& s : {shape{0, 5}, shape{2, 0}}) {
        tensor<float> table({3, 4});
        const auto y = fprnn::embedding(table, tokens_of(s));
        CHECK(y.shape() == shape{s[0], s[1], 4});
        fprnn::embedding_back(tokens_of(s), y, table);
    }
    tensor<float> thin({3, 0});
    CHECK(fprnn::embedding(thin, tokens_of({1, 2})).shape() == shape{1, 2, 0});
    fprnn::embedding_back(tokens_of({1, 2}), tensor<float>({1, 2, 0}), thin);
}

TEST_CASE("embedding: wrong shapes and tokens outside of the table are named") {
    const tensor<float> table({5, 4}), y_bar({1, 3, 4});
    tensor<float> table_bar({5, 4});
    const tokens_of tokens({1, 3}), flat({3}), high({1, 3}, {0, 5, 0}), low({1, 3}, {0, 1, -1});
    CHECK_THROWS_WITH_AS(fprnn::embedding(y_bar, tokens), "embedding: table must be [V,D], got [1,3,4]",
                         argument_error);
    CHECK_THROWS_WITH_AS(fprnn::embedding(table, flat), "embedding: tokens must be [B,T], got [3]", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::embedding(table, high), "embedding: token 5 at position 1 is outside of the table of 5",
                         argument_error);
    CHECK_THROWS_WITH_AS(fprnn::embedding(table, low), "embedding: token -1 at position 2 is outside of the table of 5",
                         argument_error);
    tensor<float> cube({1, 3, 4});
    CHECK_THROWS_WITH_AS(fprnn::embedding_back(tokens, y_bar, cube),
                         "embedding_back: table_bar must be [V,D], got [1,3,4]", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::embedding_back(flat, y_bar, table_bar), "embedding_back: tokens must be [B,T], got [3]",
                         argument_error);
    CHECK_THROWS_WITH_AS(fprnn::embedding_back(high, y_bar, table_bar),
                         "embedding_back: token 5 at position 1 is outside of the table of 5", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::embedding_back(tokens, table, table_bar),
                         "embedding_back: y_bar must be [1,3,4], got [5,4]", argument_error);
}

}  // namespace
