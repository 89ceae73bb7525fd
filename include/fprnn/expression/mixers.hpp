#pragma once

#include <fprnn/expression/expression.hpp>
#include <fprnn/mixers/householder.hpp>

#include <algorithm>
#include <cstddef>

namespace fprnn {

namespace detail {
template <fixed_string Name, std::size_t N>
consteval auto joined_name(const char (&suffix)[N]) {
    char text[sizeof(Name.text) + N - 1]{};
    std::copy_n(Name.text, sizeof(Name.text) - 1, text);
    std::copy_n(suffix, N, text + sizeof(Name.text) - 1);
    return fixed_string(text);
}
}  // namespace detail

/// householder<R, "Q">(s): Q = Π_i (I − α_i ū_i ū_iᵀ) with u = W s ("Q.u") and α = Scale · σ(w s + bias) ("Q.alpha").
template <int R, fixed_string Name, int Scale = 1, expression E>
constexpr auto householder(E s) {
    auto u = linear<detail::joined_name<Name>(".u"), times_width<R, d_inner>>(s);
    auto alpha = affine<detail::joined_name<Name>(".alpha"), fixed_width<R>>(s);
    return mixer_node<householder_mixer<R, Scale>, decltype(u), decltype(alpha)>{};
}

}  // namespace fprnn
