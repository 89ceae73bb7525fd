#pragma once

#include <fprnn/ops/scan.hpp>
#include <fprnn/ops/selective_scan.hpp>
#include <fprnn/program/frame.hpp>

namespace fprnn {

/// sum += from, from = 0: iterations share the carry they begin from, and only the last hands one on.
template <class F, class T>
void move_to_sum(index n, T* from, T* sum) {
    F::team::each(n, [&](auto lane) { lane.add(sum, lane.load(from)); });
    std::fill_n(from, n, T(0));
}

// ---- leaves ---------------------------------------------------------------------------------------------------------

template <>
struct rule<input_node> : plain_rule {
    static index width(const dims& d) { return d.d_in; }
};

template <>
struct rule<previous_node> : plain_rule {
    static constexpr bool kept = true;
    static index width(const dims& d) { return d.d_inner; }
};

template <fixed_string Name, class W, class Init>
struct rule<parameter_node<Name, W, Init>> : plain_rule {
    using node = parameter_node<Name, W, Init>;
    static constexpr bool broadcast = true;
    static index width(const dims& d) { return W::of(d); }
    static void declare(const dims& d, std::vector<parameter_spec>& specs) {
        specs.push_back({Name.c_str(), {W::of(d)}, Init::value, false});
    }
    template <class F>
    static void begin(F& f, const typename F::scalar*) {
        f.value[F::template slot<node>] = const_cast<typename F::scalar*>(f.template parameters_of<node>());
        if (f.phase == pass::backward) f.bar[F::template slot<node>] = f.template gradient_of<node>();
    }
};

/// y* stands where F stood when its last chunk was solved; only its cotangent is its own.
template <class E>
struct rule<fixed_point_node<E>> : plain_rule {
    using node = fixed_point_node<E>;
    static index width(const dims& d) { return d.d_inner; }
    template <class F>
    static void begin(F& f, const typename F::scalar*) {
        f.value[F::template slot<node>] = f.value[F::template slot<E>];
    }
};

// ---- elementwise ----------------------------------------------------------------------------------------------------

template <template <class...> class G, class... E>
struct rule<elementwise_node<G, E...>> : plain_rule {
    using node = elementwise_node<G, E...>;
    using functor = chain_functor<node>;
    static index width(const dims& d) { return node::width::of(d); }

    template <class F>
    static void value(F& f, index row, index n) {
        run(f, row, n, chain_arguments<node>{});
    }
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        run_back<Reach>(f, row, n, chain_arguments<node>{});
    }

private:
    /// Without vectors that all tokens share, the rows are one long row.
    template <class... A>
    static constexpr bool flat = !(rule<A>::broadcast || ...);

    template <class F, class... A>
    static void run(F& f, index row, index n, type_list<A...>) {
        using T = typename F::scalar;
        const index D = f.template width_of<node>(), length = flat<A...> ? n * D : D;
        for (index r = row; r < row + (flat<A...> ? std::min<index>(n, 1) : n); ++r)
            chain::row<functor, typename F::team, sizeof...(A), T>(length, {f.template value_at<A>(r)...},
                                                                   f.template value_at<node>(r));
    }
    template <dependence Reach, class F, class... A>
    static void run_back(F& f, index row, index n, type_list<A...>) {
        using T = typename F::scalar;
        const index D = f.template width_of<node>(), length = flat<A...> ? n * D : D;
        for (index r = row; r < row + (flat<A...> ? std::min<index>(n, 1) : n); ++r)
            chain::row_back<functor, typename F::team, sizeof...(A), T>(
                length, {f.template value_at<A>(r)...}, f.template bar_at<node>(r),
                {f.template bar_within<A, Reach>(r)...});
    }
};

// ---- linear maps ----------------------------------------------------------------------------------------------------

/// W [n, k₁ + k₂ + …] beside its parts. A part that depends on less than the map is multiplied for all tokens at once
/// (`hoist`); the rest where the map itself is evaluated.
template <fixed_string Name, class E, class W, class BiasInit, class WeightInit>
struct rule<linear_node<Name, E, W, BiasInit, WeightInit>> : plain_rule {
    using node = linear_node<Name, E, W, BiasInit, WeightInit>;
    using parts = typename node::operands;
    static constexpr bool kept = true;
    static constexpr bool row_local = false;  // products of tiles and of rows differ in bits
    static constexpr bool iterated =
        node::depends == dependence::shifted || node::depends == dependence::current;
    template <class P>
    static constexpr bool hoisted = iterated && P::depends == dependence::input;

