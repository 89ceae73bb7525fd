#pragma once

#include <fprnn/core/error.hpp>
#include <fprnn/core/math.hpp>
#include <fprnn/core/number_text.hpp>
#include <fprnn/core/random.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// When a chunk counts as solved. Stops are joined by ||: residual{.tolerance = 1e-4} || iterations{100}.
namespace fprnn {

/// What a stop sees of one sequence's chunk after an evaluation.
struct iteration {
    int ell;          ///< evaluations so far
    double residual;  ///< the largest of its tokens: ‖f(y) − y‖_∞ / (‖f(y)‖_∞ + 1e-8)
    double step;      ///< the largest of its tokens: ‖f(y) − y‖_∞
    double best;      ///< the smallest residual so far
};

/// Ends when the current residual, of the undamped f, is below the tolerance
///                                                                             (sec. fp-mamba-iteration).
struct residual {
    double tolerance = 1e-4;
};
/// Ends after so many evaluations.
struct iterations {
    int most = 100;
};
/// Ends for all sequences of a batch at the same time, when the quantile `of` of their residuals is below the
/// tolerance, interpolated linearly                                     (app. evaluation, heuristics: 75 %).
/// It gives up what all other stops keep: how a sequence is solved depends on its neighbours. On the CPU
/// alone. With best_ever a sequence counts with the smallest residual that it has had, as in the authors'
/// code, so that one which grows afterwards counts as converged; where its numbers leave the range of the
/// type before the batch ends, it counts for the quantile, and its status is `diverged` or `nonfinite`. It
/// ends, too, when the δ of a damped solver is below least_delta in all sequences that still run. Those that
/// have not converged by then are `max_iterations`.
struct share {
    double of = 0.75;
    double tolerance = 0.1;
    bool best_ever = false;
    double least_delta = 0;
};
/// The ℓ_max of one batch, drawn from Γ(shape, scale) and rounded up              (app. evaluation: Γ(4, 1)).
struct gamma_iterations {
    double shape = 4, scale = 1;
    fprnn::seed seed{};

    /// That of batch number `batch`, the same in every run. Errors: shape or scale that are not positive.
    iterations at(std::uint64_t batch) const {
        for (const auto& [name, value] : {std::pair("shape", shape), std::pair("scale", scale)})
            require(value > 0 && math::is_finite(value), "gamma_iterations", [&, n = name, v = value] {
                return std::string(n) + " must be positive and finite, got " + detail::number_text(v);
            });
        // Marsaglia and Tsang, 2000; below shape 1 by Γ(shape + 1) U^(1/shape).
        const random_stream random(seed, 0x67616d6d61 + batch);
        const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
        double drawn = d;
        for (std::uint64_t i = 0; i < 1000; ++i) {
            const double x = random.normal(4 * i), v = std::pow(1 + c * x, 3), u = 1 - random.uniform(4 * i + 2);
            if (v > 0 && std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) {
                drawn = d * v;
                break;
            }
        }
        if (shape < 1) drawn *= std::pow(random.uniform(4001), 1 / shape);
        return {std::max(1, static_cast<int>(std::ceil(std::min(scale * drawn, 1e6))))};
    }
};

/// A stop of one's own says of an `iteration` whether it has ended; on the CPU alone. A chunk that it ends
/// has converged.
template <class S>
concept stop_rule = requires(const S& s, const iteration& now) {
    { s(now) } -> std::convertible_to<bool>;
};

/// One stop, or several of which any may end an iteration. Where none bounds their number, `most_iterations`
/// does.
class stop {
public:
    static constexpr int most_iterations = 10000;

    stop(residual r) : tolerance_(r.tolerance) {
        require(r.tolerance > 0 && math::is_finite(r.tolerance), "residual",
                [&] { return "tolerance must be positive and finite, got " + detail::number_text(r.tolerance); });
    }
    stop(iterations i) : ell_max_(i.most) {
        require(i.most >= 1, "iterations", [&] { return "most must be at least 1, got " + std::to_string(i.most); });
    }
    stop(fprnn::share s) : share_(s) {
        require(s.of > 0 && s.of <= 1, "share",
                [&] { return "of must lie in (0, 1], got " + detail::number_text(s.of); });
        require(s.tolerance > 0 && math::is_finite(s.tolerance), "share",
                [&] { return "tolerance must be positive and finite, got " + detail::number_text(s.tolerance); });
        require(s.least_delta >= 0 && s.least_delta <= 1, "share",
                [&] { return "least_delta must lie in [0, 1], got " + detail::number_text(s.least_delta); });
    }
    template <stop_rule S>
    stop(S s) : others_{std::move(s)} {}

    /// The looser of two tolerances, the fewer of two numbers of iterations.
    friend stop operator||(stop a, const stop& b) {
        a.tolerance_ = std::max(a.tolerance_, b.tolerance_);
        a.ell_max_ = a.ell_max_ == 0 ? b.ell_max_ : b.ell_max_ == 0 ? a.ell_max_ : std::min(a.ell_max_, b.ell_max_);
        require(a.share_.tolerance == 0 || b.share_.tolerance == 0, "stop",
                [] { return std::string("a || b: one share of a batch is expected, got two"); });
        if (b.share_.tolerance > 0) a.share_ = b.share_;
        a.others_.insert(a.others_.end(), b.others_.begin(), b.others_.end());
        return a;
    }

    double tolerance() const { return tolerance_; }  ///< 0 where no residual ends an iteration
    int ell_max() const { return ell_max_ == 0 ? most_iterations : ell_max_; }
    bool is_of_a_batch() const { return share_.tolerance > 0; }
    const fprnn::share& share_of_a_batch() const { return share_; }
    bool has_own_rules() const { return !others_.empty(); }
    /// Whether a rule of one's own ends the iteration.
    bool ends(const iteration& now) const {
        return std::any_of(others_.begin(), others_.end(), [&](const auto& rule) { return rule(now); });
    }

private:
    double tolerance_ = 0;
    int ell_max_ = 0;  ///< 0: not said
    fprnn::share share_{.of = 1, .tolerance = 0};
    std::vector<std::function<bool(const iteration&)>> others_;
};

namespace detail {
template <class S>
inline constexpr bool is_stop =
    stop_rule<S> || std::is_same_v<S, residual> || std::is_same_v<S, iterations> || std::is_same_v<S, share>;
}  // namespace detail
template <class A, class B>
    requires(detail::is_stop<A>&& detail::is_stop<B>)
stop operator||(A a, B b) { return stop(std::move(a)) || stop(std::move(b)); }

}  // namespace fprnn
