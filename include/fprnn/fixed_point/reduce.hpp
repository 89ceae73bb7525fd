#pragma once

#include <fprnn/fixed_point/reduce_bodies.hpp>
#include <fprnn/graph/lower.hpp>
#include <fprnn/graph/node_types.hpp>
#include <fprnn/graph/reduce.hpp>
#include <fprnn/operations/mixers.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>

/// One-token chunks in R numbers, where an expression allows it: see fprnn/fixed_point/token_norm.hpp.
namespace fprnn::engine {

/// body.row of the sequences whose watches run: of all, where all have this token.
template <class T, class Backend, class Body>
void each_running(frame<T, Backend>& f, index sequences, const watches<T>& of, const Body& body) {
    if constexpr (has_tiles<Backend>) {
        for (index q = 0; q < sequences; ++q)
            if (!f.lengths || of.one[q].running()) body.template row<typename Backend::template team<T>>(q, f.worker);
    } else {
        f.each_row(sequences, body);
    }
}

/// One-token chunks that are solved in R numbers: the first `sequences` of the tile's rows from `row` on, in
/// `scratch`. What is done for all of them at once is done for as many as a whole tile has: loops over
/// registers end in the same places for any number of sequences.
template <class T, class Backend>
struct token_reduction {
    using frame = fprnn::frame<T, Backend>;

    /// Numbers of scratch.
    virtual index scratch(const frame&) const = 0;
    /// y = y^ℓ, Picard's iterates. The watches go on from ℓ, or from the beginning where it did not settle in
    /// ell_max iterations.
    virtual void iterate(frame&, index row, index sequences, T* scratch, double tolerance, int ell_max,
                         const watches<T>& of) const = 0;
    /// w = δ + J_hᵀ w + (∂carry_out/∂y)ᵀ c̄ at the point that the rows hold. The watches end where it has
    /// been found.
    virtual void solve_adjoint(frame&, index /*row*/, index /*sequences*/, T* /*scratch*/, double /*tolerance*/,
                               const T* /*delta*/, T* /*w*/, const watches<T>& /*of*/) const {}

protected:
    ~token_reduction() = default;
};

/// One token of the tile's sequences, with what does not depend on the mixer or the norm.
template <class T, class Backend>
struct chunk_of_a_token {
    using frame = fprnn::frame<T, Backend>;

    frame& f;
    const graph::reduction& found;
    graph::slot end;  ///< before the norm
    index row, sequences, D;
    strided<T> a, g;  ///< [tile,D]; of the adjoint k in place of a
    strided<T> V, mixer_scratch;
    T* equations;

    chunk_of_a_token(frame& f_, index row_, index sequences_, T* scratch, index R, index scratch_of_mixer)
        : f(f_), found(f.stage().reduced), row(row_), sequences(sequences_), D(f.iterate_width()) {
        const index workers = f.on.workers(f.tile);
        end = found.norm == graph::nowhere ? f.graph.solved(found.stage) : f.graph.operand(found.norm, 0);
        a = {scratch, D};
        g = {a[f.tile], D};
        V = {g[f.tile], (R + 1) * D};
        mixer_scratch = {V[workers], scratch_of_mixer};
        equations = mixer_scratch[workers];
    }
    /// Numbers of scratch.
    static index size(const frame& f, index R, index scratch_of_mixer, index numbers_of_a_token) {
        const index D = f.iterate_width();
        return 2 * f.tile * D + f.on.workers(f.tile) * ((R + 1) * D + scratch_of_mixer) +
               tokens(f) * numbers_of_a_token;
    }
    /// Tokens that are solved side by side, also where a tile has fewer.
    static index tokens(const frame& f) {
        if constexpr (has_tiles<Backend>)
            return Backend::tile;
        else
            return f.tile;
    }