    template <class T>
    struct memory {
        T* hoisted = nullptr;  ///< [T, tile, n]: bias and the hoisted parts
        T* total = nullptr;    ///< [T, tile, n]: cotangents summed over unrolled iterations
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
            if (f.phase == pass::forward || f.unrolled) m.hoisted = scratch.take(n);
            if (f.phase != pass::forward && f.unrolled) m.total = scratch.take(n);
        }
    }
    template <class F>
    static void begin(F& f, const typename F::scalar*) {
        if constexpr (iterated)
            if (auto* total = f.template memory_of<node>().total) std::fill_n(total, f.rows() * width(f.size), 0);
    }
    template <class F>
    static void hoist(F& f) {
        if constexpr (iterated && (has_hoisted(parts{}) || node::has_bias)) {
            const index n = width(f.size);
            auto* out = f.template memory_of<node>().hoisted;
            multiply_parts<true>(f, 0, f.rows(), matrix<typename F::scalar>{out, f.rows(), n, n}, start(f, out, 0, f.rows()));
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
            std::copy_n(f.template memory_of<node>().hoisted + row * width, n * width, out);
            overwrite = false;
        } else {
            overwrite = start(f, out, row, n);
        }
        multiply_parts<false>(f, row, n, f.template value_rows<node>(row, n), overwrite);
    }
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        visit([&]<class P>(index column) {
            if constexpr (!hoisted<P> && P::depends >= Reach) multiply_back<P>(f, row, n, column);
        }, f);
    }
    template <class F>
    static void hoist_back(F& f) {
        visit([&]<class P>(index column) {
            if constexpr (hoisted<P>) multiply_back<P>(f, 0, f.rows(), column);
        }, f);
    }
    template <class F>
    static void end_back(F& f) {
        const index n = width(f.size), k = columns(f.size);
        visit([&]<class P>(index column) {
            if (!iterated || hoisted<P> || !f.unrolled) multiply_weights<P>(f, 0, f.rows(), column);
        }, f);
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
            visit([&]<class P>(index column) {
                if constexpr (!hoisted<P>) multiply_weights<P>(f, row, n, column);
            }, f);
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
    template <class... P>
    static consteval bool has_hoisted(type_list<P...>) {
        return (hoisted<P> || ...);
    }
    template <class P, class F>
    static void multiply_weights(F& f, index row, index n, index column) {
        F::backend::multiply_weights(matrix<typename F::scalar>{f.template gradient_of<node>() + column, width(f.size),
                                                                f.template width_of<P>(), columns(f.size)},
                                     f.template const_bar_rows<node>(row, n), f.template const_value_rows<P>(row, n));
    }
    /// The bias, when there is one; says whether the first product overwrites.
    template <class F>
    static bool start(F& f, typename F::scalar* out, index, index n) {
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
    static void visit(G&& g, F& f) {
        index column = 0;
        for_each_node(parts{}, [&]<class P>() {
            g.template operator()<P>(column);
            column += f.template width_of<P>();
        });
    }
    template <bool Hoisted, class F>
    static void multiply_parts(F& f, index row, index n, matrix<typename F::scalar> out, bool overwrite) {
        visit([&]<class P>(index column) {
            if constexpr (!iterated || hoisted<P> == Hoisted) {
                F::backend::multiply(out, f.template const_value_rows<P>(row, n), weights(f, column, f.template width_of<P>()), overwrite);
                overwrite = false;
                ++(iterated && !Hoisted ? f.work.matrix_products : f.work.hoisted_products);
            }
        }, f);
    }
    template <class P, class F>
    static void multiply_back(F& f, index row, index n, index column) {
        F::backend::multiply_back(f.template bar_rows<P>(row, n), f.template const_bar_rows<node>(row, n),
                                  weights(f, column, f.template width_of<P>()), false);
    }
    template <class F>
    static auto weights(F& f, index column, index part_width) {
        using T = typename F::scalar;
        return matrix<const T>{f.template parameters_of<node>() + column, width(f.size), part_width, columns(f.size)};
    }
};

// ---- shift ----------------------------------------------------------------------------------------------------------

/// Outside the iteration: rows move down by one token; the carry is the operand's last token.
template <class E>
struct rule<shift_node<E>> : plain_rule {
    using node = shift_node<E>;
    template <class T>
    struct memory {
        T* before = nullptr;  ///< [tile, width], token −1
    };
    static index width(const dims& d) { return node::width::of(d); }
    static index carry(const dims& d) { return width(d); }

    template <class F>
    static void lay_out(F& f, arena<typename F::scalar>&, arena<typename F::scalar>& kept) {
        f.template memory_of<node>().before = kept.take(F::tile * width(f.size));
    }
    template <class F>
    static void begin(F& f, const typename F::scalar* carry) {
        if (carry) std::copy_n(carry, F::tile * width(f.size), f.template memory_of<node>().before);
    }
    template <class F>
    static void end(F& f, typename F::scalar* carry) {
        std::copy_n(f.template value_at<E>(f.rows() - F::tile), F::tile * width(f.size), carry);
    }
    template <class F>
    static void value(F& f, index row, index n) {
        const index D = width(f.size);
        auto* out = f.template value_at<node>(row);
        if (row == 0) {
            std::copy_n(f.template memory_of<node>().before, F::tile * D, out);
            out += F::tile * D;
            row += F::tile;
            n -= F::tile;
        }
        std::copy_n(f.template value_at<E>(row - F::tile), n * D, out);
    }
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        if constexpr (E::depends >= Reach) {
            const index D = width(f.size), skip = row == 0 ? F::tile : 0;
            const auto* from = f.template bar_at<node>(row + skip);
            auto* to = f.template bar_at<E>(row + skip - F::tile);
            F::team::each((n - skip) * D, [&](auto lane) { lane.add(to, lane.load(from)); });
        }
    }
};

