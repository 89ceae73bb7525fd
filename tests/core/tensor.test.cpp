#include <fprnn/core/tensor.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <type_traits>

namespace {

using fprnn::argument_error;
using fprnn::index;
using fprnn::shape;
using fprnn::tensor;
using fprnn::view;

TEST_CASE_TEMPLATE("tensor: it is zero when made and starts on a cache line", T, float, double, std::complex<float>,
                   std::int32_t, char) {
    for (const index n : {1, 3, 17, 1000}) {
        const tensor<T> t(shape{n});
        CHECK(t.size() == n);
        CHECK(std::all_of(t.begin(), t.end(), [](T x) { return x == T(0); }));
        CHECK(reinterpret_cast<std::uintptr_t>(t.data()) % 64 == 0);
    }
}

TEST_CASE("tensor: it is row-major with the last extent contiguous") {
    tensor<int> t({2, 3, 4});
    for (index i = 0; i < t.size(); ++i) t[i] = static_cast<int>(i);
    CHECK(t(0, 0, 3) == 3);
    CHECK(t(0, 1, 0) == 4);
    CHECK(t(1, 0, 0) == 12);
    CHECK(t(1, 2, 3) == 23);
    tensor<int> m({3, 5});
    m(2, 4) = 7;
    CHECK(m[14] == 7);
    const auto& constant = m;
    CHECK(constant(2, 4) == 7);
    CHECK(&constant.view()(1, 0) == constant.data() + 5);
}

TEST_CASE("tensor: values are taken in order, and a wrong number of them is refused with both numbers") {
    const tensor<float> t({2, 2}, {1, 2, 3, 4});
    CHECK(t(0, 1) == 2);
    CHECK(t(1, 0) == 3);
    CHECK_THROWS_WITH_AS((tensor<float>({2, 3}, {1, 2, 3, 4})), "tensor: shape [2,3] needs 6 values, got 4",
                         argument_error);
}

TEST_CASE("tensor: a copy owns its values") {
    tensor<float> a({2, 2}, {1, 2, 3, 4});
    tensor<float> b = a;
    b.fill(9);
    CHECK(a[0] == 1);
    CHECK(b[3] == 9);
    CHECK(a.data() != b.data());
    CHECK(b.shape() == a.shape());
}

TEST_CASE("tensor: empty ones have a shape and no elements") {
    const tensor<float> made, no_batch({0, 5, 7});
    CHECK(made.empty());
    CHECK(made.shape() == shape{0});
    CHECK(no_batch.empty());
    CHECK(no_batch.size() == 0);
    CHECK(no_batch.shape().to_string() == "[0,5,7]");
    CHECK(no_batch.begin() == no_batch.end());
    CHECK(no_batch.view().empty());
}

TEST_CASE("tensor: a scalar has one element") {
    tensor<double> t(shape{});
    CHECK(t.size() == 1);
    t[0] = 3;
    CHECK(t.view().size() == 1);
}

TEST_CASE("tensor: a size that no memory can hold throws instead of wrapping") {
    CHECK_THROWS_AS(tensor<double>({index{1} << 40, index{1} << 40}), argument_error);
    CHECK_THROWS_AS(tensor<double>(shape{index{1} << 62}), std::exception);
}

TEST_CASE("view: it shares the tensor's memory and can only lose the right to write") {
    tensor<float> t({2, 3});
    const view<float> write = t;
    const view<const float> read = write;
    write(1, 2) = 5;
    CHECK(t(1, 2) == 5);
    CHECK(read(1, 2) == 5);
    CHECK(read.data() == t.data());
    CHECK(read.shape() == shape{2, 3});
    CHECK(read.end() - read.begin() == 6);
    static_assert(std::is_convertible_v<view<float>, view<const float>>);
    static_assert(!std::is_convertible_v<view<const float>, view<float>>);
    static_assert(!std::is_convertible_v<const tensor<float>&, view<float>>);
    static_assert(std::is_convertible_v<const tensor<float>&, view<const float>>);
}

TEST_CASE("view: a default view is empty") {
    const view<float> v;
    CHECK(v.empty());
    CHECK(v.data() == nullptr);
    CHECK(v.begin() == v.end());
}

TEST_CASE("tensor: what has been moved from is empty, its shape too") {
    fprnn::tensor<float> a({2, 3});
    a.fill(1);
    fprnn::tensor<float> b = std::move(a);
    CHECK(a.shape() == fprnn::shape{0});
    CHECK(a.empty());
    CHECK(b.shape() == fprnn::shape{2, 3});
    fprnn::tensor<float> c({7});
    c = std::move(b);
    CHECK(b.shape() == fprnn::shape{0});
    CHECK(c(1, 2) == 1);
}

TEST_CASE("tensor: assigned a shape it is zero, in the memory that it has where that suffices") {
    fprnn::tensor<float> a({4, 5});
    a.fill(1);
    const float* memory = a.data();
    a.assign({2, 3});
    CHECK(a.shape() == fprnn::shape{2, 3});
    CHECK(a.data() == memory);
    for (float x : a) CHECK(x == 0);
    a.assign({50});
    CHECK(a.size() == 50);
    for (float x : a) CHECK(x == 0);
}

TEST_CASE("tensor: more bytes than 64 bits can address are refused with the shape") {
    constexpr index many = index{1} << 61;
    CHECK_THROWS_WITH_AS((tensor<double>({2, many})),
                         "tensor: [2,2305843009213693952] needs more bytes than 64 bits can address, 8 an element",
                         argument_error);
    tensor<float> t({2});
    CHECK_THROWS_AS(t.assign({many, 3}), argument_error);
    CHECK(t.shape() == shape{2});
}

}  // namespace
