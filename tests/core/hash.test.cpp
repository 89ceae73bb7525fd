#include <fprnn/core/hash.hpp>

#include <doctest/doctest.h>

namespace {

using fprnn::detail::fnv1a;

TEST_CASE("hash: FNV-1a has its published values, and goes on from what came before") {
    static_assert(fnv1a("") == 0xcbf29ce484222325u);
    static_assert(fnv1a("a") == 0xaf63dc4c8601ec8cu);
    static_assert(fnv1a("foobar") == 0x85944171f73967e8u);
    CHECK(fnv1a("bar", fnv1a("foo")) == fnv1a("foobar"));
    CHECK(fnv1a("\xff") == (0xcbf29ce484222325u ^ 0xffu) * 0x100000001b3u);  // bytes are unsigned
}

}  // namespace