/// y_{t−1}^{ℓ−1}: inside a chunk the previous iterate one token earlier; at its first token, what the chunk before
/// reached.
template <>
struct rule<shift_node<previous_node>> : plain_rule {
    using node = shift_node<previous_node>;
    template <class T>
    struct memory {
        T* before = nullptr;
    };
    static index width(const dims& d) { return d.d_inner; }
    static index carry(const dims& d) { return d.d_inner; }

    template <class F>
    using solved = typename F::program::fixed_point;

    template <class F>
    static void lay_out(F& f, arena<typename F::scalar>&, arena<typename F::scalar>& kept) {
        f.template memory_of<node>().before = kept.take(F::tile * width(f.size));
    }
    template <class F>
    static void begin(F& f, const typename F::scalar* carry) {
        if (carry) std::copy_n(carry, F::tile * width(f.size), f.template memory_of<node>().before);
    }
    template <class F>
    static void end(F& f, typename F::scalar* carry) {
        std::copy_n(f.template value_at<solved<F>>(f.rows() - F::tile), F::tile * width(f.size), carry);
    }
    template <class F>
    static void value(F& f, index row, index n) {
        const index block = F::tile * width(f.size);
        const auto* first = row == 0 ? f.template memory_of<node>().before
                                     : f.template value_at<solved<F>>(row - F::tile);
        auto* out = f.template value_at<node>(row);
        std::copy_n(first, block, out);
        std::copy_n(f.template value_at<previous_node>(row), n * width(f.size) - block, out + block);
    }
    /// Within the chunk; what goes to the chunk before is the engine's to pass on.
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        const index D = width(f.size);
        const auto* from = f.template bar_at<node>(row + F::tile);
        auto* to = f.template bar_at<previous_node>(row);
        F::team::each((n - F::tile) * D, [&](auto lane) { lane.add(to, lane.load(from)); });
    }
};

// ---- norms ----------------------------------------------------------------------------------------------------------

