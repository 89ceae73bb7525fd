#pragma once

#include <fprnn/program/frame.hpp>
#include <fprnn/program/rules/joint_product.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace fprnn {

namespace detail {
template <class E>
inline constexpr bool is_linear = false;
template <auto Name, class E, class W, class BiasInit, class WeightInit>
inline constexpr bool is_linear<linear_node<Name, E, W, BiasInit, WeightInit>> = true;
}  // namespace detail

/// W [n, k₁ + k₂ + …] beside its parts. A part that depends on less than the map is multiplied for all tokens at once
/// (`hoist`); the rest where the map itself is evaluated, and on the CPU all of it where nothing is evaluated twice: in one-token
/// chunks of maps that do not see y_t.
template <auto Name, class E, class W, class BiasInit, class WeightInit>
struct rule<linear_node<Name, E, W, BiasInit, WeightInit>> : plain_rule {
    using node = linear_node<Name, E, W, BiasInit, WeightInit>;
    using parts = typename node::operands;
    static constexpr bool kept = true;
    static constexpr bool bars_stay = true;
    static constexpr bool row_local = false;  // products of tiles and of rows differ in bits
    static constexpr bool iterated = node::depends == dependence::shifted || node::depends == dependence::current;
    template <class P>
    static constexpr bool may_store_to = !iterated && occurrences<parts, P> == 1;
    template <class P>
    static constexpr bool hoisted = iterated&& P::depends == dependence::input;

    template <class T>
    struct memory {
        /// [T, tile, n]: bias and the hoisted parts; null where nothing is evaluated twice.
        T* hoisted = nullptr;
        T* total = nullptr;       ///< [T, tile, n]: cotangents summed over unrolled iterations
        T* packed = nullptr;      ///< the parts of W that one-token chunks multiply
        T* packed_bar = nullptr;  ///< a tile of the map's cotangents
        detail::joint_memory<T> joint;
    };

    static index width(const dims& d) { return W::of(d); }
    static index columns(const dims& d) { return E::width::of(d); }

