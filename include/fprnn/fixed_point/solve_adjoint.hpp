#pragma once

#include <fprnn/fixed_point/adjoint.hpp>
#include <fprnn/fixed_point/solve.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <variant>
#include <vector>

/// The way back through the chunks of one tile: w = (I − J_hᵀ)⁻¹ δ, or through every iteration.
namespace fprnn::engine {

/// Sets the cotangents of the iteration's own nodes to zero in a chunk.
template <dependence Reach, class F>
void clear_bars(F& f, index row, index n) {
    for_each_node(typename F::program::nodes{}, [&]<class E>() {
        if constexpr (E::depends >= Reach && E::depends != dependence::output)
            std::fill_n(f.template bar_at<E>(row), n * f.template width_of<E>(), typename F::scalar(0));
    });
}

template <class F>
void send(F& f, index row, index n, const typename F::scalar* w) {
    using E = typename solved_expression<typename F::program::fixed_point>::type;
    auto* bar = f.template bar_at<E>(row);
    F::team::each(n * f.size.d_inner, [&](auto lane) { lane.add(bar, lane.load(w)); });
}

/// Sends the cotangent w of f's rows back through the iteration's nodes as far as `Reach`.
template <dependence Reach, class F>
void back_through(F& f, index row, index n, const typename F::scalar* w) {
    constexpr dependence inside = Reach == dependence::current ? dependence::current : dependence::shifted;
    clear_bars<inside>(f, row, n);
    send(f, row, n, w);
    for_each_node_reversed(typename F::program::nodes{}, [&]<class E>() {
        if constexpr (E::depends >= inside && E::depends != dependence::output)
            rule<E>::template back<Reach>(f, row, n);
    });
}

/// One iteration's map w ↦ J_hᵀ w of a chunk; the result is in the bars of `prev`.
template <class F>
void apply_transposed_jacobian(F& f, index row, index n, const typename F::scalar* w) {
    if (n == F::tile)
        back_through<dependence::current>(f, row, n, w);
    else
        back_through<dependence::shifted>(f, row, n, w);
}

/// Solves w = δ + J_hᵀ w + (∂carry_out/∂y)ᵀ c̄ for a chunk by repeating it, w entering as δ.
template <class F>
void repeat_adjoint(F& f, const implicit& options, index sequences, index first_sequence, index row, index n,
                    const typename F::scalar* delta, typename F::scalar* w, typename F::scalar* next,
                    convergence& all) {
    using T = typename F::scalar;
    const index D = f.size.d_inner, stride = F::tile * D, tokens = n / F::tile;
    auto watches = filled<F::tile>(watch<T>(options.tolerance, options.ell_max));
    bool running = true;
    for (int ell = 1; running; ++ell) {
        apply_transposed_jacobian(f, row, n, w);
        const T* through = f.template bar_at<previous_node>(row);
        F::team::each(n * D, [&](auto lane) { lane.store(next, lane.load(delta) + lane.load(through)); });
        running = false;
        for (index s = 0; s < sequences; ++s) {
            watch<T>& one = watches[static_cast<std::size_t>(s)];
            if (!one.running()) continue;
            one.take(ell, measure_step<typename F::team>(next + s * D, w + s * D, D, stride, tokens));
            for (index t = 0; t < tokens; ++t) std::copy_n(next + t * stride + s * D, D, w + t * stride + s * D);
            running = running || one.running();
        }
    }
    for (index s = 0; s < sequences; ++s) watches[static_cast<std::size_t>(s)].report(all, first_sequence + s, tokens);
}

/// The same for the row of one token by GMRES. J_h of a token has at most the rank of I − Q, so that rank + 1 applications
/// give the solution to rounding, contraction or not. `space` holds krylov_space + 1 rows of D.
inline constexpr int krylov_space = 20;

template <class F>
watch<typename F::scalar> gmres_adjoint(F& f, const implicit& options, index row, const typename F::scalar* delta,
                                        typename F::scalar* w, typename F::scalar* space) {
    using T = typename F::scalar;
    using team = typename F::team;
    const index D = f.size.d_inner;
    const auto dot = [&](const T* a, const T* b) {
        return team::template sum<1>(D, [&](auto lane) { return small_array{lane.load(a) * lane.load(b)}; })[0];
    };
    const auto axpy = [&](T a, const T* x, T* y) {
        team::each(D, [&](auto lane) { lane.add(y, decltype(lane.load(x))(a) * lane.load(x)); });
    };
    // Jᵀ is affine here: what later tokens ask of the carry comes with every application.
    T* constant = space + (krylov_space + 1) * D;
    const T* through = f.template bar_at<previous_node>(row);
    std::fill_n(w, D, T(0));
    back_through<dependence::current>(f, row, 1, w);
    team::each(D, [&](auto lane) { lane.store(constant, lane.load(through)); });
    team::each(D, [&](auto lane) { lane.store(w, lane.load(delta) + lane.load(constant)); });
    const T beginning = std::sqrt(dot(w, w));

    watch<T> result(options.tolerance, options.ell_max);
    int applications = 1;
    T residual = beginning;
    while (true) {
        // r = δ + c + Jᵀ w − w, the first time with w in place of δ + c.
        T* v = space;
        back_through<dependence::current>(f, row, 1, w);
        ++applications;
        team::each(D, [&](auto lane) { lane.store(v, lane.load(delta) + lane.load(through) - lane.load(w)); });
        residual = std::sqrt(dot(v, v));
        const double relative = beginning > 0 ? static_cast<double>(residual / beginning) : 0.0;
        if (!(residual - residual == T(0))) return result.finish(status::nonfinite, applications, relative), result;
        if (relative < options.tolerance || residual == T(0))
            return result.finish(status::converged, applications, relative), result;
        if (applications >= options.ell_max)
            return result.finish(status::max_iterations, applications, relative), result;

        T H[krylov_space + 1][krylov_space], cosine[krylov_space], sine[krylov_space], g[krylov_space + 1];
        g[0] = residual;
        team::each(D, [&](auto lane) { lane.store(v, lane.load(v) * decltype(lane.load(v))(T(1) / residual)); });
        int k = 0;
        while (k < krylov_space && applications < options.ell_max) {
            T* basis = space + k * D;
            T* next = basis + D;
            back_through<dependence::current>(f, row, 1, basis);
            ++applications;
            team::each(
                D, [&](auto lane) { lane.store(next, lane.load(basis) - (lane.load(through) - lane.load(constant))); });
            for (int i = 0; i <= k; ++i) {
                H[i][k] = dot(next, space + i * D);
                axpy(-H[i][k], space + i * D, next);
            }
            H[k + 1][k] = std::sqrt(dot(next, next));
            const T below = H[k + 1][k];
            for (int i = 0; i < k; ++i) {
                const T a = H[i][k], b = H[i + 1][k];
                H[i][k] = cosine[i] * a + sine[i] * b;
                H[i + 1][k] = cosine[i] * b - sine[i] * a;
            }
            const T length = std::hypot(H[k][k], H[k + 1][k]);
            if (!(length > T(0))) break;
            cosine[k] = H[k][k] / length;
            sine[k] = H[k + 1][k] / length;
            H[k][k] = length;
            g[k + 1] = -sine[k] * g[k];
            g[k] = cosine[k] * g[k];
            ++k;
            if (static_cast<double>(std::abs(g[k])) < 0.5 * options.tolerance * static_cast<double>(beginning)) break;
            if (!(below > T(0))) break;
            team::each(D,
                       [&](auto lane) { lane.store(next, lane.load(next) * decltype(lane.load(next))(T(1) / below)); });
        }
        if (k == 0) return result.finish(status::diverged, applications, relative), result;  // I − Jᵀ is singular
        for (int i = k - 1; i >= 0; --i) {
            T a = g[i];
            for (int j = i + 1; j < k; ++j) a -= H[i][j] * g[j];
            g[i] = a / H[i][i];
        }
        for (int i = 0; i < k; ++i) axpy(g[i], space + i * D, w);
    }
}

/// Numbers of scratch that solve_adjoint_chunk needs beside w.
template <class F>
index adjoint_scratch(const F& f) {
    const index D = f.size.d_inner;
    return std::max({f.chunk * F::tile * D, (krylov_space + 2) * D, token_scratch<F>(D)});
}

template <class F>
void solve_adjoint_chunk(F& f, const implicit& options, index sequences, index first_sequence, index row, index n,
                         const typename F::scalar* delta, typename F::scalar* w, typename F::scalar* scratch,
                         convergence& all) {
    const index D = f.size.d_inner;
    if (n > F::tile || !rows_are_independent(typename F::program::nodes{})) {
        repeat_adjoint(f, options, sequences, first_sequence, row, n, delta, w, scratch, all);
        return;
    }
    using watched = watch<typename F::scalar>;
    auto results = filled<F::tile>(watched(options.tolerance, options.ell_max));
    if constexpr (is_reducible<typename F::program>) {
        reduced_tokens<F> reduced(f, row, sequences, scratch);
        reduced.open_adjoint();
        std::array<double, static_cast<std::size_t>(F::tile)> residual{};
        reduced.solve_adjoint(delta, w, residual.data());
        for (std::size_t s = 0; s < static_cast<std::size_t>(sequences); ++s)
            if (residual[s] < options.tolerance) results[s].finish(status::converged, 1, residual[s]);
    }
    for (index s = 0; s < sequences; ++s) {
        watched& result = results[static_cast<std::size_t>(s)];
        if (result.running()) result = gmres_adjoint(f, options, row + s, delta + s * D, w + s * D, scratch);
        result.report(all, first_sequence + s, 1);
    }
}

/// What a chunk hands to the chunk before it: the cotangent of y_{t−1} at its first token.
template <class F>
void pass_to_chunk_before(F& f, index row) {
    if constexpr (contains<typename F::program::nodes, shift_node<previous_node>>) {
        using fixed_point = typename F::program::fixed_point;
        if (row == 0) return;
        const auto* from = f.template bar_at<shift_node<previous_node>>(row);
        auto* to = f.template bar_at<fixed_point>(row - F::tile);
        F::team::each(F::tile * f.size.d_inner, [&](auto lane) { lane.add(to, lane.load(from)); });
    }
}

/// Back through every iteration of a chunk, from the value f(y^{ℓ*−1}) to y⁰ = 0. Iterations are repeated as they were
/// and their iterates kept; `counts` [tile] says how many each sequence took.
template <class F>
void unroll_chunk(F& f, index sequences, index row, index n, const typename F::scalar* counts,
                  const typename F::scalar* delta, typename F::scalar* w) {
    using T = typename F::scalar;
    using fixed_point = typename F::program::fixed_point;
    const index D = f.size.d_inner, count = n * D, stride = F::tile * D, tokens = n / F::tile;
    const auto copy_sequence = [&](index s, const T* from, T* to) {
        for (index t = 0; t < tokens; ++t) std::copy_n(from + t * stride + s * D, D, to + t * stride + s * D);
    };
    T* y = f.template value_at<previous_node>(row);
    T* fy = f.template value_at<fixed_point>(row);
    const std::vector<T> solved(fy, fy + count);
    const auto longest = static_cast<index>(*std::max_element(counts, counts + sequences));
    std::vector<T> iterates(static_cast<std::size_t>(longest * count), T(0));
    for (index ell = 1; ell < longest; ++ell) {
        T* iterate = iterates.data() + ell * count;
        std::copy_n(iterate - count, count, y);
        step(f, row, n, true);
        std::copy_n(fy, count, iterate);
    }
    for_each_node(typename F::program::nodes{}, [&]<class E>() { rule<E>::before_unrolled_chunk(f); });
    std::copy_n(delta, count, w);
    for (index back = 1; back <= longest; ++back) {
        // Sequences are aligned at their last iteration; one that took fewer has no cotangent before its first.
        std::fill_n(y, count, T(0));
        for (index s = 0; s < sequences; ++s) {
            const auto ell = static_cast<index>(counts[s]) - back;
            if (ell >= 0)
                copy_sequence(s, iterates.data() + ell * count, y);
            else
                for (index t = 0; t < tokens; ++t) std::fill_n(w + t * stride + s * D, D, T(0));
        }
        step(f, row, n, true);
        back_through<dependence::input>(f, row, n, w);
        pass_to_chunk_before(f, row);
        for_each_node(typename F::program::nodes{}, [&]<class E>() { rule<E>::after_unrolled_step(f, row, n); });
        std::copy_n(f.template bar_at<previous_node>(row), count, w);
    }
    for_each_node(typename F::program::nodes{}, [&]<class E>() { rule<E>::after_unrolled_chunk(f, row, n); });
    std::copy_n(solved.data(), count, fy);  // y* has readers outside of the iteration
}

/// The adjoint of all chunks, last to first. The cotangent of y* enters in the bars of the fixed point.
template <class F>
void solve_adjoint(F& f, const adjoint& method, index sequences, index first_sequence, const typename F::scalar* counts,
                   typename F::scalar* w, typename F::scalar* scratch, convergence& all) {
    using fixed_point = typename F::program::fixed_point;
    const index chunks = (f.tokens + f.chunk - 1) / f.chunk;
    for (index k = chunks - 1; k >= 0; --k) {
        const index row = k * f.chunk * F::tile, n = std::min(f.chunk, f.tokens - k * f.chunk) * F::tile;
        const auto* delta = f.template bar_at<fixed_point>(row);
        f.span = n / F::tile;
        f.bar_row = f.unrolled ? 0 : row;
        if (std::holds_alternative<unrolled>(method)) {
            unroll_chunk(f, sequences, row, n, counts + k * F::tile, delta, w);
            continue;
        }
        for_each_node(typename F::program::nodes{}, [&]<class E>() { rule<E>::open_back(f, row, n); });
        std::copy_n(delta, n * f.size.d_inner, w);
        const auto* exact = std::get_if<implicit>(&method);
        if (exact) solve_adjoint_chunk(f, *exact, sequences, first_sequence, row, n, delta, w, scratch, all);
        back_through<dependence::input>(f, row, n, w);
        if (exact) pass_to_chunk_before(f, row);
    }
}

}  // namespace fprnn::engine