template <class Function, fixed_string Name, class E>
struct rule<norm_node<Function, Name, E>> : plain_rule {
    using node = norm_node<Function, Name, E>;
    static index width(const dims& d) { return node::width::of(d); }
    static void declare(const dims& d, std::vector<parameter_spec>& specs) {
        specs.push_back({std::string(Name.c_str()) + ".weight", {width(d)}, start::constant<1>::value, false});
        if constexpr (Function::has_bias)
            specs.push_back({std::string(Name.c_str()) + ".bias", {width(d)}, start::constant<0>::value, false});
    }
    template <class F>
    static void value(F& f, index row, index n) {
        const index D = width(f.size);
        const auto* weight = f.template parameters_of<node>();
        for (index r = row; r < row + n; ++r)
            Function::template value<typename F::team>(D, constant(f.template value_at<E>(r)), weight, weight + D,
                                                       f.template value_at<node>(r));
    }
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        if constexpr (E::depends >= Reach) {
            using T = typename F::scalar;
            const index D = width(f.size);
            const T* weight = f.template parameters_of<node>();
            T* weight_bar = Reach == dependence::input ? f.template gradient_of<node>() : nullptr;
            for (index r = row; r < row + n; ++r)
                Function::template back<typename F::team>(
                    D, constant(f.template value_at<E>(r)), weight, constant(f.template bar_at<node>(r)),
                    f.template bar_at<E>(r), weight_bar, weight_bar ? weight_bar + D : nullptr);
        }
    }

private:
    template <class T>
    static const T* constant(T* p) {
        return p;
    }
};

template <class E>
struct rule<l2_normalise_node<E>> : plain_rule {
    using node = l2_normalise_node<E>;
    static index width(const dims& d) { return node::width::of(d); }
    template <class F>
    static void value(F& f, index row, index n) {
        using T = typename F::scalar;
        for (index r = row; r < row + n; ++r)
            l2_normalise_function::value<typename F::team, T>(width(f.size), f.template value_at<E>(r),
                                                     f.template value_at<node>(r));
    }
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        using T = typename F::scalar;
        if constexpr (E::depends >= Reach)
            for (index r = row; r < row + n; ++r)
                l2_normalise_function::back<typename F::team, T>(width(f.size), f.template value_at<E>(r),
                                                        f.template bar_at<node>(r), f.template bar_at<E>(r));
    }
};

// ---- mixers ---------------------------------------------------------------------------------------------------------

template <class M, class... Maps>
struct rule<prepared_node<mixer_node<M, Maps...>>> : plain_rule {
    using node = prepared_node<mixer_node<M, Maps...>>;
    template <class T>
    struct memory {
        T* ignored = nullptr;  ///< takes the cotangents of maps that the pass does not reach
    };
    static index width(const dims& d) { return M::size(d.d_inner); }
    static void check(const dims& d) {
        if constexpr (requires { M::check(d.d_inner); }) M::check(d.d_inner);
    }
    template <class F>
    static void lay_out(F& f, arena<typename F::scalar>& scratch, arena<typename F::scalar>&) {
        const index n = std::max({rule<Maps>::width(f.size)...});
        f.template memory_of<node>().ignored = scratch.take(n);
        if (auto* p = f.template memory_of<node>().ignored) std::fill_n(p, n, typename F::scalar(0));
    }
    template <class F>
    static void value(F& f, index row, index n) {
        using T = typename F::scalar;
        for (index r = row; r < row + n; ++r) {
            const T* raw[] = {f.template value_at<Maps>(r)...};
            M::template prepare<typename F::team, T>(f.size.d_inner, raw, f.template value_at<node>(r));
        }
    }
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        using T = typename F::scalar;
        if constexpr (node::depends >= Reach)
            for (index r = row; r < row + n; ++r) {
                const T* raw[] = {f.template value_at<Maps>(r)...};
                T* raw_bar[] = {Maps::depends >= Reach ? f.template bar_at<Maps>(r)
                                                       : f.template memory_of<node>().ignored...};
                M::template prepare_back<typename F::team, T>(f.size.d_inner, raw, f.template bar_at<node>(r), raw_bar);
            }
    }
};

template <class Q, class V, class W>
struct rule<mix_node<Q, V, W>> : plain_rule {
    using node = mix_node<Q, V, W>;
    using prepared = prepared_node<Q>;
    using M = typename Q::mixer_type;
    template <class T>
    struct memory {
        T* scratch = nullptr;
    };
    static index width(const dims& d) { return d.d_inner; }
    template <class F>
    static void lay_out(F& f, arena<typename F::scalar>& scratch, arena<typename F::scalar>&) {
        f.template memory_of<node>().scratch = scratch.take(M::scratch(f.size.d_inner));
    }
    template <class F>
    static void value(F& f, index row, index n) {
        using T = typename F::scalar;
        for (index r = row; r < row + n; ++r)
            M::template mix<typename F::team, T>(f.size.d_inner, f.template value_at<prepared>(r), at<V>(f, r),
                                                 at<W>(f, r), f.template value_at<node>(r),
                                                 f.template memory_of<node>().scratch);
        f.work.mixer_applications += n;
    }
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        using T = typename F::scalar;
        T* scratch = f.template memory_of<node>().scratch;
        for (index r = row; r < row + n; ++r) {
            const T *q = f.template value_at<prepared>(r), *bar = f.template bar_at<node>(r);
            M::template mix_back<typename F::team, T>(f.size.d_inner, q, bar, bar_at<V, Reach>(f, r),
                                                      bar_at<W, Reach>(f, r), scratch);
            if constexpr (prepared::depends >= Reach)
                M::template mix_back_q<typename F::team, T>(f.size.d_inner, q, at<V>(f, r), at<W>(f, r), bar,
                                                            f.template bar_at<prepared>(r), scratch);
        }
    }

