#pragma once

#include <fprnn/ops/rows.hpp>

namespace fprnn {

/// One token later: y_t = x_{t−1}, from x_{−1} = carry.
/// x: [B,T,D]; carry: [B,D], zero when left out; returns y [B,T,D]. The carry out is x's last token, or the carry itself
/// where T = 0. Errors: shapes that do not match.
template <array_like A>
tensor<element<A>> shift(const A& x, reads<A> carry = {}) {
    detail::require_rank("shift", "x", x.shape(), 3, "[B,T,D]");
    const index B = x.shape()[0], tokens = x.shape()[1], D = x.shape()[2];
    detail::require_optional("shift", "carry", carry, {B, D});
    tensor<element<A>> y(x.shape());
    if (y.empty()) return y;
    for (index b = 0; b < B; ++b) {
        auto* to = y.data() + b * tokens * D;
        if (carry.data()) std::copy_n(carry.data() + b * D, D, to);
        std::copy_n(x.data() + b * tokens * D, (tokens - 1) * D, to + D);
    }
    return y;
}

/// The adjoint: x̄_{t−1} += ȳ_t, the carry-out's cotangent goes to the last token, and the carry-in's += ȳ_0.
/// y_bar, x_bar: [B,T,D]; carry_out_bar, carry_bar: [B,D], either may be left out; accumulates into x_bar and carry_bar.
/// Errors: shapes that do not match.
template <array_like A>
void shift_back(const A& y_bar, reads<A> carry_out_bar, writes<A> x_bar, writes<A> carry_bar = {}) {
    detail::require_rank("shift_back", "y_bar", y_bar.shape(), 3, "[B,T,D]");
    const index B = y_bar.shape()[0], tokens = y_bar.shape()[1], D = y_bar.shape()[2];
    detail::require_optional("shift_back", "carry_out_bar", carry_out_bar, {B, D});
    detail::require_same("shift_back", "y_bar", y_bar.shape(), "x_bar", x_bar.shape());
    detail::require_optional("shift_back", "carry_bar", carry_bar, {B, D});
    const auto add = [D](const element<A>* from, element<A>* to) {
        if (from && to)
            for (index d = 0; d < D; ++d) to[d] += from[d];
    };
    const auto row = [D](auto& v, index r) { return v.data() ? v.data() + r * D : nullptr; };
    for (index b = 0; b < B; ++b) {
        const index first = b * tokens;
        for (index t = 0; t < tokens; ++t)
            add(row(y_bar, first + t), t ? row(x_bar, first + t - 1) : row(carry_bar, b));
        add(row(carry_out_bar, b), tokens ? row(x_bar, first + tokens - 1) : row(carry_bar, b));
    }
}

}  // namespace fprnn
