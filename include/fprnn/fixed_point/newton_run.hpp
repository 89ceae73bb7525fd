#pragma once

#include <fprnn/fixed_point/layer_on.hpp>
#include <fprnn/fixed_point/newton_options.hpp>
#include <fprnn/fixed_point/newton_parts.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

/// Newton's method on what the tokens of a sequence hand on, without the type of a layer's expression.
namespace fprnn::engine {

/// The fixed points of a layer by Newton's method, whatever its expression.
template <class T, class Backend>
class newton_run {
public:
    newton_run(const layer_on<T, Backend>& all, const dims& size, const T* parameters, const newton_options& options,
               Backend& backend)
        : what_(all.what),
          size_(size),
          parameters_(parameters),
          options_(options),
          backend_(backend),
          parts_(all.what.nodes, size, options.dense),
          token_{.schedule = {1, options.tolerance / 10, most_of(all.how)}, .solver = all.how.solver},
          one_evaluation_{.schedule = {1, options.tolerance / 10, 1}} {}

    /// Of x [B,T,d_in], from a carry [B,carry_width] or from the beginning.
    void operator()(view<const T> x, view<const T> carry, solution<T>& result);

private:
    static constexpr index none = -1;
    /// A token whose F is evaluated.
    struct place {
        index sequence, t;
        index row = none;       ///< among the places of the evaluation
        index jacobian = none;  ///< among the Jacobians; none where the state before the token stays as it is
    };

    /// The most iterations of a token.
    static int most_of(const method& how) { return how.stop ? how.stop->ell_max() : how.schedule.ell_max; }
    void begin(view<const T> carry, solution<T>& result);
    /// The places as a batch of sequences of one token.
    void gather(std::span<const place> places);
    solution<T> evaluate(const method& how, record<T, Backend>* keep = nullptr);
    bool is_finite(const place& p) const;
    /// How far the state behind the token is from what F says; infinite where F is not finite.
    double residual(const place& p) const;
    /// What F says goes to the result, and the places of sequences that have ended are given up.
    void settle(int ell, solution<T>& result);
    /// Whether a sequence has ended, of whose tokens these are iterated.
    bool has_ended(int ell, std::span<place> tokens, solution<T>& result);
    /// Adds what is said of a token, whose state is so far from what F says, to what is said of its sequence.
    void count(const place& p, double off, solution<T>& result) const;
    /// Where F is not finite at a state of the solution: the rest of the sequence as token by token solves
    /// it.
    void solve_rest(const place& from, solution<T>& result);
    /// Jacobians and factors at the places that are left.
    void differentiate();
    void take_jacobians(index places);
    void take_factors(index places);
    /// s_t ← F(s_{t−1}) + J_t (s⁺_{t−1} − s_{t−1}). What is not finite is no state: a place keeps the one
    /// that it has. Places whose state before them is known are given up.
    void correct();
    /// Adds J_t times the step of the state before; where that leads far beyond what F says, nothing.
    void add_step(const place& p, const std::vector<T>& step, std::vector<T>& next) const;

    index width() const { return states_.shape()[2]; }
    /// Row r of an array of carries, which may have no numbers.
    template <class Tensor>
    static auto* row_of(Tensor& carries, index r) {
        return carries.data() + r * carries.shape().back();
    }
    index state_row(const place& p) const { return p.sequence * states_.shape()[1] + p.t + 1; }
    /// Behind the token, or before it.
    T* state(const place& p) { return row_of(states_, state_row(p)); }
    const T* state(const place& p) const { return row_of(states_, state_row(p)); }
    const T* state_before(const place& p) const { return row_of(states_, state_row(p) - 1); }
    const T* carry_of(const place& p) const { return row_of(f_.carry, p.row); }

    const plan<T, Backend>& what_;
    const dims& size_;
    const T* parameters_;
    const newton_options& options_;
    Backend& backend_;
    const newton_parts parts_;
    const method token_, one_evaluation_;