private:
    template <class E, class F>
    static const typename F::scalar* at(F& f, index row) {
        if constexpr (std::same_as<E, zero_node>) return nullptr;
        else return f.template value_at<E>(row);
    }
    template <class E, dependence Reach, class F>
    static typename F::scalar* bar_at(F& f, index row) {
        if constexpr (std::same_as<E, zero_node>) return nullptr;
        else return f.template bar_within<E, Reach>(row);
    }
};

// ---- scans ----------------------------------------------------------------------------------------------------------

template <class Lambda, class U>
struct rule<scan_node<Lambda, U>> : plain_rule {
    using node = scan_node<Lambda, U>;
    static constexpr bool kept = true;
    template <class T>
    struct memory {
        T* before = nullptr;   ///< [tile, D], h_{−1}
        T* running = nullptr;  ///< [tile, D], the cotangent that comes from later tokens
        T* trial = nullptr;    ///< [tile, D], the same inside the adjoint's iteration; its sum over unrolled ones
    };
    static index width(const dims& d) { return node::width::of(d); }
    static index carry(const dims& d) { return width(d); }

    template <class F>
    static void lay_out(F& f, arena<typename F::scalar>& scratch, arena<typename F::scalar>& kept) {
        auto& m = f.template memory_of<node>();
        const index n = F::tile * width(f.size);
        m.before = kept.take(n);
        m.running = scratch.take(n);
        m.trial = scratch.take(n);
    }
    template <class F>
    static void before_unrolled_chunk(F& f) {
        auto& m = f.template memory_of<node>();
        std::fill_n(m.trial, F::tile * width(f.size), typename F::scalar(0));
    }
    template <class F>
    static void after_unrolled_step(F& f, index, index) {
        auto& m = f.template memory_of<node>();
        move_to_sum<F>(F::tile * width(f.size), m.running, m.trial);
    }
    template <class F>
    static void after_unrolled_chunk(F& f, index, index) {
        auto& m = f.template memory_of<node>();
        std::copy_n(m.trial, F::tile * width(f.size), m.running);
    }
    template <class F>
    static void begin(F& f, const typename F::scalar* carry) {
        auto& m = f.template memory_of<node>();
        const index n = F::tile * width(f.size);
        if (carry) std::copy_n(carry, n, m.before);
        if (f.phase == pass::backward) std::fill_n(m.running, n, typename F::scalar(0));
    }
    template <class F>
    static void end(F& f, typename F::scalar* carry) {
        std::copy_n(f.template value_at<node>(f.rows() - F::tile), F::tile * width(f.size), carry);
    }
    /// A tile's sequences lie side by side, so they are scanned as one row of tile·D channels.
    template <class F>
    static void value(F& f, index row, index n) {
        if (f.phase == pass::replay) return;
        using T = typename F::scalar;
        const index tokens = tokens_of(f, n), D = n / tokens * width(f.size);
        kernel::scan<typename F::team, T>(tokens, D, D, f.template value_at<Lambda>(row),
                                          f.template value_at<U>(row), start(f, row), f.template value_at<node>(row));
    }
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        using T = typename F::scalar;
        if constexpr (U::depends >= Reach) {
            auto& m = f.template memory_of<node>();
            const index tokens = tokens_of(f, n), D = n / tokens * width(f.size);
            T* running = m.running + row % F::tile * width(f.size);
            if constexpr (Reach != dependence::input) {
                std::copy_n(running, D, m.trial);
                running = m.trial;
            }
            kernel::scan_back<typename F::team, T>(tokens, D, D, f.template value_at<Lambda>(row),
                                                   f.template value_at<node>(row), start(f, row),
                                                   f.template bar_at<node>(row), running,
                                                   f.template bar_within<Lambda, Reach>(row), f.template bar_at<U>(row));
        }
    }

