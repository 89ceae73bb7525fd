#pragma once

#include <fprnn/core/math.hpp>
#include <fprnn/ops/chain.hpp>

namespace fprnn {

/// The gates of xLSTM's cells for one token, stabilised: a state C that is multiplied by σ(f) and to which
/// what is multiplied by e^i is added. Beside it stands m, the logarithm of the largest weight in it, and C
/// holds the state in units of e^{⌈m⌉}:
///
///     m ← max(log σ(f) + m⁻, i),   C ← f' C + i' …,
///     f' = exp(log σ(f) + ⌈m⁻⌉ − ⌈m⌉) < e,   i' = exp(i − ⌈m⌉) ≤ 1
///
/// Nothing overflows. ⌈m⌉ is constant but for its steps, so that no gradient goes through it: derivatives of
/// C at a constant unit are the derivatives of C. m = 0 says that the state is empty, whatever C holds, since
/// carries begin as zeros; an m that would be 0 becomes the smallest normal number. So the first token has i'
/// > 1/e for any i. V: a number or a register of them.
template <class V, class T>
struct exponential_gates {
    V f, i, m;
    V unit;     ///< ⌈m⌉
    V forgets;  ///< 1 where m is that of the state before, 0 where the token's input is heavier or the state was empty

    FPRNN_BOTH exponential_gates(V raw_i, V raw_f, V m_before) {
        using namespace math;
        const V zero(T(0)), log_f = -chain::softplus_function::value(-raw_f), kept = log_f + m_before;
        const auto is_filled = zero < abs(m_before);
        forgets = select(is_filled, select(kept < raw_i, zero, V(T(1))), zero);
        m = select(is_filled, maximum(kept, raw_i), raw_i);
        m = select(zero < abs(m), m, V(least));
        unit = ceil(m);
        f = select(is_filled, exp((ceil(m_before) - unit) + log_f), zero);
        i = exp(raw_i - unit);
    }
    /// What the raw gates receive of f̄', ī' and m̄; m̄ becomes that of the state before.
    struct cotangents {
        V i, f;
    };
    FPRNN_BOTH cotangents back(V raw_f, V f_bar, V i_bar, V& m_bar) const {
        using math::logistic;
        const V kept = forgets * m_bar, added = m_bar - kept;
        m_bar = kept;
        return {i * i_bar + added, logistic(-raw_f) * (f * f_bar + kept)};
    }

private:
    static constexpr T least = sizeof(T) == sizeof(float) ? T(1.17549435e-38) : T(2.2250738585072014e-308);
};

}  // namespace fprnn