    /// Finds p and g of p + g ⊙ m, which stands between mixer and norm, by trying m = 0 and m = 1; a = p + g
    /// ⊙ Q v, where write_Qv(v, m) is to set m = Q v.
    template <class WriteQv>
    void open(const WriteQv& write_Qv) const {
        find_p_and_g();
        T* m = f.value_at(found.mix, row);
        const graph::slot v = f.graph.operand(found.mix, 1);
        write_Qv(v == graph::nowhere ? strided<const T>() : f.values(v, row), strided<T>{m, D});
        f.work.mixer_applications += sequences;
        f.one_row(body::add_product<T>{f.tile * D, g.data, m, a.data});
    }
    /// The adjoint of p + g ⊙ m is affine, too: k + g ⊙ x̄, found by trying x̄ = 0 and an x̄ that is large
    /// beside k, which grows with the loss.
    void open_adjoint() const;
    /// The mixers of the tokens, U first.
    strided<const T> q() const { return f.values(f.graph.operand(found.mix, 0), row); }

private:
    void find_p_and_g() const;
    void try_inner(T* m, T value) const;
    template <class SetBar>
    void back_inner(const SetBar& set_bar_of_end, T* m_bar) const;
};
template <class T, class Backend>
void chunk_of_a_token<T, Backend>::find_p_and_g() const {
    const index n = f.tile * D;
    T* m = f.value_at(found.mix, row);
    const T* x = f.value_at(end, row);
    try_inner(m, T(0));
    f.on.copy(n, x, a.data);
    try_inner(m, T(1));
    f.one_row(body::difference<T>{n, x, a.data, g.data});
}
template <class T, class Backend>
void chunk_of_a_token<T, Backend>::open_adjoint() const {
    const index n = f.tile * D;
    back_inner([&](T* bar) { f.on.fill(n, bar, T(0)); }, a.data);
    back_inner([&](T* bar) { f.one_row(body::places_of_slope<T>{n, a.data, bar}); }, g.data);
    f.one_row(body::slope<T>{n, g.data, a.data, g.data});
}
template <class T, class Backend>
void chunk_of_a_token<T, Backend>::try_inner(T* m, T value) const {
    f.on.fill(f.tile * D, m, value);
    for (graph::slot s = 0; s < f.graph.size(); ++s)
        if (graph::is_between(f.graph, found, s)) f.plan.operations[s]->value(f, s, row, f.tile);
}
template <class T, class Backend>
template <class SetBar>
void chunk_of_a_token<T, Backend>::back_inner(const SetBar& set_bar_of_end, T* m_bar) const {
    for (graph::slot s = 0; s < f.graph.size(); ++s)
        if (s != end && (s == found.mix || graph::is_between(f.graph, found, s)))
            f.on.fill(f.tile * f.width(s), f.bar_at(s, row), T(0));
    set_bar_of_end(f.bar_at(end, row));
    for (graph::slot s = f.graph.size(); s-- > 0;)
        if (graph::is_between(f.graph, found, s)) f.plan.operations[s]->back(f, s, row, f.tile, dependence::current);
    f.on.copy(f.tile * D, f.bar_at(found.mix, row), m_bar);
}

/// Of y = norm(p + g ⊙ (Q v + (I − Q) prev)): `Norm` is kernel::no_norm where there is none. Without the
/// adjoint.
template <class Mixer, class Norm, class T, class Backend>
struct reduced_tokens : token_reduction<T, Backend> {
    using typename token_reduction<T, Backend>::frame;
    using chunk = chunk_of_a_token<T, Backend>;
    static constexpr int R = Mixer::rank;
    static constexpr index numbers_of_a_token =
        std::max(kernel::token_iteration<serial_team<T>, R, Norm, T>::numbers_of_a_token,
                 kernel::token_adjoint<serial_team<T>, R, Norm, T>::numbers_of_a_token);

