#pragma once

#include <fprnn/backend/reference.hpp>
#include <fprnn/ops/rows.hpp>

namespace fprnn {

namespace body {

/// Of T tokens a sequence, row by row: to_t = from_{t−1}, or to_t += from_{t−1}, with to_0 of the carry,
/// which may be null. Backwards to_t = from_{t+1}, and so on, with to_{T−1} of the carry.
template <class T, bool Backwards, bool Adds>
struct neighbour {
    index channels, tokens;
    const T *from, *carry;
    T* to;

    template <class Team>
    FPRNN_BOTH void row(index r, index) const {
        const bool at_edge = r % tokens == (Backwards ? tokens - 1 : 0);
        const T* x = !at_edge ? from + (Backwards ? r + 1 : r - 1) * channels
                     : carry  ? carry + r / tokens * channels
                              : nullptr;
        T* y = to + r * channels;
        Team::each(channels, [&](auto lane) {
            if constexpr (Adds) {
                if (x) lane.add(y, lane.load(x));
            } else {
                using V = decltype(lane.load(y));
                lane.store(y, x ? lane.load(x) : V(T(0)));
            }
        });
    }
};

}  // namespace body

/// One token later: y_t = x_{t−1}, from x_{−1} = carry.
/// x: [B,T,D]; carry: [B,D], zero when left out; returns y [B,T,D]. The carry out is x's last token, or the
/// carry itself where T = 0. Errors: shapes that do not match.
template <array_like A, backend_of<A> Backend = reference>
array_of<element<A>, Backend> shift(const A& x, reads<A> carry = {}, Backend backend = {}) {
    using T = element<A>;
    detail::require_rank("shift", "x", x.shape(), 3, "[B,T,D]");
    const index B = x.shape()[0], tokens = x.shape()[1], D = x.shape()[2];
    detail::require_optional("shift", "carry", carry, {B, D});
    detail::require_here(backend, "shift", detail::named{"x", x}, detail::named{"carry", carry});
    auto y = detail::make_array<T>(backend, x.shape());
    if (!y.empty())
        detail::each_row<T>(backend, B * tokens,
                            body::neighbour<T, false, false>{D, tokens, x.data(), carry.data(), y.data()});
    return y;
}

template <array_like A, class... Others>
    requires(detail::with_other_numbers<element<A>, Others...>)
tensor<element<A>> shift(const A&, const Others&...) {
    static_assert(!detail::with_other_numbers<element<A>, Others...>,
                  "shift(x, carry): all arguments must hold numbers of one type");
    return {};
}

/// The adjoint: x̄_{t−1} += ȳ_t, the carry-out's cotangent goes to the last token, and the carry-in's += ȳ_0.
/// y_bar, x_bar: [B,T,D]; carry_out_bar, carry_bar: [B,D], either may be left out; accumulates into x_bar and
/// carry_bar. Errors: shapes that do not match.
template <array_like A, backend_of<A> Backend = reference>
void shift_back(const A& y_bar, reads<A> carry_out_bar, writes<A> x_bar, writes<A> carry_bar = {},
                Backend backend = {}) {
    using T = element<A>;
    detail::require_rank("shift_back", "y_bar", y_bar.shape(), 3, "[B,T,D]");
    const index B = y_bar.shape()[0], tokens = y_bar.shape()[1], D = y_bar.shape()[2];
    detail::require_optional("shift_back", "carry_out_bar", carry_out_bar, {B, D});
    detail::require_same("shift_back", "y_bar", y_bar.shape(), "x_bar", x_bar.shape());
    detail::require_optional("shift_back", "carry_bar", carry_bar, {B, D});
    detail::require_here(backend, "shift_back", detail::named{"y_bar", y_bar},
                         detail::named{"carry_out_bar", carry_out_bar}, detail::named{"x_bar", x_bar},
                         detail::named{"carry_bar", carry_bar});
    const strided<const T> first =
        tokens ? strided<const T>{y_bar.data(), tokens * D} : strided<const T>{carry_out_bar.data(), D};
    backend.at_once([&] {
        if (!y_bar.empty())
            detail::each_row<T>(
                backend, B * tokens,
                body::neighbour<T, true, true>{D, tokens, y_bar.data(), carry_out_bar.data(), x_bar.data()});
        if (!carry_bar.empty() && first.data)
            detail::each_row<T>(backend, B, body::add_rows<T>{D, first, {{carry_bar.data(), D}}});
    });
}

}  // namespace fprnn
