#pragma once

#include <fprnn/ops/bodies.hpp>

#include <algorithm>
#include <concepts>
#include <string>
#include <type_traits>

/// What eager operations take, and how they go over the rows of it.
namespace fprnn {

/// A tensor or a view in the host's memory.
template <class A>
concept host_array = requires(const A& a) {
    requires !requires { a.where(); };
    typename A::value_type;
    { a.shape() } -> std::same_as<const shape&>;
    { *a.data() } -> std::convertible_to<typename A::value_type>;
};

namespace detail {
/// What an array's operations take beside it: views. A backend with memory of its own specialises it for its
/// tensors.
template <class A>
struct arguments;
template <host_array A>
struct arguments<A> {
    using reads = view<const typename A::value_type>;
    using writes = view<typename A::value_type>;
};
}  // namespace detail

/// The first argument of an operation says which numbers it works on, and where; the others convert.
template <class A>
concept array_like = requires(const A& a) {
    typename detail::arguments<A>::reads;
    typename A::value_type;
    { a.shape() } -> std::same_as<const shape&>;
};

template <array_like A>
using element = typename A::value_type;

namespace detail {
/// An array, but not of T.
template <class A, class T>
concept array_of_other = array_like<A> && !std::is_same_v<typename A::value_type, T>;
/// Whether one of the arguments is an array, but not of T.
template <class T, class... Arguments>
concept with_other_numbers = (array_of_other<Arguments, T> || ...);
}  // namespace detail

/// An argument that is read; `{}` leaves it out where that is allowed.
template <array_like A>
using reads = typename detail::arguments<A>::reads;
/// An argument that is written or added to.
template <array_like A>
using writes = typename detail::arguments<A>::writes;

/// A backend that works in the host's memory.
template <class Backend, class T>
concept host_memory_backend = std::same_as<typename Backend::template array<T>, tensor<T>>;

/// A backend that reaches the memory of an array, and computes in its numbers.
template <class Backend, class A>
concept backend_of = (host_array<A> && host_memory_backend<Backend, element<A>>) ||
                     (!host_array<A> && std::same_as<typename Backend::template array<element<A>>, A> &&
                      may_store<element<A>, element<A>, Backend>());

/// What operations return.
template <class T, class Backend>
using array_of = typename Backend::template array<T>;

/// What an adjoint does with the numbers that it finds in its cotangents.
enum class update { accumulate, overwrite };

namespace detail {

/// What kernels and loops are given of an argument.
template <class A>
view<const element<A>> read(const A& a) {
    return {a.data(), a.shape()};
}
template <class T>
view<T> write(const view<T>& a) {
    return a;
}

template <class A>
struct named {
    const char* name;
    const A& array;
};
template <class A>
named(const char*, const A&) -> named<A>;

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
/// As require_shape, for an argument that may be left out, which is then a tensor<T>{}.
template <class T>
void require_optional(const char* operation, const char* name, const view<T>& got, const shape& expected) {
    if (got.data() || !got.empty() || got.shape().rank() > 1) require_shape(operation, name, got.shape(), expected);
}

/// Rows of the last extent.
inline index rows_of(const shape& s) { return s.back() == 0 ? 0 : s.count() / s.back(); }

/// How eager operations come by arrays and go over rows: in the host's memory, on its threads, a block of
/// rows each. A backend with memory of its own specialises it, with the same functions.
template <class Backend>
struct eager {
    template <class T>
    static tensor<T> make(Backend&, const shape& s) {
        static_assert(host_memory_backend<Backend, T>, "a backend with memory of its own specialises detail::eager");
        return tensor<T>(s);
    }
    /// argument_error unless the array is where the backend works.
    template <class A>
    static void require_here(const Backend&, const char* /*operation*/, const named<A>&) {}
    /// Numbers of the host where the backend reads them: an object with data(), which does not outlive them.
    template <class T>
    static view<const T> numbers(Backend&, view<const T> x) {
        return x;
    }

    /// body(row) for every row.
    template <class Body>
    static void for_each_row(Backend& backend, index rows, Body&& body) {
        constexpr index block = 16;
        backend.for_each((rows + block - 1) / block, [&](index i) {
            for (index r = i * block; r < std::min(rows, (i + 1) * block); ++r) body(r);
        });
    }
    /// body.row<Team>(row, 0) for every row: bodies without scratch.
    template <class T, class Body>
    static void each_row(Backend& backend, index rows, const Body& body) {
        for_each_row(backend, rows, [&](index r) { body.template row<typename Backend::template team<T>>(r, 0); });
    }
    /// The same for bodies whose channels do not know of each other, in rows that lie one behind the other.
    template <class T, class Body>
    static void each_channel(Backend& backend, index rows, const Body& body) {
        each_row<T>(backend, rows, body);
    }
    /// The same for bodies that add to a sum [n]: body(receiver) makes one. Adds what all rows have added to
    /// `to`. Every block of rows has a sum of its own and these are added in order: the bits do not depend on
    /// the number of threads. finish() is what has to happen with it, or not at all.
    template <class T, class Body, class Finish>
    static void each_row_with_sum(Backend& backend, index rows, index n, T* to, Body&& body, Finish&& finish) {
        constexpr index block = 64;
        const index blocks = (rows + block - 1) / block;
        buffer<T> sums(static_cast<std::size_t>(checked_product(blocks, n)));
        backend.for_each(blocks, [&](index i) {
            const auto mine = body(receiver<T>{{sums.data() + i * n, 0}, true});
            for (index r = i * block; r < std::min(rows, (i + 1) * block); ++r)
                mine.template row<typename Backend::template team<T>>(r, 0);
        });
        buffer<T> total(static_cast<std::size_t>(n));
        for (index i = 0; i < blocks; ++i)
            for (index k = 0; k < n; ++k)
                total[static_cast<std::size_t>(k)] += sums[static_cast<std::size_t>(i * n + k)];
        for (index k = 0; k < n; ++k) to[k] += total[static_cast<std::size_t>(k)];
        finish();
    }
};

template <class Backend, class... A>
void require_here(const Backend& backend, const char* operation, const named<A>&... arguments) {
    (eager<Backend>::require_here(backend, operation, arguments), ...);
}
template <class T, class Backend>
array_of<T, Backend> make_array(Backend& backend, const shape& s) {
    return eager<Backend>::template make<T>(backend, s);
}
template <class T, class Backend, class Body>
void each_row(Backend& backend, index rows, const Body& body) {
    eager<Backend>::template each_row<T>(backend, rows, body);
}
template <class T, class Backend, class Body>
void each_channel(Backend& backend, index rows, const Body& body) {
    eager<Backend>::template each_channel<T>(backend, rows, body);
}

}  // namespace detail

}  // namespace fprnn