    static void declare(const dims& d, std::vector<parameter_spec>& specs) {
        specs.push_back({Name.c_str(), {width(d), columns(d)}, WeightInit::value, true});
        if constexpr (node::has_bias)
            specs.push_back({std::string(Name.c_str()) + ".bias", {width(d)}, BiasInit::value, false});
    }
    template <class F>
    static void lay_out(F& f, arena<typename F::scalar>& scratch, arena<typename F::scalar>&) {
        if constexpr (iterated) {
            const index n = f.rows() * width(f.size);
            auto& m = f.template memory_of<node>();
            if ((f.phase == pass::forward && !evaluated_once(f)) || f.unrolled) m.hoisted = scratch.take(n);
            if (f.phase != pass::forward && f.unrolled) m.total = scratch.take(n);
            index packed = 0;
            if (has_one_token_chunk(f) && !f.unrolled)
                visit(
                    [&]<class P>(index) {
                        if (!is_packed<P>(f)) return;
                        packed += packed_size<P>(f);
                        if (f.phase == pass::forward && packs_rows<typename F::program, P>())
                            f.packed[F::template slot<P>] = scratch.take(packed_rows_size(f, f.template width_of<P>()));
                    },
                    f);
            if constexpr (joint<F>::possible) joint<F>::lay_out(f, scratch);
            m.packed = packed > 0 ? scratch.take(packed) : nullptr;
            if (packed > 0 && f.phase != pass::forward) m.packed_bar = scratch.take(packed_rows_size(f, width(f.size)));
        }
    }
    /// Products are formed of all tokens, of a chunk's and of those that the last chunk has.
    template <class F>
    static index packing_size(const F& f) {
        const auto size = [&](index tokens) {
            return f.on.template packing_size<typename F::scalar>(tokens * f.tile, width(f.size), columns(f.size));
        };
        return std::max({size(f.tokens), size(f.chunk), size(f.tokens % f.chunk)});
    }
    template <class F>
    static void begin(F& f, const typename F::scalar*) {
        if constexpr (iterated) {
            auto& m = f.template memory_of<node>();
            if (m.total) f.on.fill(f.rows() * width(f.size), m.total, 0);
            if constexpr (joint<F>::possible)
                if (joint<F>::is_used(f))
                    visit(
                        [&]<class P>(index column) {
                            if constexpr (!hoisted<P>) joint<F>::take(f, weights(f, column, f.size.d_inner));
                        },
                        f);
            if (m.packed == nullptr) return;
            visit(
                [&]<class P>(index column) {
                    if (is_packed<P>(f)) {
                        const auto w = weights(f, column, f.template width_of<P>());
                        if (f.phase == pass::forward)
                            f.on.pack(w, packed_part<P>(f, column));
                        else
                            f.on.pack_back(w, packed_part<P>(f, column));
                    }
                },
                f);
        }
    }
    template <class F>
    static void hoist(F& f) {
        if constexpr (iterated && (has_hoisted(parts{}) || node::has_bias)) {
            if (token_by_token(f)) return;
            const index n = width(f.size);
            auto* out = evaluated_once(f) ? f.template value_at<node>(0) : f.template memory_of<node>().hoisted;
            multiply_parts<true>(f, 0, f.rows(), matrix<typename F::scalar>{out, f.rows(), n, n},
                                 start(f, out, f.rows()));
        }
    }
    template <class F>
    static void value(F& f, index row, index n) {
        using T = typename F::scalar;
        if (f.phase == pass::replay) return;
        T* out = f.template value_at<node>(row);
        if constexpr (joint<F>::possible)
            if (joint<F>::is_used(f)) return joint<F>::value(f, row, n, has_hoisted(parts{}) || node::has_bias);
        bool overwrite = true;
        if constexpr (iterated && (has_hoisted(parts{}) || node::has_bias)) {
            const index width = f.template width_of<node>();
            if (token_by_token(f)) {
                overwrite = multiply_parts<true>(f, row, n, f.template value_rows<node>(row, n), start(f, out, n));
            } else {
                if (!evaluated_once(f)) f.on.copy(n * width, f.template memory_of<node>().hoisted + row * width, out);
                overwrite = false;
            }
        } else {
            overwrite = start(f, out, n);
        }
        multiply_parts<false>(f, row, n, f.template value_rows<node>(row, n), overwrite);
    }
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        if (auto* packed = f.template memory_of<node>().packed_bar; packed && n == f.tile)
            f.on.pack_rows(f.template const_bar_rows<node>(row, n), packed);
        visit(
            [&]<class P>(index column) {
                if constexpr (!hoisted<P> ? P::depends >= Reach : Reach == dependence::input) {
                    if constexpr (joint<F>::possible && !hoisted<P>)
                        if (joint<F>::is_used(f)) return joint<F>::back(f, row, n);
                    if (!hoisted<P> || token_by_token(f)) multiply_back<P>(f, row, n, column);
                }
            },
            f);
    }
    template <class F>
    static void hoist_back(F& f) {
        if (token_by_token(f)) return;
        visit(
            [&]<class P>(index column) {
                if constexpr (hoisted<P>) multiply_back<P>(f, 0, f.rows(), column);
            },
            f);
    }
    template <class F>
    static void end_back(F& f) {
        const index n = width(f.size), k = columns(f.size);
        multiply_weights(f, 0, f.rows(), [&]<class P>() { return !iterated || hoisted<P> || !f.unrolled; });
        if constexpr (node::has_bias) {
            using T = typename F::scalar;
            auto sums = f.sums(f.rows(), n, f.template gradient_of<node>() + n * k);
            f.each_row(f.rows(), body::add_rows<T>{n, f.template bars<node>(0), sums.into});
            sums.finish();
        }
    }

    /// Iterations differ in what the iterated parts were, so their weights are formed iteration by iteration; what the
    /// hoisted parts need is summed.
    template <class F>
    static void after_unrolled_step(F& f, index row, index n) {
        if constexpr (iterated) {
            multiply_weights(f, row, n, [&]<class P>() { return !hoisted<P>; });
            const index D = width(f.size);
            f.one_row(body::add<typename F::scalar>{n * D, f.template bar_at<node>(row),
                                                    f.template memory_of<node>().total + row * D});
        }
    }
    template <class F>
    static void after_unrolled_chunk(F& f, index row, index n) {
        if constexpr (iterated)
            f.on.copy(n * width(f.size), f.template memory_of<node>().total + row * width(f.size),
                      f.template bar_at<node>(row));
    }

