#include <fprnn/expression/mixers.hpp>

#include <doctest/doctest.h>

namespace {

TEST_CASE("product: what one of its factors refuses is refused in that one's name") {
    using product = fprnn::product_mixer<fprnn::householder_mixer<2>, fprnn::block_diagonal_mixer<4>>;
    CHECK_THROWS_WITH_AS(product::check(6), "block_diagonal: blocks of 4 need d_inner to be a multiple of 4, got 6",
                         fprnn::argument_error);
    CHECK_THROWS_WITH_AS(product::check(1), "householder: R = 2 reflections need d_inner >= 2, got 1",
                         fprnn::argument_error);
}

TEST_CASE("product: of functions it has a name, with which those of its factors begin") {
    using namespace fprnn::symbols;
    const auto Q = (householder<1> * kronecker).named<"P">(in);
    const auto same = fprnn::householder<1, "P.0">(in) * fprnn::kronecker.named<"P.1">(in);
    static_assert(std::is_same_v<decltype(Q), decltype(same)>);
}

TEST_CASE("product: of a function of one's own, whose parameters keep their names") {
    using namespace fprnn::symbols;
    const auto own = [](auto s) { return fprnn::householder<1, "P">(s); };
    static_assert(std::is_same_v<decltype((kronecker * own)(in)), decltype(kronecker(in) * own(in))>);
    static_assert(std::is_same_v<decltype((own * kronecker)(in)), decltype(own(in) * kronecker(in))>);
}

}  // namespace
