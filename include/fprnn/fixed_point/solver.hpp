#pragma once

#include <fprnn/core/error.hpp>
#include <fprnn/core/math.hpp>
#include <fprnn/core/number_text.hpp>
#include <fprnn/core/shape.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

/// How a chunk goes from y to the next iterate. Every solver has the same fixed points; which one it reaches,
/// and how fast, differs.
namespace fprnn {

/// y ← f(y), the paper's iteration. One-token chunks are solved in R numbers where the expression allows it.
struct picard {};

/// y ← δ f(y) + (1 − δ) y with δ = start; after `patience` evaluations without a new smallest residual δ ←
/// decay · δ, sequence by sequence                                           (app. evaluation, heuristics).
struct damped {
    double start = 1, decay = 0.9;
    int patience = 15;
};

/// One sequence's chunk, its n = tokens · channels numbers one behind the other.
template <class T>
struct solver_step {
    index n;
    int ell;     ///< evaluations so far, 1 at first
    const T* f;  ///< f(y)
    T* y;        ///< becomes the next iterate
    T* memory;   ///< memory(n) numbers of this chunk, zero at first
};

/// A solver of one's own says how many numbers it keeps and what comes next; on the CPU alone.
template <class S>
concept solver_rule = requires(const S& s, index n, const solver_step<float>& f, const solver_step<double>& d) {
    { s.memory(n) } -> std::convertible_to<index>;
    s.next(f);
    s.next(d);
};

/// Anderson's acceleration: of the last `history` differences of iterates and of residuals r = f(y) − y the
/// combination γ that makes r − ΔR γ smallest, y ← f(y) − (ΔY + ΔR) γ. `regularisation`, relative to the mean
/// of ‖ΔR_j‖², keeps γ small.
struct anderson {
    static constexpr int most = 16;
    int history = 5;
    double regularisation = 1e-10;

    index memory(index n) const { return 2 * (index(history) + 1) * n; }
    void validate() const {
        require(history >= 1 && history <= most, "anderson", [&] {
            return "history must lie between 1 and " + std::to_string(most) + ", got " + std::to_string(history);
        });
        require(regularisation > 0 && math::is_finite(regularisation), "anderson", [&] {
            return "regularisation must be positive and finite, got " + detail::number_text(regularisation);
        });
    }
    template <class T>
    void next(const solver_step<T>& s) const {
        const index n = s.n, m = history;
        T *const y_before = s.memory, *const r_before = y_before + n, *const dY = r_before + n, *const dR = dY + m * n;
        const index kept = std::min<index>(s.ell - 1, m);
        if (s.ell > 1) {
            const index at = (s.ell - 2) % m * n;
            for (index i = 0; i < n; ++i) {
                dY[at + i] = s.y[i] - y_before[i];
                dR[at + i] = s.f[i] - s.y[i] - r_before[i];
            }
        }
        for (index i = 0; i < n; ++i) {
            y_before[i] = s.y[i];
            r_before[i] = s.f[i] - s.y[i];
        }
        std::array<double, most> gamma{};
        combine(n, kept, dR, r_before, gamma);
        std::copy_n(s.f, n, s.y);
        for (index j = 0; j < kept; ++j)
            for (index i = 0; i < n; ++i)
                s.y[i] -= static_cast<T>(gamma[static_cast<std::size_t>(j)]) * (dY[j * n + i] + dR[j * n + i]);
    }

private:
    /// γ of the normal equations, by Cholesky's factors.
    template <class T>
    void combine(index n, index kept, const T* dR, const T* r, std::array<double, most>& gamma) const {
        std::array<std::array<double, most>, most> L{};
        const auto dot = [&](const T* a, const T* b) {
            double sum = 0;
            for (index i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
            return sum;
        };
        const auto k = static_cast<std::size_t>(kept);
        double trace = 0;
        const auto row = [&](std::size_t j) { return dR + static_cast<index>(j) * n; };
        for (std::size_t i = 0; i < k; ++i) {
            for (std::size_t j = 0; j <= i; ++j) L[i][j] = dot(row(i), row(j));
            gamma[i] = dot(row(i), r);
            trace += L[i][i];
        }
        for (std::size_t i = 0; i < k; ++i) L[i][i] += regularisation * trace / static_cast<double>(k) + 1e-300;
        for (std::size_t j = 0; j < k; ++j) {
            for (std::size_t i = j; i < k; ++i)
                for (std::size_t l = 0; l < j; ++l) L[i][j] -= L[i][l] * L[j][l];
            const double pivot = std::sqrt(std::max(L[j][j], 1e-300));
            for (std::size_t i = j; i < k; ++i) L[i][j] /= pivot;
            L[j][j] = pivot;
        }
        for (std::size_t i = 0; i < k; ++i) {
            for (std::size_t l = 0; l < i; ++l) gamma[i] -= L[i][l] * gamma[l];
            gamma[i] /= L[i][i];
        }
        for (std::size_t i = k; i-- > 0;) {
            for (std::size_t l = i + 1; l < k; ++l) gamma[i] -= L[l][i] * gamma[l];
            gamma[i] /= L[i][i];
        }
    }
};

/// Any solver as a value.
class solver {
public:
    solver() = default;
    solver(picard) {}
    solver(damped d) : damping_(d) {
        require(d.start > 0 && d.start <= 1, "damped",
                [&] { return "start must lie in (0, 1], got " + detail::number_text(d.start); });
        require(d.decay > 0 && d.decay <= 1, "damped",
                [&] { return "decay must lie in (0, 1], got " + detail::number_text(d.decay); });
        require(d.patience >= 1, "damped",
                [&] { return "patience must be at least 1, got " + std::to_string(d.patience); });
    }
    template <solver_rule S>
    solver(S s) {
        if constexpr (requires { s.validate(); }) s.validate();
        own_ = std::make_shared<const rule_of<S>>(std::move(s));
    }

    /// Whether it is y ← f(y).
    bool is_picard() const { return !own_ && damping_.start == 1 && damping_.decay == 1; }
    const damped& damping() const { return damping_; }
    bool has_own_rule() const { return own_ != nullptr; }
    index memory(index n) const { return own_ ? own_->memory(n) : 0; }
    template <class T>
    void next(const solver_step<T>& s) const {
        own_->next(s);
    }

private:
    struct own_rule {
        own_rule() = default;
        own_rule(const own_rule&) = delete;
        own_rule& operator=(const own_rule&) = delete;
        virtual ~own_rule() = default;
        virtual index memory(index n) const = 0;
        virtual void next(const solver_step<float>&) const = 0;
        virtual void next(const solver_step<double>&) const = 0;
    };
    template <class S>
    struct rule_of final : own_rule {
        S rule;
        explicit rule_of(S s) : rule(std::move(s)) {}
        index memory(index n) const override { return rule.memory(n); }
        void next(const solver_step<float>& s) const override { rule.next(s); }
        void next(const solver_step<double>& s) const override { rule.next(s); }
    };

    damped damping_{1, 1, 1};
    std::shared_ptr<const own_rule> own_;
};

}  // namespace fprnn