private:
    template <class F>
    using joint = detail::joint_product<node, F>;

    /// Whether every token's rows are evaluated once: what is hoisted need not be copied then.
    template <class F>
    static bool evaluated_once(const F& f) {
        return node::depends == dependence::shifted && f.chunk == 1 && !f.unrolled;
    }
    /// Whether hoisting would only write these rows and read them once more.
    template <class F>
    static bool token_by_token(const F& f) {
        return has_tiles<typename F::backend> && evaluated_once(f);
    }
    /// Whether one-token chunks multiply part P by themselves.
    template <class P, class F>
    static bool is_packed(const F& f) {
        return iterated && (!hoisted<P> || token_by_token(f));
    }
    /// Whether this map packs the rows of P for all that are evaluated in the same sweep over the nodes: it comes first.
    template <class Program, class P>
    static consteval bool packs_rows() {
        return []<class... Other>(type_list<Other...>) {
            return ((!reads_rows<Other, P> || Program::template slot<node> <= Program::template slot<Other>)&&...);
        }(typename Program::nodes{});
    }
    template <class Other, class P>
    static constexpr bool reads_rows =
        detail::is_linear<Other>&& Other::depends == node::depends&& contains<typename Other::operands, P>;
    template <class F>
    static index packed_rows_size(const F& f, index n) {
        return f.on.template packed_size<typename F::scalar>(f.tile, n);
    }
    /// Also when the last chunk alone is: its bits are then those of a call that begins with it.
    template <class F>
    static bool has_one_token_chunk(const F& f) {
        return f.chunk == 1 || f.tokens % f.chunk == 1;
    }
    template <class... P>
    static consteval bool has_hoisted(type_list<P...>) {
        return (hoisted<P> || ...);
    }
    /// Of the parts P for which which.operator()<P>().
    template <class F, class Which>
    static void multiply_weights(F& f, index row, index n, Which&& which) {
        using T = typename F::scalar;
        std::array<weights_part<T>, length<parts>> all;
        std::size_t count = 0;
        visit(
            [&]<class P>(index column) {
                if (which.template operator()<P>())
                    all[count++] = {{f.template gradient_of<node>() + column, width(f.size), f.template width_of<P>(),
                                     columns(f.size)},
                                    f.template const_value_rows<P>(row, n)};
            },
            f);
        f.on.multiply_weights(f.template const_bar_rows<node>(row, n), weights_parts<T>(all.data(), count), f.packing);
    }
    /// The bias, when there is one; says whether the first product overwrites.
    template <class F>
    static bool start(F& f, typename F::scalar* out, index n) {
        if constexpr (node::has_bias) {
            const index D = width(f.size);
            f.each_row(n, body::copy<typename F::scalar>{
                              D, {f.template parameters_of<node>() + D * columns(f.size), 0}, {out, D}});
            return false;
        } else {
            return true;
        }
    }
    template <class G, class F>
    static void visit(G&& g, const F& f) {
        index column = 0;
        for_each_node(parts{}, [&]<class P>() {
            g.template operator()<P>(column);
            column += f.template width_of<P>();
        });
    }
    /// Says whether the next product overwrites.
    template <bool Hoisted, class F>
    static bool multiply_parts(F& f, index row, index n, matrix<typename F::scalar> out, bool overwrite) {
        visit(
            [&]<class P>(index column) {
                if constexpr (!iterated || hoisted<P> == Hoisted) {
                    const auto x = f.template const_value_rows<P>(row, n);
                    const auto w = weights(f, column, f.template width_of<P>());
                    if (const auto* packed = packed_part<P>(f, column); packed && n == f.tile) {
                        auto* rows = f.packed[F::template slot<P>];
                        if constexpr (packs_rows<typename F::program, P>()) f.on.pack_rows(x, rows);
                        f.on.multiply_packed(out, {x, rows}, {w, packed}, overwrite);
                    } else {
                        f.on.multiply(out, x, w, overwrite, f.packing);
                    }
                    overwrite = false;
                    // Of all tokens is one product, also when it is formed token by token.
                    if (iterated && !Hoisted)
                        ++f.work.matrix_products;
                    else if (row == 0)
                        ++f.work.hoisted_products;
                }
            },
            f);
        return overwrite;
    }
    template <class P, class F>
    static void multiply_back(F& f, index row, index n, index column) {
        const auto x_bar = f.template bar_rows<P>(row, n);
        const auto y_bar = f.template const_bar_rows<node>(row, n);
        const auto w = weights(f, column, f.template width_of<P>());
        if (const auto* packed = packed_part<P>(f, column); packed && n == f.tile)
            f.on.multiply_back_packed(x_bar, {y_bar, f.template memory_of<node>().packed_bar}, {w, packed}, false);
        else
            f.on.multiply_back(x_bar, y_bar, w, stores<typename F::program, node, P>, f.packing);
    }
    /// Whole cache lines.
    template <class P, class F>
    static index packed_size(const F& f) {
        using T = typename F::scalar;
        constexpr index line = 64 / static_cast<index>(sizeof(T));
        const index n = f.on.template packed_size<T>(width(f.size), f.template width_of<P>());
        return (n + line - 1) / line * line;
    }
    /// Part P of W, which begins at `column`, as begin packed it; null where it has not. Equal parts stand in several columns.
    template <class P, class F>
    static typename F::scalar* packed_part(F& f, index column) {
        auto* packed = f.template memory_of<node>().packed;
        if (packed == nullptr || !is_packed<P>(f)) return nullptr;
        visit(
            [&]<class Before>(index at) {
                if (at < column && is_packed<Before>(f)) packed += packed_size<Before>(f);
            },
            f);
        return packed;
    }
    template <class F>
    static auto weights(F& f, index column, index part_width) {
        using T = typename F::scalar;
        return matrix<const T>{f.template parameters_of<node>() + column, width(f.size), part_width, columns(f.size)};
    }
};

}  // namespace fprnn