    index scratch(const frame& f) const override {
        return chunk::size(f, R, Mixer::scratch(f.iterate_width()), numbers_of_a_token);
    }
    void iterate(frame& f, index row, index sequences, T* scratch, double tolerance, int ell_max,
                 const watches<T>& of) const override {
        const chunk c = chunk_at(f, row, sequences, scratch);
        c.open([&](strided<const T> v, strided<T> m) {
            f.each_row(sequences, body::mix<Mixer, T>{c.D, c.q(), v, {}, m, c.mixer_scratch});
        });
        const auto all = in_numbers(c);
        each_running(f, sequences, of, body::reduce_token<Mixer, Norm, T>{all, c.a});
        f.one_row(body::iterate_tokens<Mixer, Norm, T>{all, tolerance, ell_max});
        each_running(f, sequences, of,
                     body::expand_token<Mixer, Norm, T>{all, c.a, {f.value_at(f.stage().previous, row), c.D}, of});
    }

protected:
    static chunk chunk_at(frame& f, index row, index sequences, T* scratch) {
        return {f, row, sequences, scratch, R, Mixer::scratch(f.iterate_width())};
    }
    static body::tokens_in_numbers<Mixer, Norm, T> in_numbers(const chunk& c) {
        const frame& f = c.f;
        const index tokens = chunk::tokens(f);
        if (c.sequences < tokens || f.lengths) f.on.fill(tokens * numbers_of_a_token, c.equations, 0);
        const T *weight = nullptr, *bias = nullptr;
        if constexpr (!std::same_as<Norm, kernel::no_norm>) {
            weight = f.parameters_of(c.found.norm);
            bias = weight + c.D;
        }
        return {c.D, tokens, c.q(), weight, bias, c.g, c.V, c.equations};
    }
};

template <class Mixer, class Norm, class T, class Backend>
struct differentiated_tokens final : reduced_tokens<Mixer, Norm, T, Backend> {
    using typename token_reduction<T, Backend>::frame;

    void solve_adjoint(frame& f, index row, index sequences, T* scratch, double tolerance, const T* delta, T* w,
                       const watches<T>& of) const override {
        const auto c = this->chunk_at(f, row, sequences, scratch);
        c.open_adjoint();
        const auto all = this->in_numbers(c);
        const strided<T> x{f.value_at(c.end, row), c.D};
        each_running(f, sequences, of, body::reduce_adjoint<Mixer, Norm, T>{all, x, {delta, c.D}, c.a});
        f.one_row(body::solve_adjoints<Mixer, Norm, T>{all});
        each_running(f, sequences, of,
                     body::expand_adjoint<Mixer, Norm, T>{all, tolerance, {delta, c.D}, {w, c.D}, of});
    }
};

/// Numbers of scratch that tokens need to be reduced.
template <class T, class Backend>
index token_scratch(const frame<T, Backend>& f) {
    return f.stage().reduction ? f.stage().reduction->scratch(f) : 0;
}

/// What a norm's node applies, if it is one.
template <class E>
struct function_of_norm {
    using type = kernel::no_norm;
};
template <class Function, auto Name, class E>
struct function_of_norm<norm_node<Function, Name, E>> {
    using type = Function;
};
template <class E>
struct mixer_of_mix;
template <class Q, class V, class W>
struct mixer_of_mix<mix_node<Q, V, W>> {
    using type = typename Q::mixer_type;
};

/// How the one-token chunks of fixed point K of an expression are solved in R numbers; null where they are
/// not.
template <class Root, class T, class Backend, bool Adjoint, std::size_t K>
constexpr const token_reduction<T, Backend>* reduction_of() {
    constexpr graph::reduction found = graph::reduce(graph::view_of<Root>, K);
    if constexpr (found) {
        using types = types_by_slot<Root>;
        using mixer = typename mixer_of_mix<node_at<types, found.mix>>::type;
        using norm = typename function_of_norm<node_at<types, graph::view_of<Root>.solved(K)>>::type;
        if constexpr (Adjoint)
            return &fprnn::instance<differentiated_tokens<mixer, norm, T, Backend>>;
        else
            return &fprnn::instance<reduced_tokens<mixer, norm, T, Backend>>;
    } else {
        return nullptr;
    }
}

}  // namespace fprnn::engine
