#include <fprnn/expression/mixers.hpp>
#include <fprnn/fixed_point/layer.hpp>
#include <fprnn/graph/cotangents.hpp>
#include <fprnn/graph/lower.hpp>

#include <doctest/doctest.h>

#include <type_traits>

namespace {

using namespace fprnn;
using namespace fprnn::symbols;
using graph::nowhere, graph::slot;

template <class E, class Root>
constexpr slot slot_of(E, Root) {
    return position<types_by_slot<Root>, E>;
}
template <class E, class Root>
constexpr slot overwriter_of(E e, Root r) {
    return graph::view_of<Root>[slot_of(e, r)].overwritten_by;
}

TEST_CASE(
    "cotangents: the last reader of a node overwrites them, the output's before the input's, and none where one is "
    "iterated") {
    constexpr auto h = affine<"h">(in);
    constexpr auto a = linear<"a">(h);
    constexpr auto b = linear<"b">(h);
    constexpr auto y = fixed_point((1 - sigmoid(affine<"lambda">(in))) * prev);
    SUBCASE("of the input's") {
        constexpr auto root = affine<"r">(a) * affine<"s">(b);
        CHECK(overwriter_of(h, root) == slot_of(b, root));
        CHECK(overwriter_of(a, root) == slot_of(affine<"r">(a), root));
        CHECK(overwriter_of(root, root) == nowhere);
    }
    SUBCASE("the output's, which stands before one of the input's") {
        constexpr auto read = linear<"c">(y) * h;
        constexpr auto root = linear<"d">(read) + b;
        CHECK(slot_of(read, root) < slot_of(b, root));
        CHECK(overwriter_of(h, root) == slot_of(read, root));
    }
    SUBCASE("those behind the second fixed point, which stand before one behind the first") {
        constexpr auto k = linear<"k">(y);
        constexpr auto read = linear<"c">(fixed_point(sigmoid(y) * prev)) * k;
        constexpr auto late = linear<"e">(k);
        constexpr auto root = linear<"d">(read) + late;
        CHECK(slot_of(read, root) < slot_of(late, root));
        CHECK(overwriter_of(k, root) == slot_of(read, root));
    }
    SUBCASE("the iteration's") {
        constexpr auto z = fixed_point(sigmoid(h) * prev + a);
        constexpr auto root = z * h;
        CHECK(overwriter_of(h, root) == slot_of(root, root));
        constexpr auto w = fixed_point(sigmoid(affine<"l">(in)) * (h + prev));
        CHECK(overwriter_of(h, w) == nowhere);
        CHECK(overwriter_of(h, w * h) == nowhere);
        CHECK(overwriter_of(prev, w) == nowhere);
    }
}

TEST_CASE("cotangents: only elementwise functions and maps that read a node once overwrite them") {
    constexpr auto h = affine<"h">(in);
    constexpr auto a = parameter<"a">();
    CHECK(overwriter_of(h, h * a) == slot_of(h * a, h * a));
    CHECK(overwriter_of(a, h * a) == nowhere);  // a sum over all tokens
    CHECK(overwriter_of(h, normalise(h)) == nowhere);
    constexpr auto once = linear<"o">(h);
    constexpr auto twice = linear<"o">(cat(h, h));
    CHECK(overwriter_of(h, once) == slot_of(once, once));
    CHECK(overwriter_of(h, twice) == nowhere);
    CHECK(overwriter_of(h * a, h * a) == nowhere);
    constexpr auto not_first = linear<"o">(cat(normalise(h), h));
    CHECK(overwriter_of(h, not_first) == slot_of(not_first, not_first));
}

}  // namespace
