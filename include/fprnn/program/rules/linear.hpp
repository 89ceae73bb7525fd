#pragma once

#include <fprnn/program/frame.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace fprnn {

/// W [n, k₁ + k₂ + …] beside its parts. A part that depends on less than the map is multiplied for all tokens at once
/// (`hoist`); the rest where the map itself is evaluated.
template <fixed_string Name, class E, class W, class BiasInit, class WeightInit>
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
        /// [T, tile, n]: bias and the hoisted parts; null where they wait in the value's rows.
        T* hoisted = nullptr;
        T* total = nullptr;   ///< [T, tile, n]: cotangents summed over unrolled iterations
        T* packed = nullptr;  ///< W's iterated parts as one-token chunks multiply them
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
                visit([&]<class P>(index) { packed += hoisted<P> ? 0 : packed_size<P>(f); }, f);
            m.packed = packed > 0 ? scratch.take(packed) : nullptr;
        }
    }
    /// Products are formed of all tokens, of a chunk's and of those that the last chunk has.
    template <class F>
    static index packing_size(const F& f) {
        index n = 0;
        for (const index tokens : {f.tokens, f.chunk, f.tokens % f.chunk})
            visit(
                [&]<class P>(index) {
                    n = std::max(n, F::backend::template packing_size<typename F::scalar>(
                                        tokens * F::tile, width(f.size), f.template width_of<P>()));
                },
                f);
        return n;
    }
    template <class F>
    static void begin(F& f, const typename F::scalar*) {
        if constexpr (iterated) {
            auto& m = f.template memory_of<node>();
            if (m.total) std::fill_n(m.total, f.rows() * width(f.size), 0);
            if (m.packed == nullptr) return;
            visit(
                [&]<class P>(index column) {
                    if constexpr (!hoisted<P>) {
                        const auto w = weights(f, column, f.template width_of<P>());
                        if (f.phase == pass::forward)
                            F::backend::pack(w, packed_part<P>(f, column));
                        else
                            F::backend::pack_back(w, packed_part<P>(f, column));
                    }
                },
                f);
        }
    }
    template <class F>
    static void hoist(F& f) {
        if constexpr (iterated && (has_hoisted(parts{}) || node::has_bias)) {
            const index n = width(f.size);
            auto* hoisted = f.template memory_of<node>().hoisted;
            auto* out = evaluated_once(f) ? f.template value_at<node>(0) : hoisted;
            multiply_parts<true>(f, 0, f.rows(), matrix<typename F::scalar>{out, f.rows(), n, n},
                                 start(f, out, f.rows()));
        }
    }
    template <class F>
    static void value(F& f, index row, index n) {
        using T = typename F::scalar;
        if (f.phase == pass::replay) return;
        T* out = f.template value_at<node>(row);
        bool overwrite = true;
        if constexpr (iterated && (has_hoisted(parts{}) || node::has_bias)) {
            const index width = f.template width_of<node>();
            if (!evaluated_once(f)) std::copy_n(f.template memory_of<node>().hoisted + row * width, n * width, out);
            overwrite = false;
        } else {
            overwrite = start(f, out, n);
        }
        multiply_parts<false>(f, row, n, f.template value_rows<node>(row, n), overwrite);
    }
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        visit(
            [&]<class P>(index column) {
                if constexpr (!hoisted<P> && P::depends >= Reach) multiply_back<P>(f, row, n, column);
            },
            f);
    }
    template <class F>
    static void hoist_back(F& f) {
        visit(
            [&]<class P>(index column) {
                if constexpr (hoisted<P>) multiply_back<P>(f, 0, f.rows(), column);
            },
            f);
    }
    template <class F>
    static void end_back(F& f) {
        const index n = width(f.size), k = columns(f.size);
        visit(
            [&]<class P>(index column) {
                if (!iterated || hoisted<P> || !f.unrolled) multiply_weights<P>(f, 0, f.rows(), column);
            },
            f);
        if constexpr (node::has_bias) {
            auto* bias = f.template gradient_of<node>() + n * k;
            for (index r = 0; r < f.rows(); ++r) {
                const auto* bar = f.template bar_at<node>(r);
                F::team::each(n, [&](auto lane) { lane.add(bias, lane.load(bar)); });
            }
        }
    }

    /// Iterations differ in what the iterated parts were, so their weights are formed iteration by iteration; what the
    /// hoisted parts need is summed.
    template <class F>
    static void after_unrolled_step(F& f, index row, index n) {
        if constexpr (iterated) {
            visit(
                [&]<class P>(index column) {
                    if constexpr (!hoisted<P>) multiply_weights<P>(f, row, n, column);
                },
                f);
            const auto* bar = f.template bar_at<node>(row);
            auto* total = f.template memory_of<node>().total + row * width(f.size);
            F::team::each(n * width(f.size), [&](auto lane) { lane.add(total, lane.load(bar)); });
        }
    }
    template <class F>
    static void after_unrolled_chunk(F& f, index row, index n) {
        if constexpr (iterated)
            std::copy_n(f.template memory_of<node>().total + row * width(f.size), n * width(f.size),
                        f.template bar_at<node>(row));
    }

