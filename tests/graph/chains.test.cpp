#include <fprnn/expression/mixers.hpp>
#include <fprnn/graph/chains.hpp>

#include <doctest/doctest.h>

#include <concepts>
#include <string_view>
#include <type_traits>

namespace {

using namespace fprnn;
using namespace fprnn::symbols;

constexpr auto Q = householder<4, "Q">(cat(in, shift(prev)));
constexpr auto u = (1 - sigmoid(affine<"lambda">(in))) * (Q * linear<"B">(in) + (I - Q) * prev);
constexpr auto renamed = (1 - sigmoid(affine<"decay">(in))) * prev;
constexpr auto plain = (1 - sigmoid(affine<"lambda">(in))) * prev;

template <class T>
consteval bool names_a_map() {
    return std::string_view(__PRETTY_FUNCTION__).find("linear_node") != std::string_view::npos;
}

// What nvcc can spell, and what keeps kernels few.
TEST_CASE("chains: they are made of functions and positions, so that layers with other names have the same kernels") {
    CHECK_FALSE(std::same_as<decltype(renamed), decltype(plain)>);
    CHECK(std::same_as<chain_functor<decltype(renamed)>, chain_functor<decltype(plain)>>);
    CHECK(names_a_map<decltype(plain)>());
    CHECK_FALSE(names_a_map<chain_functor<decltype(plain)>>());
}

TEST_CASE("chains: what does not change in the innermost loop is an argument of its chain") {
    CHECK(std::same_as<chain_functor<std::remove_const_t<decltype(u)>>,
                       chain::multiply<chain::argument<0>, chain::argument<1>>>);
}

}  // namespace
