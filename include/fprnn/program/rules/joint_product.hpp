#pragma once

#include <fprnn/program/frame.hpp>

#include <concepts>

/// A device multiplies y_{t−1} of a token by all of its maps at a time: every call costs there, and most of these maps have few columns. Their
/// weights stand below each other, what comes out beside each other.
namespace fprnn {

namespace detail {

using y_before = shift_node<previous_node>;

/// Whether E maps y_{t−1}, beside what depends on x alone.
template <class E>
inline constexpr bool maps_y_before = false;
template <auto Name, class S, class W, class BiasInit, class WeightInit>
inline constexpr bool maps_y_before<linear_node<Name, S, W, BiasInit, WeightInit>> = []<class... P>(type_list<P...>) {
    return occurrences<type_list<P...>, y_before> == 1 &&
           ((std::same_as<P, y_before> || P::depends == dependence::input) && ...);
}(typename linear_node<Name, S, W, BiasInit, WeightInit>::operands{});

template <class... E>
consteval index count_maps_of_y_before(type_list<E...>) {
    return (index(0) + ... + index(maps_y_before<E>));
}
/// Whether E is one that comes before Map in a program.
template <class Program, class E, class Map>
inline constexpr bool maps_y_earlier = maps_y_before<E> && (Program::template slot<E> < Program::template slot<Map>);
template <class Program, class Map, class... E>
consteval bool maps_y_first(type_list<E...>) {
    return (!maps_y_earlier<Program, E, Map> && ...);
}

/// What the maps of y_{t−1} share; the first of them has the memory.
template <class T>
struct joint_memory {
    T* weights = nullptr;  ///< [columns, D]
    T* rows = nullptr;     ///< [tile, columns]: what comes out, or its cotangents
};

/// The part that Map, one of them, has in it.
template <class Map, class F>
struct joint_product {
    using T = typename F::scalar;
    using nodes = typename F::program::nodes;
    static constexpr bool possible =
        !has_tiles<typename F::backend> && maps_y_before<Map> && (count_maps_of_y_before(nodes{}) > 1);

    /// For tokens one by one, whose rows are few. Unrolled, every map multiplies by itself.
    static bool is_used(const F& f) { return possible && f.chunk == 1 && !f.unrolled; }

    static constexpr bool is_first = maps_y_first<typename F::program, Map>(nodes{});

    static void lay_out(F& f, arena<T>& scratch) {
        if (!is_first || !is_used(f)) return;
        const index all = columns(f);
        f.template memory_of<Map>().joint = {scratch.take(all * f.size.d_inner), scratch.take(f.tile * all)};
    }
    /// W, the map's weights of y_{t−1}.
    static void take(F& f, matrix<const T> w) {
        f.each_row(w.rows,
                   body::copy<T>{w.columns, {w.data, w.stride}, {memory(f).weights + at(f) * w.columns, w.columns}});
    }
    /// y = W y_{t−1}, or += where something stands there. The first map that is evaluated multiplies for all.
    static void value(F& f, index row, index n, bool adds) {
        const auto all = rows(f, n);
        if constexpr (is_first) {
            f.on.multiply(all, f.template const_value_rows<y_before>(row, n), weights(f), true, f.packing);
            ++f.work.matrix_products;
        }
        const index width = f.template width_of<Map>();
        const strided<const T> mine{all.data + at(f), all.stride};
        const strided<T> y = f.template values<Map>(row);
        if (adds)
            f.each_row(n, body::add_rows<T>{width, mine, {y}});
        else
            f.each_row(n, body::copy<T>{width, mine, y});
    }
    /// The cotangent of y_{t−1} += Wᵀ ȳ of all maps, by the last that is differentiated, which is the first.
    static void back(F& f, index row, index n) {
        const auto all = rows(f, n);
        f.each_row(
            n, body::copy<T>{f.template width_of<Map>(), f.template bars<Map>(row), {all.data + at(f), all.stride}});
        if constexpr (is_first)
            f.on.multiply_back(f.template bar_rows<y_before>(row, n),
                               matrix<const T>{all.data, all.rows, all.columns, all.stride}, weights(f), false,
                               f.packing);
    }

private:
    /// Columns of all maps, and of those before this one.
    static index columns(const F& f) {
        return [&]<class... E>(type_list<E...>) {
            return (index(0) + ... + (maps_y_before<E> ? f.template width_of<E>() : 0));
        }(nodes{});
    }
    static index at(const F& f) {
        return [&]<class... E>(type_list<E...>) {
            return (index(0) + ... + (maps_y_earlier<typename F::program, E, Map> ? f.template width_of<E>() : 0));
        }(nodes{});
    }
    static joint_memory<T> memory(F& f) {
        joint_memory<T> of_first;
        for_each_node(nodes{}, [&]<class E>() {
            if constexpr (joint_product<E, F>::possible)
                if (joint_product<E, F>::is_first) of_first = f.template memory_of<E>().joint;
        });
        return of_first;
    }
    static matrix<T> rows(F& f, index n) { return {memory(f).rows, n, columns(f), columns(f)}; }
    static matrix<const T> weights(F& f) { return {memory(f).weights, columns(f), f.size.d_inner, f.size.d_inner}; }
};

}  // namespace detail

}  // namespace fprnn
