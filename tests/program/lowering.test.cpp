#include <fprnn/expression/mixers.hpp>
#include <fprnn/fixed_point/layer.hpp>
#include <fprnn/program/lowering.hpp>

#include <doctest/doctest.h>

#include <concepts>
#include <string_view>
#include <type_traits>

namespace {

using namespace fprnn;
using namespace fprnn::symbols;

constexpr auto s = cat(in, shift(prev));
constexpr auto Q = householder<4, "Q">(s);
constexpr auto u = (1 - sigmoid(affine<"lambda">(in))) * (Q * linear<"B">(in) + (I - Q) * prev);
constexpr auto renamed = (1 - sigmoid(affine<"decay">(in))) * prev;
constexpr auto plain = (1 - sigmoid(affine<"lambda">(in))) * prev;

template <class T>
consteval bool names_a_string() {
    return std::string_view(__PRETTY_FUNCTION__).find("fixed_string") != std::string_view::npos;
}

// What nvcc can spell, and what keeps kernels few.
TEST_CASE(
    "lowering: a chain is made of functions and positions, so that layers with other names have the same kernels") {
    CHECK_FALSE(std::same_as<decltype(renamed), decltype(plain)>);
    CHECK(std::same_as<chain_functor<decltype(renamed)>, chain_functor<decltype(plain)>>);
    CHECK(names_a_string<decltype(plain)>());
    CHECK_FALSE(names_a_string<chain_functor<decltype(plain)>>());
}

TEST_CASE("lowering: what does not change in the innermost loop is an argument of its chain") {
    CHECK(std::same_as<chain_functor<std::remove_const_t<decltype(u)>>,
                       chain::multiply<chain::argument<0>, chain::argument<1>>>);
}

TEST_CASE("lowering: a program's nodes are told apart by when they are evaluated, in their order") {
    constexpr auto y = linear<"out">(fixed_point(u));
    using P = program<std::remove_const_t<decltype(y)>>;
    using enum dependence;
    CHECK(std::same_as<nodes_that_depend<P, input, output>, P::nodes>);
    CHECK(std::same_as<nodes_that_depend<P, output>, type_list<P::fixed_point, P::root>>);
    CHECK(std::same_as<node_at<nodes_that_depend<P, shifted>, 0>, shift_node<previous_node>>);
    using iterated = nodes_that_depend<P, shifted, current>;
    CHECK(contains<iterated, previous_node>);
    CHECK(contains<iterated, std::remove_const_t<decltype(u)>>);
    CHECK_FALSE(contains<iterated, input_node>);
    CHECK(length<nodes_that_depend<P, input>> + length<iterated> + 2 == P::size);
}

template <class E, class Root>
constexpr std::size_t first_to(E, Root) {
    return first_writer<program<Root>, E>;
}
template <class P, class Root>
constexpr std::size_t slot_of(P, Root) {
    return program<Root>::template slot<P>;
}

TEST_CASE(
    "lowering: the last reader of a node is the first to write to its cotangents, the output's before the input's, "
    "and none where one is iterated") {
    constexpr auto h = affine<"h">(in);
    constexpr auto a = linear<"a">(h);
    constexpr auto b = linear<"b">(h);
    constexpr auto y = fixed_point(u);
    SUBCASE("of the input's") {
        constexpr auto root = affine<"r">(a) * affine<"s">(b);
        CHECK(first_to(h, root) == slot_of(b, root));
        CHECK(first_to(a, root) == slot_of(affine<"r">(a), root));
        CHECK(first_to(root, root) == graph::nowhere);
    }
    SUBCASE("the output's, which stands before one of the input's") {
        constexpr auto read = linear<"c">(y) * h;
        constexpr auto root = linear<"d">(read) + b;
        CHECK(slot_of(read, root) < slot_of(b, root));
        CHECK(first_to(h, root) == slot_of(read, root));
    }
    SUBCASE("the iteration's") {
        constexpr auto z = fixed_point(sigmoid(h) * prev + a);
        constexpr auto root = z * h;
        CHECK(first_to(h, root) == slot_of(root, root));
        constexpr auto w = fixed_point(sigmoid(affine<"l">(in)) * (h + prev));
        CHECK(first_to(h, w) == graph::nowhere);
        CHECK(first_to(h, w * h) == graph::nowhere);
        CHECK(first_to(prev, w) == graph::nowhere);
    }
}

}  // namespace