private:
    /// Whether every token's rows are evaluated once: then what was hoisted can wait in them.
    template <class F>
    static bool evaluated_once(const F& f) {
        return node::depends == dependence::shifted && f.chunk == 1 && !f.unrolled;
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
    template <class P, class F>
    static void multiply_weights(F& f, index row, index n, index column) {
        F::backend::multiply_weights(matrix<typename F::scalar>{f.template gradient_of<node>() + column, width(f.size),
                                                                f.template width_of<P>(), columns(f.size)},
                                     f.template const_bar_rows<node>(row, n), f.template const_value_rows<P>(row, n),
                                     f.packing);
    }
    /// The bias, when there is one; says whether the first product overwrites.
    template <class F>
    static bool start(F& f, typename F::scalar* out, index n) {
        if constexpr (node::has_bias) {
            const index width = f.template width_of<node>();
            const auto* bias = f.template parameters_of<node>() + width * columns(f.size);
            for (index r = 0; r < n; ++r) std::copy_n(bias, width, out + r * width);
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
    template <bool Hoisted, class F>
    static void multiply_parts(F& f, index row, index n, matrix<typename F::scalar> out, bool overwrite) {
        visit(
            [&]<class P>(index column) {
                if constexpr (!iterated || hoisted<P> == Hoisted) {
                    const auto x = f.template const_value_rows<P>(row, n);
                    const auto w = weights(f, column, f.template width_of<P>());
                    if (const auto* packed = packed_part<P>(f, column); packed && n == F::tile)
                        F::backend::multiply_packed(out, x, w, packed, overwrite);
                    else
                        F::backend::multiply(out, x, w, overwrite, f.packing);
                    overwrite = false;
                    ++(iterated && !Hoisted ? f.work.matrix_products : f.work.hoisted_products);
                }
            },
            f);
    }
    template <class P, class F>
    static void multiply_back(F& f, index row, index n, index column) {
        const auto x_bar = f.template bar_rows<P>(row, n);
        const auto y_bar = f.template const_bar_rows<node>(row, n);
        const auto w = weights(f, column, f.template width_of<P>());
        if (const auto* packed = packed_part<P>(f, column); packed && n == F::tile)
            F::backend::multiply_back_packed(x_bar, y_bar, w, packed, false);
        else
            F::backend::multiply_back(x_bar, y_bar, w, F::template stores<node, P>, f.packing);
    }
    /// Whole cache lines.
    template <class P, class F>
    static index packed_size(const F& f) {
        using T = typename F::scalar;
        constexpr index line = 64 / static_cast<index>(sizeof(T));
        const index n = F::backend::template packed_size<T>(width(f.size), f.template width_of<P>());
        return (n + line - 1) / line * line;
    }
    /// Part P of W, which begins at `column`, as begin packed it; null where it has not. Equal parts stand in several columns.
    template <class P, class F>
    static typename F::scalar* packed_part(F& f, index column) {
        if constexpr (!iterated || hoisted<P>) {
            return nullptr;
        } else {
            auto* packed = f.template memory_of<node>().packed;
            if (packed != nullptr)
                visit(
                    [&]<class Before>(index at) {
                        if (at < column && !hoisted<Before>) packed += packed_size<Before>(f);
                    },
                    f);
            return packed;
        }
    }
    template <class F>
    static auto weights(F& f, index column, index part_width) {
        using T = typename F::scalar;
        return matrix<const T>{f.template parameters_of<node>() + column, width(f.size), part_width, columns(f.size)};
    }
};

}  // namespace fprnn