private:
    /// Outside of the iteration all tokens are at hand, inside it the chunk's.
    template <class F>
    static index tokens_of(const F& f, index n) {
        return node::depends == dependence::input || node::depends == dependence::output ? n / F::tile : f.span;
    }
    template <class F>
    static const typename F::scalar* start(F& f, index row) {
        return row < F::tile ? f.template memory_of<node>().before + row * width(f.size)
                             : f.template value_at<node>(row - F::tile);
    }
};

template <fixed_string Name, class Delta, class B, class C, class U>
struct rule<selective_scan_node<Name, Delta, B, C, U>> : plain_rule {
    using node = selective_scan_node<Name, Delta, B, C, U>;
    static constexpr bool kept = true;
    static constexpr bool iterated =
        node::depends == dependence::shifted || node::depends == dependence::current;
    template <class T>
    struct memory {
        T* A = nullptr;            ///< [N,D], exp(ω)
        T* A_bar = nullptr;        ///< [N,D]
        T* starts = nullptr;       ///< [blocks, tile, N, D], states before each block: kept
        T* state = nullptr;        ///< [tile, N, D]; backward: the cotangent that comes from later tokens
        T* trial = nullptr;        ///< [tile, N, D], the same inside an iteration
        T* sum = nullptr;          ///< [tile, N, D], cotangents summed over unrolled iterations
        T* inside = nullptr;       ///< [chunks of a block, tile, N, D], states before each chunk: backward
        T* open = nullptr;         ///< [2, tile, D], p and g of an open token; for the adjoint k and g
        T* ignored = nullptr;      ///< takes cotangents that the pass does not reach
        T* scratch = nullptr;
        index block = -1;          ///< which block `inside` holds
    };
    static index width(const dims& d) { return node::width::of(d); }
    static index carry(const dims& d) { return d.d_state * width(d); }
    static void declare(const dims& d, std::vector<parameter_spec>& specs) {
        specs.push_back({std::string(Name.c_str()) + ".omega", {d.d_state, width(d)}, start::log_row::value, false});
    }

    template <class F>
    static void lay_out(F& f, arena<typename F::scalar>& scratch, arena<typename F::scalar>& kept) {
        auto& m = f.template memory_of<node>();
        const index D = width(f.size), one = carry(f.size), all = F::tile * one;
        const index span = chunk(f) * F::tile;
        m.starts = kept.take((f.tokens + block_tokens(f) - 1) / block_tokens(f) * all);
        m.A = scratch.take(one);
        m.state = scratch.take(all);
        m.trial = scratch.take(all);
        m.open = scratch.take(2 * F::tile * D);
        if (f.phase == pass::forward) return;
        m.A_bar = scratch.take(one);
        m.inside = scratch.take(block_tokens(f) / chunk(f) * all);
        m.ignored = scratch.take(one + span * D + 2 * span * f.size.d_state);
        m.scratch = scratch.take(kernel::selective_scan_back_scratch(chunk(f), f.size.d_state, D));
        m.block = -1;
        if (f.unrolled) m.sum = scratch.take(all);
    }
    template <class F>
    static void begin(F& f, const typename F::scalar* carried) {
        using math::exp;
        auto& m = f.template memory_of<node>();
        const auto* omega = f.template parameters_of<node>();
        const index all = F::tile * carry(f.size);
        F::team::each(carry(f.size), [&](auto lane) { lane.store(m.A, exp(lane.load(omega))); });
        if (carried) {
            std::copy_n(carried, all, m.state);
            std::copy_n(carried, all, m.starts);
        } else {
            std::fill_n(m.state, all, typename F::scalar(0));
            std::fill_n(m.A_bar, carry(f.size), typename F::scalar(0));
        }
    }
    template <class F>
    static void end(F& f, typename F::scalar* carried) {
        std::copy_n(f.template memory_of<node>().state, F::tile * carry(f.size), carried);
    }