    view<const T> x_{};
    tensor<T> states_{};  ///< [B,T+1,carry_width]
    std::vector<place> places_{};
    solution<T> f_;               ///< of the places
    tensor<T> x_rows_{};          ///< [places,1,d_in]
    tensor<T> before_{};          ///< [places,carry_width]
    std::vector<T> jacobians_{};  ///< [dense,dense] each
    std::vector<T> factors_{};    ///< [scaled] each
};

template <class T, class Backend>
void newton_run<T, Backend>::operator()(view<const T> x, view<const T> carry, solution<T>& result) {
    x_ = x;
    begin(carry, result);
    for (int ell = 1; !places_.empty(); ++ell) {
        gather(places_);
        f_ = evaluate(token_);
        for (std::size_t r = 0; r < places_.size(); ++r) places_[r].row = static_cast<index>(r);
        result.work += f_.work;
        settle(ell, result);
        differentiate();
        correct();
    }
}

template <class T, class Backend>
void newton_run<T, Backend>::begin(view<const T> carry, solution<T>& result) {
    const index B = x_.shape()[0], tokens = x_.shape()[1], carried = graph::carry_width(what_.nodes, size_);
    result.begin(B);
    result.value.assign({B, tokens, what_.nodes[what_.nodes.root()].width.of(size_)});
    result.carry.assign({B, carried});
    result.work = {};
    states_.assign({B, tokens + 1, carried});
    std::copy_n(carry.data(), carry.size(), result.carry.data());
    for (index b = 0; b < B; ++b) std::copy_n(row_of(result.carry, b), carried, row_of(states_, b * (tokens + 1)));
    places_.clear();
    for (index b = 0; b < B; ++b)
        for (index t = 0; t < tokens; ++t) places_.push_back({.sequence = b, .t = t});
}

template <class T, class Backend>
void newton_run<T, Backend>::gather(std::span<const place> places) {
    const auto n = static_cast<index>(places.size());
    x_rows_.assign({n, 1, size_.d_in});
    before_.assign({n, width()});
    for (index r = 0; r < n; ++r) {
        const place& p = places[static_cast<std::size_t>(r)];
        std::copy_n(&x_(p.sequence, p.t, 0), size_.d_in, &x_rows_(r, 0, 0));
        std::copy_n(state_before(p), width(), row_of(before_, r));
    }
}

template <class T, class Backend>
solution<T> newton_run<T, Backend>::evaluate(const method& how, record<T, Backend>* keep) {
    solution<T> f;
    layer_on<T, Backend>{what_, how}.run(size_, parameters_, x_rows_.view(), before_.view(), backend_, keep, f,
                                         std::span<const index>{});
    return f;
}

template <class T, class Backend>
bool newton_run<T, Backend>::is_finite(const place& p) const {
    const T* f = carry_of(p);
    return std::all_of(f, f + width(), [](T x) { return math::is_finite(x); });
}

template <class T, class Backend>
double newton_run<T, Backend>::residual(const place& p) const {
    const T *f = carry_of(p), *s = state(p);
    double off = 0, scale = 0;
    if (!is_finite(p)) return std::numeric_limits<double>::infinity();
    for (index i = 0; i < width(); ++i) {
        off = std::max(off, std::abs(static_cast<double>(f[i]) - static_cast<double>(s[i])));
        scale = std::max(scale, std::abs(static_cast<double>(f[i])));
    }
    return off / (scale + 1e-8);
}

template <class T, class Backend>
void newton_run<T, Backend>::settle(int ell, solution<T>& result) {
    std::vector<place> left;
    for (auto first = places_.begin(); first != places_.end();) {
        const auto last =
            std::find_if(first, places_.end(), [b = first->sequence](const place& p) { return p.sequence != b; });
        if (!has_ended(ell, {first, last}, result)) left.insert(left.end(), first, last);
        first = last;
    }
    places_ = std::move(left);
}

template <class T, class Backend>
bool newton_run<T, Backend>::has_ended(int ell, std::span<place> tokens, solution<T>& result) {
    const index sequence = tokens.front().sequence;
    const auto b = static_cast<std::size_t>(sequence);
    result.iterations[b] = ell;
    // States are the solution's up to the first that F changes, and this one is as F says. They are known,
    // and counted once.
    bool is_known = true;
    double largest = 0;
    for (place& p : tokens) {
        if (is_known && !is_finite(p)) {
            solve_rest(p, result);
            return true;
        }
        const double r = residual(p);
        const bool stays = r < options_.tolerance / 10;
        std::copy_n(&f_.value(p.row, 0, 0), result.value.shape()[2], &result.value(sequence, p.t, 0));
        result.total_iterations[b] += f_.total_iterations[static_cast<std::size_t>(p.row)];
        p.jacobian = is_known ? none : 0;
        if (is_known) count(p, 0, result);
        if (stays || !is_known) largest = std::max(largest, r);
        is_known = is_known && stays;
    }
    const bool has_converged = largest < options_.tolerance;
    if (!has_converged && ell < options_.ell_max) return false;
    for (const place& p : tokens)
        if (p.jacobian != none) count(p, residual(p), result);
    if (!has_converged) detail::worsen(result.status[b], status::max_iterations);
    std::copy_n(carry_of(tokens.back()), width(), row_of(result.carry, sequence));
    return true;
}

template <class T, class Backend>
void newton_run<T, Backend>::count(const place& p, double off, solution<T>& result) const {
    const auto b = static_cast<std::size_t>(p.sequence), row = static_cast<std::size_t>(p.row);
    detail::worsen(result.status[b], f_.status[row]);
    result.residual[b] = std::max({result.residual[b], f_.residual[row], off});
    result.tokens_converged[b] += f_.status[row] == status::converged && off < options_.tolerance;
}

template <class T, class Backend>
void newton_run<T, Backend>::solve_rest(const place& from, solution<T>& result) {
    const auto b = static_cast<std::size_t>(from.sequence);
    const index tokens = x_.shape()[1] - from.t;
    x_rows_.assign({1, tokens, size_.d_in});
    before_.assign({1, width()});
    std::copy_n(&x_(from.sequence, from.t, 0), x_rows_.size(), x_rows_.data());
    std::copy_n(state_before(from), width(), before_.data());
    const solution<T> rest = evaluate(token_);
    std::copy_n(rest.value.data(), rest.value.size(), &result.value(from.sequence, from.t, 0));
    std::copy_n(rest.carry.data(), width(), row_of(result.carry, from.sequence));
    detail::worsen(result.status[b], rest.status[0]);
    result.total_iterations[b] += rest.total_iterations[0];
    result.residual[b] = std::max(result.residual[b], rest.residual[0]);
    result.tokens_converged[b] += rest.tokens_converged[0];
    result.work += rest.work;
}

template <class T, class Backend>
void newton_run<T, Backend>::differentiate() {
    std::vector<place> with_jacobian;
    for (place& p : places_) {
        if (p.jacobian == none) continue;
        p.jacobian = static_cast<index>(with_jacobian.size());
        with_jacobian.push_back(p);
    }
    if (with_jacobian.empty()) return;
    gather(with_jacobian);
    if (!parts_.dense.empty()) take_jacobians(static_cast<index>(with_jacobian.size()));
    if (!parts_.scaled.empty()) take_factors(static_cast<index>(with_jacobian.size()));
}

template <class T, class Backend>
void newton_run<T, Backend>::take_jacobians(index places) {
    record<T, Backend> kept;
    const solution<T> f = evaluate(token_, &kept);
    const std::size_t m = parts_.dense.size();
    jacobians_.resize(static_cast<std::size_t>(places) * m * m);
    tensor<T> out({places, width()}), in({places, width()}), x_bar(x_rows_.shape());
    const tensor<T> y_bar(f.value.shape());
    std::vector<T> gradient(static_cast<std::size_t>(kept.layout.count));
    for (std::size_t i = 0; i < m; ++i) {
        std::fill(in.begin(), in.end(), T(0));
        for (index r = 0; r < places; ++r) out(r, parts_.dense[i]) = 1;
        layer_on<T, Backend>{what_, token_}.back(kept, std::as_const(x_rows_).view(), y_bar.view(), x_bar.view(),
                                                 gradient.data(), backend_, {std::as_const(out).view(), in.view()});
        for (index r = 0; r < places; ++r) {
            T* row = &jacobians_[(static_cast<std::size_t>(r) * m + i) * m];
            for (std::size_t j = 0; j < m; ++j) row[j] = in(r, parts_.dense[j]);
            out(r, parts_.dense[i]) = 0;
        }
    }
}

template <class T, class Backend>
void newton_run<T, Backend>::take_factors(index places) {
    const std::size_t k = parts_.scaled.size();
    factors_.assign(static_cast<std::size_t>(places) * k, T(0));
    const auto each = [&](auto body) {
        for (index r = 0; r < places; ++r)
            for (std::size_t i = 0; i < k; ++i)
                body(r, parts_.scaled[i], factors_[static_cast<std::size_t>(r) * k + i]);
    };
    // λ s + u of s = 0, then of an s as large as u, beside which λ keeps its digits.
    const auto far = [](T u) { return std::max(std::abs(u), T(1)); };
    each([&](index r, index i, T&) { before_(r, i) = 0; });
    const solution<T> at_zero = evaluate(one_evaluation_);
    each([&](index r, index i, T& factor) { factor = at_zero.carry(r, i), before_(r, i) = far(factor); });
    const solution<T> at_far = evaluate(one_evaluation_);
    each([&](index r, index i, T& factor) { factor = (at_far.carry(r, i) - factor) / far(factor); });
}

template <class T, class Backend>
void newton_run<T, Backend>::correct() {
    std::vector<T> step(static_cast<std::size_t>(width())), next(step.size());
    std::vector<place> left;
    for (const place& p : places_) {
        T* s = state(p);
        std::copy_n(carry_of(p), width(), next.data());
        if (p.jacobian != none) {
            add_step(p, step, next);
            left.push_back(p);
        }
        if (!std::all_of(next.begin(), next.end(), [](T x) { return math::is_finite(x); }))
            std::copy_n(s, next.size(), next.data());
        for (std::size_t i = 0; i < next.size(); ++i) {
            step[i] = next[i] - s[i];
            s[i] = next[i];
        }
    }
    places_ = std::move(left);
}

template <class T, class Backend>
void newton_run<T, Backend>::add_step(const place& p, const std::vector<T>& step, std::vector<T>& next) const {
    constexpr T far = 10;
    const std::size_t m = parts_.dense.size(), k = parts_.scaled.size();
    const std::vector<T> f = next;
    const T* J = jacobians_.data() + static_cast<std::size_t>(p.jacobian) * m * m;
    const T* lambda = factors_.data() + static_cast<std::size_t>(p.jacobian) * k;
    const auto at = [](index i) { return static_cast<std::size_t>(i); };
    for (std::size_t i = 0; i < m; ++i, J += m)
        for (std::size_t j = 0; j < m; ++j) next[at(parts_.dense[i])] += J[j] * step[at(parts_.dense[j])];
    for (std::size_t i = 0; i < k; ++i) next[at(parts_.scaled[i])] += lambda[i] * step[at(parts_.scaled[i])];
    T bound = 1;
    for (const T x : f) bound = std::max(bound, std::abs(x));
    for (const T x : next)
        if (!(std::abs(x) <= far * bound)) {
            next = f;
            return;
        }
}

}  // namespace fprnn::engine
