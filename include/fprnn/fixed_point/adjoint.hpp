#pragma once

#include <fprnn/core/error.hpp>
#include <fprnn/core/math.hpp>
#include <fprnn/core/shape.hpp>

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace fprnn {

/// The vjp of f at the fixed point, nothing through ∂f/∂y: the paper's practice, k = 0
///                                                                                 (sec. optimizing-fp-rnns).
/// The same for every schedule.
struct one_step {};

/// The exact gradient, J_x^* = (I − J_h^*)^{-1} J_x(h^*) (eq. hyper-grad), chunk by chunk in reverse time: w
/// = δ + J_hᵀ w + (∂carry_out/∂y)ᵀ c̄. For one-token chunks directly where the mixer is compact
/// (fixed_point/token_adjoint.hpp), else by GMRES, until ‖residual‖₂ < tolerance · ‖right-hand side‖₂; for
/// longer ones, and where a map reads y, by repeating the equation, which needs J_h to contract, until ‖Δw‖_∞
/// < tolerance · (‖w‖_∞ + 1e-8) for each token: cotangents far below 1e-8 in the loss's unit count as zero.
/// ell_max bounds the applications of J_hᵀ for a chunk; GMRES takes at least 2.
struct implicit {
    double tolerance = 1e-5;
    int ell_max = 200;
};

/// Back through every iteration: what tests measure the others against. Costs ℓ* evaluations and keeps ℓ*
/// iterates of one chunk at a time.
struct unrolled {};

/// Back through the last k iterations of a chunk and the evaluation at y*: k applications of (∂f/∂y)ᵀ, each
/// at its own iterate                                                              (sec. optimizing-fp-rnns).
/// The evaluation that is reached last takes y as a constant, also the y that the chunk before handed on.
/// truncated{0} is `one_step`, and from k = ℓ* on it is `unrolled`, both to the bit; in between, gradients
/// depend on the schedule. Repeats a chunk's iterations and keeps min(k + 1, ℓ*) iterates of one chunk at a
/// time.
struct truncated {
    int k = 1;
};

/// The first k terms of (I − J_hᵀ)^{-1} = Σ_j (J_hᵀ)^j: k − 1 applications of J_hᵀ at y*, which keep w alone
/// (app. optimizing-fixed-point-rnns).
/// neumann{1} is `one_step` to the bit; neumann{k + 1} is truncated{k} where the last k + 1 iterates are y*.
/// Tends to `implicit` with k where J_h contracts, and grows with k elsewhere.
struct neumann {
    int k = 2;
};

/// What an adjoint of one's own does with one chunk: w of all its sequences, which begins as δ, the cotangent
/// of y*, and from which parameters, inputs and the chunk before then receive.
class adjoint_chunk {
public:
    /// w ← part · (δ + J_hᵀ w + (∂carry_out/∂y)ᵀ c̄) + (1 − part) · w. Returns the largest change, ‖Δw‖_∞ /
    /// (‖w‖_∞ + 1e-8) of a token.
    virtual double apply(double part = 1) = 0;
    adjoint_chunk() = default;
    adjoint_chunk(const adjoint_chunk&) = delete;
    adjoint_chunk& operator=(const adjoint_chunk&) = delete;

protected:
    ~adjoint_chunk() = default;
};
template <class A>
concept adjoint_rule = requires(const A& a, adjoint_chunk& w) {
    a(w);
};

/// An adjoint of one's own, on the CPU alone: a function that applies J_hᵀ as often as it likes. Up to
/// 16 sequences of a batch are solved together: a rule that looks at the change ends for all of them when the
/// slowest ends,
///
///     fixed_point(f, {.adjoint = [](adjoint_chunk& w) {
///         for (int k = 0; k < 200 && w.apply(0.9) > 1e-6; ++k) {}
///     }});
class own_adjoint {
public:
    template <adjoint_rule A>
    own_adjoint(A a) : rule_(std::make_shared<const std::function<void(adjoint_chunk&)>>(std::move(a))) {}

    void operator()(adjoint_chunk& w) const { (*rule_)(w); }

private:
    std::shared_ptr<const std::function<void(adjoint_chunk&)>> rule_;
};

/// How a fixed point is differentiated, independent of how it was found.
using adjoint = std::variant<one_step, implicit, unrolled, truncated, neumann, own_adjoint>;

inline void validate(const adjoint& a) {
    if (const auto* i = std::get_if<implicit>(&a)) {
        require(i->tolerance > 0 && math::is_finite(i->tolerance), "implicit",
                [&] { return "tolerance must be positive and finite, got " + detail::number_text(i->tolerance); });
        require(i->ell_max >= 1, "implicit",
                [&] { return "ell_max must be at least 1, got " + std::to_string(i->ell_max); });
    }
    if (const auto* t = std::get_if<truncated>(&a))
        require(t->k >= 0, "truncated", [&] { return "k must be at least 0, got " + std::to_string(t->k); });
    if (const auto* s = std::get_if<neumann>(&a))
        require(s->k >= 1, "neumann", [&] { return "k must be at least 1, got " + std::to_string(s->k); });
}

namespace detail {

/// Evaluations of a chunk that the way back goes through one by one, last to first; 1 where it stays at y*.
inline index evaluations_back(const adjoint& a) {
    if (std::holds_alternative<unrolled>(a)) return std::numeric_limits<index>::max();
    const auto* t = std::get_if<truncated>(&a);
    return t ? index(t->k) + 1 : 1;
}

}  // namespace detail

}  // namespace fprnn
