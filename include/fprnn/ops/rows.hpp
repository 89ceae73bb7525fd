#pragma once

#include <fprnn/core/tensor.hpp>

#include <algorithm>
#include <concepts>
#include <string>

/// What eager operations take, and how they go over the rows of it.
namespace fprnn {

/// A tensor or a view. The first argument of an operation says which numbers it works on; the others convert.
template <class A>
concept array_like = requires(const A& a) {
    requires !requires { a.where(); };  // a tensor of a device, which the host cannot follow
    typename A::value_type;
    { a.shape() } -> std::same_as<const shape&>;
    { *a.data() } -> std::convertible_to<typename A::value_type>;
};

template <array_like A>
using element = typename A::value_type;
/// An argument that is read; `{}` leaves it out where that is allowed.
template <array_like A>
using reads = view<const element<A>>;
/// An argument that is written or added to.
template <array_like A>
using writes = view<element<A>>;

/// A backend that works in the host's memory: the others have overloads of their own.
template <class Backend, class T>
concept host_memory_backend = std::same_as<typename Backend::template array<T>, tensor<T>>;

/// What an adjoint does with the numbers that it finds in its cotangents.
enum class update { accumulate, overwrite };

namespace detail {

template <array_like A>
reads<A> read(const A& a) {
    return {a.data(), a.shape()};
}

/// "scan: u must be [B,T,D], got [4,8]"
inline void require_rank(const char* operation, const char* name, const shape& got, int rank, const char* expected) {
    require(got.rank() == rank, operation,
            [&] { return std::string(name) + " must be " + expected + ", got " + got.to_string(); });
}
/// "scan: carry must be [4,16], got [4,15]"
inline void require_shape(const char* operation, const char* name, const shape& got, const shape& expected) {
    require(got == expected, operation,
            [&] { return std::string(name) + " must be " + expected.to_string() + ", got " + got.to_string(); });
}
/// "scan: lambda is [4,8,16] but u is [4,8,15]"
inline void require_same(const char* operation, const char* name, const shape& a, const char* other, const shape& b) {
    require(a == b, operation,
            [&] { return std::string(name) + " is " + a.to_string() + " but " + other + " is " + b.to_string(); });
}
/// As require_shape, for an argument that may be left out.
template <class T>
void require_optional(const char* operation, const char* name, const view<T>& got, const shape& expected) {
    if (got.data() || !got.empty()) require_shape(operation, name, got.shape(), expected);
}

/// Rows of the last extent.
inline index rows_of(const shape& s) { return s.back() == 0 ? 0 : s.count() / s.back(); }

/// body(row) for every row, on the backend's threads.
template <class Backend, class Body>
void for_each_row(Backend& backend, index rows, Body&& body) {
    constexpr index block = 16;
    backend.for_each((rows + block - 1) / block, [&](index i) {
        for (index r = i * block; r < std::min(rows, (i + 1) * block); ++r) body(r);
    });
}

/// body(row, sum) for every row, which adds to sum [n]; returns what all rows have added. Every block of rows has a sum of
/// its own and these are added in order: the bits do not depend on the number of threads.
template <class T, class Backend, class Body>
buffer<T> sum_over_rows(Backend& backend, index rows, index n, Body&& body) {
    constexpr index block = 64;
    const index blocks = (rows + block - 1) / block;
    buffer<T> sums(static_cast<std::size_t>(checked_product(blocks, n)));
    backend.for_each(blocks, [&](index i) {
        for (index r = i * block; r < std::min(rows, (i + 1) * block); ++r) body(r, sums.data() + i * n);
    });
    buffer<T> total(static_cast<std::size_t>(n));
    for (index i = 0; i < blocks; ++i)
        for (index k = 0; k < n; ++k) total[static_cast<std::size_t>(k)] += sums[static_cast<std::size_t>(i * n + k)];
    return total;
}

}  // namespace detail

}  // namespace fprnn
