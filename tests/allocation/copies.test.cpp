#include "allocations.hpp"

#include <fprnn/core/tensor.hpp>
#include <fprnn/tape/parameters.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <new>
#include <string>

namespace {

/// Assigns `large` to copies of `small`, and fails each allocation of that in turn; `same` tells whether two
/// are equal.
template <class Owner, class Same>
void check_assignment(const Owner& small, const Owner& large, Same same) {
    bool failed = true;
    long n = 1;
    for (; failed; ++n) {
        Owner copy = small;
        allocations::fail_at(n, true);
        bool thrown = false;
        try {
            copy = large;
        } catch (const std::bad_alloc&) {
            thrown = true;
        }
        failed = allocations::stop_failing();
        CHECK(thrown == failed);
        CHECK(same(copy, failed ? small : large));
    }
    CHECK(n > 2);
}

fprnn::parameter_tree<float> tree(const std::string& prefix, fprnn::index count) {
    fprnn::parameter_tree<float> t;
    for (const char* name : {"first", "second"})
        t.add({prefix + name, {count}, {fprnn::initialiser::rule::normal, 1, 0}});
    return t;
}

}  // namespace

TEST_CASE("tensor: an assignment for which memory does not suffice leaves shape and values") {
    const fprnn::tensor<float> small({2}, {1, 2}), large({30, 40});
    check_assignment(small, large, [](const auto& a, const auto& b) {
        return a.shape() == b.shape() && std::equal(a.begin(), a.end(), b.begin(), b.end());
    });
}

TEST_CASE("parameters: an assignment for which memory does not suffice leaves the tree, names and values") {
    const auto same = [](const auto& a, const auto& b) {
        return a.entries() == b.entries() && std::equal(a.begin(), a.end(), b.begin(), b.end());
    };
    check_assignment(tree("a name that is allocated, ", 2), tree("another name that is allocated, ", 300), same);
    auto a = tree("w", 5);
    const auto b = tree("w", 5);
    const float* values = a.data();
    const long before = allocations::count();
    a = b;
    CHECK(allocations::count() == before);
    CHECK(a.data() == values);
    CHECK(same(a, b));
}