    /// A chunk of one token is opened once: what its input adds is then two vectors, whatever N is.
    template <class F>
    static void open(F& f, index row, index n) {
        if (n != F::tile || !iterated || f.phase != pass::forward) return;
        using T = typename F::scalar;
        auto& m = f.template memory_of<node>();
        const index D = width(f.size);
        for (index s = 0; s < F::tile; ++s)
            kernel::selective_scan_open<typename F::team, T>(
                f.size.d_state, D, m.A, f.template value_at<Delta>(row + s), f.template value_at<B>(row + s),
                f.template value_at<C>(row + s), m.state + s * carry(f.size), m.open + s * D,
                m.open + (F::tile + s) * D);
    }
    template <class F>
    static void value(F& f, index row, index n) {
        if (f.phase == pass::replay) return;
        using T = typename F::scalar;
        auto& m = f.template memory_of<node>();
        const index D = width(f.size), one = carry(f.size);
        if (f.phase == pass::forward && iterated && f.span == 1) {
            const auto* u = f.template value_at<U>(row);
            auto* y = f.template value_at<node>(row);
            const T *p = m.open + row % F::tile * D, *g = p + F::tile * D;
            F::team::each(n * D, [&](auto lane) { lane.store(y, lane.load(p) + lane.load(g) * lane.load(u)); });
            return;
        }
        T* state = iterated ? m.trial : m.state;
        if (iterated) std::copy_n(f.phase == pass::forward ? m.state : before(f, row), F::tile * one, state);
        for (index s = 0; s < F::tile; ++s)
            kernel::selective_scan<typename F::team, T>(
                shape(f, n), m.A, f.template value_at<Delta>(row + s), f.template value_at<B>(row + s),
                f.template value_at<C>(row + s), f.template value_at<U>(row + s), state + s * one,
                f.template value_at<node>(row + s));
    }
    template <class F>
    static void close(F& f, index row, index n) {
        if (!iterated) return;
        using T = typename F::scalar;
        auto& m = f.template memory_of<node>();
        const index one = carry(f.size), all = F::tile * one;
        if (n == F::tile)
            for (index s = 0; s < F::tile; ++s)
                kernel::selective_scan_close<typename F::team, T>(
                    f.size.d_state, width(f.size), f.template value_at<Delta>(row + s),
                    f.template value_at<B>(row + s), f.template value_at<U>(row + s), m.state + s * one);
        else
            std::swap(m.state, m.trial);
        const index next = (row + n) / F::tile;
        if (next < f.tokens && next % block_tokens(f) == 0)
            std::copy_n(m.state, all, m.starts + next / block_tokens(f) * all);
    }

