#include <fprnn/core/shape.hpp>

#include <doctest/doctest.h>

#include <limits>

namespace {

using fprnn::argument_error;
using fprnn::checked_product;
using fprnn::checked_sum;
using fprnn::index;
using fprnn::shape;

constexpr index largest = std::numeric_limits<index>::max();

TEST_CASE("shape: it knows rank, extents, count and the contiguous extent") {
    const shape s{4, 8, 16};
    CHECK(s.rank() == 3);
    CHECK(s[0] == 4);
    CHECK(s[1] == 8);
    CHECK(s[2] == 16);
    CHECK(s.back() == 16);
    CHECK(s.count() == 512);
    CHECK(shape{2, 3, 4, 5}.count() == 120);
}

TEST_CASE("shape: it prints as messages quote it") {
    CHECK(shape{4, 8, 16}.to_string() == "[4,8,16]");
    CHECK(shape{7}.to_string() == "[7]");
    CHECK(shape{}.to_string() == "[]");
}

TEST_CASE("shape: no extents is a scalar, a zero extent is empty") {
    CHECK(shape{}.rank() == 0);
    CHECK(shape{}.count() == 1);
    CHECK(shape{}.back() == 1);
    CHECK(shape{0, 5}.count() == 0);
    CHECK(shape{5, 0}.count() == 0);
    CHECK(shape{0, largest, largest}.count() == 0);
}

TEST_CASE("shape: equal means equal rank and equal extents") {
    CHECK(shape{2, 3} == shape{2, 3});
    CHECK(shape{2, 3} != shape{3, 2});
    CHECK(shape{6} != shape{2, 3});
    CHECK(shape{2} != shape{2, 0});
    CHECK(shape{} != shape{0});
}

TEST_CASE("shape: more than four extents are refused with their number") {
    CHECK_THROWS_WITH_AS((shape{1, 1, 1, 1, 1}), "shape: at most 4 extents, got 5", argument_error);
}

TEST_CASE("shape: a negative extent is refused with its value") {
    CHECK_THROWS_WITH_AS((shape{3, -2}), "shape: extents must not be negative, got 3 and -2", argument_error);
    CHECK_THROWS_AS((shape{-1}), argument_error);
    CHECK_THROWS_AS((shape{0, -1}), argument_error);
}

TEST_CASE("shape: a count beyond 64 bits is refused with its factors") {
    CHECK(shape{1l << 31, 1l << 31}.count() == 1l << 62);
    CHECK(shape{largest}.count() == largest);
    CHECK_THROWS_WITH_AS((shape{1l << 32, 1l << 31}), "shape: 4294967296 x 2147483648 does not fit 64 bits",
                         argument_error);
    CHECK_THROWS_AS((shape{largest, 2}), argument_error);
}

TEST_CASE("checked_product: it is exact up to the largest index and refuses what lies beyond") {
    CHECK(checked_product(6, 7) == 42);
    CHECK(checked_product(0, largest) == 0);
    CHECK(checked_product(largest, 0) == 0);
    CHECK(checked_product(largest, 1) == largest);
    CHECK(checked_product(1, largest) == largest);
    CHECK(checked_product(largest / 3, 3) == largest / 3 * 3);
    CHECK_THROWS_AS((void)checked_product(largest / 3 + 1, 3), argument_error);
    CHECK_THROWS_WITH_AS((void)checked_product(largest, 2, "scan"),
                         "scan: 9223372036854775807 x 2 does not fit 64 bits", argument_error);
    CHECK_THROWS_AS((void)checked_product(-1, 0), argument_error);
    CHECK_THROWS_AS((void)checked_product(0, -1), argument_error);
}

TEST_CASE("checked_sum: it is exact up to the largest index and refuses what lies beyond") {
    CHECK(checked_sum(6, 7) == 13);
    CHECK(checked_sum(largest, 0) == largest);
    CHECK(checked_sum(1, largest - 1) == largest);
    CHECK_THROWS_WITH_AS((void)checked_sum(largest, 1, "width"), "width: 9223372036854775807 + 1 does not fit 64 bits",
                         argument_error);
    CHECK_THROWS_AS((void)checked_sum(-1, 1), argument_error);
    CHECK_THROWS_AS((void)checked_sum(1, -1), argument_error);
}

TEST_CASE("require: the message names the operation and is built only when it is needed") {
    bool built = false;
    const auto message = [&] {
        built = true;
        return "lambda is [4,8,16] but u is [4,8,15]";
    };
    CHECK_NOTHROW(fprnn::require(true, "scan", message));
    CHECK_FALSE(built);
    CHECK_THROWS_WITH_AS(fprnn::require(false, "scan", message), "scan: lambda is [4,8,16] but u is [4,8,15]",
                         argument_error);
    CHECK(built);
}

}  // namespace
