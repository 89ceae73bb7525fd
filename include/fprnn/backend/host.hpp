#pragma once

#include <fprnn/backend/backend.hpp>
#include <fprnn/core/arena.hpp>

#include <algorithm>
#include <type_traits>

namespace fprnn {

/// What backends of the host have in common: what is called happens at once, on the thread that calls it, row
/// after row.
template <class Backend>
struct host_backend {
    template <class T>
    using array = tensor<T>;
    template <class T>
    struct memory : scratch_pool<T>::lease {
        memory(const Backend&, index n) : scratch_pool<T>::lease(scratch_pool<T>::shared(), n) {}
    };

    /// Rows add one after the other, so that no sum is needed on the way.
    template <class T>
    struct row_sums {
        receiver<T> into;
        row_sums(const Backend&, index, index, T* to) : into{{to, 0}, true} {}
        static void finish() {}
    };

    static constexpr index workers(index) { return 1; }
    template <class T, class Body>
    static void rows(index n, const Body& body, int worker = 0) {
        for (index i = 0; i < n; ++i) body.template row<typename Backend::template team<T>>(i, worker);
    }
    template <class T, class Body>
    static void row(const Body& body) {
        body.template row<typename Backend::template team<T>>(0, 0);
    }
    template <class Calls>
    static void pass(index, std::span<const index>, const Calls& calls) {
        calls();
    }
    template <class Calls>
    static void by_rows(index, const Calls& calls) {
        calls();
    }
    template <class T, class Calls>
    static void repeat(index n, const T* running, const Calls& calls) {
        while (any(n, running)) calls();
    }
    template <class T, class Calls>
    static void repeat_by_rows(index n, const T* running, const Calls& calls) {
        repeat(n, running, calls);
    }
    template <class Calls>
    static void at_once(const Calls& calls) {
        calls();
    }
    template <class T>
    static void copy(index n, const std::type_identity_t<T>* from, T* to) {
        std::copy_n(from, n, to);
    }
    template <class T>
    static void fill(index n, T* to, std::type_identity_t<T> value) {
        std::fill_n(to, n, value);
    }
    template <class T>
    static void put(index n, const std::type_identity_t<T>* from, T* to) {
        copy(n, from, to);
    }
    template <class T>
    static const T* seen(index, const T* from) {
        return from;
    }
    template <class T>
    static bool any(index n, const T* flags) {
        return std::any_of(flags, flags + n, [](T x) { return x != T(0); });
    }
    template <class T>
    static void assign(tensor<T>& x, const shape& extents) {
        x.assign(extents);
    }
};

}  // namespace fprnn