    template <class F>
    static void open_back(F& f, index row, index n) {
        if (n != F::tile || !iterated) return;
        using T = typename F::scalar;
        auto& m = f.template memory_of<node>();
        const index D = width(f.size), N = f.size.d_state;
        for (index s = 0; s < F::tile; ++s) {
            const T *b = f.template value_at<B>(row + s), *c = f.template value_at<C>(row + s);
            const T *delta = f.template value_at<Delta>(row + s), *H_bar = m.state + s * carry(f.size);
            T *k = m.open + s * D, *g = m.open + (F::tile + s) * D;
            T cb = 0;
            for (index i = 0; i < N; ++i) cb += c[i] * b[i];
            F::team::each(D, [&](auto lane) {
                using V = decltype(lane.load(delta));
                V sum(T(0));
                for (index i = 0; i < N; ++i) sum += V(b[i]) * lane.load(H_bar + i * D);
                lane.store(k, lane.load(delta) * sum);
                lane.store(g, V(cb) * lane.load(delta));
            });
        }
    }
    template <dependence Reach, class F>
    static void back(F& f, index row, index n) {
        using T = typename F::scalar;
        auto& m = f.template memory_of<node>();
        const index D = width(f.size), one = carry(f.size);
        constexpr bool solving = Reach != dependence::input && iterated;
        if constexpr (solving && joined<Delta, B, C> < Reach) {
            if constexpr (U::depends < Reach) {
                return;
            } else if (f.span == 1) {
                const auto* y_bar = f.template bar_at<node>(row);
                auto* u_bar = f.template bar_at<U>(row);
                const T *k = m.open + row % F::tile * D, *g = k + F::tile * D;
                F::team::each(n * D, [&](auto lane) {
                    lane.add(u_bar, lane.load(g) * lane.load(y_bar) + lane.load(k));
                });
            } else {
                std::copy_n(m.state, F::tile * one, m.trial);
                for (index s = 0; s < F::tile; ++s)
                    kernel::selective_scan_back_input<typename F::team, T>(
                        shape(f, n), m.A, f.template value_at<Delta>(row + s), f.template value_at<B>(row + s),
                        f.template value_at<C>(row + s), f.template bar_at<node>(row + s), m.trial + s * one,
                        f.template bar_at<U>(row + s));
            }
        } else {
            T* running = m.state;
            T* A_bar = m.A_bar;
            T* ignored = m.ignored;
            if constexpr (solving) {
                std::copy_n(m.state, F::tile * one, m.trial);
                running = m.trial;
                A_bar = ignored;
            }
            ignored += one;
            const T* H = before(f, row);
            for (index s = 0; s < F::tile; ++s)
                kernel::selective_scan_back<typename F::team, T>(
                    shape(f, n), m.A, f.template value_at<Delta>(row + s), f.template value_at<B>(row + s),
                    f.template value_at<C>(row + s), f.template value_at<U>(row + s), H + s * one,
                    f.template bar_at<node>(row + s), running + s * one, A_bar,
                    bar_or<Delta, Reach>(f, row + s, ignored), bar_or<B, Reach>(f, row + s, ignored),
                    bar_or<C, Reach>(f, row + s, ignored), bar_or<U, Reach>(f, row + s, ignored), m.scratch);
        }
    }
    /// ω̄ += A ⊙ Ā
    template <class F>
    static void end_back(F& f) {
        auto& m = f.template memory_of<node>();
        auto* omega_bar = f.template gradient_of<node>();
        F::team::each(carry(f.size), [&](auto lane) { lane.add(omega_bar, lane.load(m.A) * lane.load(m.A_bar)); });
    }
    template <class F>
    static void before_unrolled_chunk(F& f) {
        auto& m = f.template memory_of<node>();
        std::fill_n(m.sum, F::tile * carry(f.size), typename F::scalar(0));
    }
    template <class F>
    static void after_unrolled_step(F& f, index, index) {
        auto& m = f.template memory_of<node>();
        move_to_sum<F>(F::tile * carry(f.size), m.state, m.sum);
    }
    template <class F>
    static void after_unrolled_chunk(F& f, index, index) {
        auto& m = f.template memory_of<node>();
        std::copy_n(m.sum, F::tile * carry(f.size), m.state);
    }

private:
    /// Tokens solved together; all of them outside the iteration.
    template <class F>
    static index chunk(const F& f) {
        return std::max<index>(1, iterated ? std::min(f.chunk, f.tokens) : f.tokens);
    }
    /// Tokens between two states that are kept: whole chunks, 16 tokens or more.
    template <class F>
    static index block_tokens(const F& f) {
        return chunk(f) * std::max<index>(1, kernel::selective_scan_block / chunk(f));
    }
    template <class F>
    static kernel::selective_scan_shape<typename F::scalar> shape(const F& f, index n) {
        return {n / F::tile, f.size.d_state, width(f.size), F::tile * width(f.size), F::tile * f.size.d_state};
    }
    template <class E, dependence Reach, class F>
    static typename F::scalar* bar_or(F& f, index row, typename F::scalar* ignored) {
        return E::depends >= Reach ? f.template bar_at<E>(row) : ignored;
    }
    /// H before the chunk that begins at `row`, recomputed block by block from the states that were kept.
    template <class F>
    static const typename F::scalar* before(F& f, index row) {
        using T = typename F::scalar;
        auto& m = f.template memory_of<node>();
        const index one = carry(f.size), all = F::tile * one, tokens = block_tokens(f), length = chunk(f);
        const index t = row / F::tile, block = t / tokens;
        if (m.block != block) {
            m.block = block;
            std::copy_n(m.starts + block * all, all, m.inside);
            const index last = std::min(f.tokens, (block + 1) * tokens);
            for (index i = 1; block * tokens + i * length < last; ++i) {
                T* H = m.inside + i * all;
                std::copy_n(H - all, all, H);
                const index from = (block * tokens + (i - 1) * length) * F::tile;
                for (index s = 0; s < F::tile; ++s)
                    kernel::selective_scan_advance<typename F::team, T>(
                        shape(f, length * F::tile), m.A, f.template value_at<Delta>(from + s),
                        f.template value_at<B>(from + s), f.template value_at<U>(from + s), H + s * one);
            }
        }
        return m.inside + (t - block * tokens) / length * all;
    }
};

}  // namespace fprnn
