#pragma once

#include <fprnn/expression/expression.hpp>
#include <fprnn/mixers/block_diagonal.hpp>
#include <fprnn/mixers/contractive.hpp>
#include <fprnn/mixers/dplr.hpp>
#include <fprnn/mixers/householder.hpp>
#include <fprnn/mixers/kronecker.hpp>
#include <fprnn/mixers/orthogonal.hpp>
#include <fprnn/mixers/product.hpp>
#include <fprnn/mixers/published_kronecker.hpp>
#include <fprnn/mixers/selective_dense.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <type_traits>

/// Mixers by name: what makes a mixer of what it sees, an expression s. householder<4, "Q">(s) is a mixer
/// whose parameters are called "Q.…"; householder<4>(s) calls them "Q.…", too. Models take such a function as
/// their argument: fp_mamba(householder<4>).
namespace fprnn {

namespace detail {
template <fixed_string Name, std::size_t N>
consteval auto joined_name(const char (&suffix)[N]) {
    char text[sizeof(Name.text) + N - 1]{};
    std::copy_n(Name.text, sizeof(Name.text) - 1, text);
    std::copy_n(suffix, N, text + sizeof(Name.text) - 1);
    return fixed_string(text);
}

template <auto Name>
inline constexpr bool is_default_name = std::string_view(Name.c_str()) == "Q";

/// As wide as row K of a mixer's raw numbers.
template <class M, std::size_t K>
struct raw_width {
    static index of(const dims& d) { return M::raw_sizes(d.d_inner)[K]; }
};
}  // namespace detail

/// A function from what a mixer sees to the mixer: Maker::make<Name>(s) is a mixer_node. Without a name it is
/// "Q"; `named` is the same under another, for a second mixer of one kind in one expression:
/// kronecker.named<"P">(s).
template <class Maker, auto... Name>
struct mixer_function {
    template <fixed_string Other>
    static constexpr mixer_function<Maker, Other> named{};

    template <expression E>
    constexpr auto operator()(E s) const {
        if constexpr (sizeof...(Name) == 0)  // nvcc cannot write a string in the type of a constant
            return Maker::template make<"Q">(s);
        else
            return Maker::template make<Name...>(s);
    }
    template <class X>
        requires(!expression<X>)
    constexpr auto operator()(X) const {
        static_assert(
            detail::never<X>,
            "a mixer is made of what it sees, an expression: kronecker(in), householder<4>(cat(in, shift(prev)))");
        return (*this)(input_node{});  // so that this stays the only error
    }
};

namespace detail {
template <class F>
inline constexpr bool is_mixer_function = false;
template <class Maker, auto... Name>
inline constexpr bool is_mixer_function<mixer_function<Maker, Name...>> = true;

template <class F, class E>
inline constexpr bool makes_mixers = requires(F f, E s) {
    { f(s) } -> mixer_expression;
};
/// A function of one's own that makes a mixer.
template <class F>
inline constexpr bool makes_mixers_otherwise = !is_mixer_function<F> && !expression<F> && makes_mixers<F, input_node>;
}  // namespace detail

namespace make {

/// u = W s ("Name.u") and α = σ(w s + bias) ("Name.alpha").
template <class M>
struct of_directions {
    template <fixed_string Name, expression E>
    static constexpr auto make(E s) {
        auto u = linear<detail::joined_name<Name>(".u"), times_width<M::rank, d_inner>>(s);
        auto alpha = affine<detail::joined_name<Name>(".alpha"), fixed_width<M::rank>>(s);
        return mixer_node<M, decltype(u), decltype(alpha)>{};
    }
};
/// k = W s ("Name.k"), upper triangles, and gates w s + bias ("Name.gate").
template <class M>
struct of_triangles {
    template <fixed_string Name, expression E>
    static constexpr auto make(E s) {
        auto k = linear<detail::joined_name<Name>(".k"), detail::raw_width<M, 0>>(s);
        auto gate = affine<detail::joined_name<Name>(".gate"), detail::raw_width<M, 1>>(s);
        return mixer_node<M, decltype(k), decltype(gate)>{};
    }
};
/// k = W s ("Name.k"), an upper triangle.
struct dense {
    template <fixed_string Name, expression E>
    static constexpr auto make(E s) {
        auto k = linear<detail::joined_name<Name>(".k"), detail::raw_width<selective_dense_mixer, 0>>(s);
        return mixer_node<selective_dense_mixer, decltype(k)>{};
    }
};
/// v ("Name.v"), the same for every s.
struct orthogonal {
    template <fixed_string Name, expression E>
    static constexpr auto make(E) {
        using width = detail::raw_width<orthogonal_mixer, 0>;
        return mixer_node<orthogonal_mixer, parameter_node<detail::joined_name<Name>(".v"), width, start::normal<1>>>{};
    }
};
/// A ("Name.0…") after B ("Name.1…").
template <class A, class B>
struct product {
    template <fixed_string Name, expression E>
    static constexpr auto make(E s) {
        return A::template make<detail::joined_name<Name>(".0")>(s) *
               B::template make<detail::joined_name<Name>(".1")>(s);
    }
};

}  // namespace make

/// Q = Π_i (I − α_i ū_i ū_iᵀ), i < R, α = Scale · σ(…): householder_mixer.
template <int R, fixed_string Name = "Q", int Scale = 1>
inline constexpr mixer_function<make::of_directions<householder_mixer<R, Scale>>, Name> householder{};
/// Q = I − Σ_i α_i ū_i ū_iᵀ, i < R, α = Scale · σ(…): dplr_mixer.
template <int R, fixed_string Name = "Q", int Scale = 1>
inline constexpr mixer_function<make::of_directions<dplr_mixer<R, Scale>>, Name> dplr{};
/// Q = I − K¹ ⊗ K², a contraction: kronecker_mixer. Its gates start half closed, at σ(0). From open
/// ones, theta["….Q.gate.bias"] filled with 4 after init, A5 of 16 tokens is learnt sooner; behind a
/// convolution the gradient of 200 tokens then begins far above 10²⁰ (decision 0020).
inline constexpr mixer_function<make::of_triangles<kronecker_mixer>> kronecker{};
/// The authors' forms of it: rows normalised (their FP-Mamba), and divided by a power iteration's estimate,
/// too (their FP-RNN).
inline constexpr mixer_function<make::of_triangles<published_kronecker_mixer<false>>> published_kronecker{};
inline constexpr mixer_function<make::of_triangles<published_kronecker_mixer<true>>> published_kronecker_spectral{};
/// Q = I − diag(K_1, …), blocks of [K,K], a contraction: block_diagonal_mixer.
template <int K, fixed_string Name = "Q">
inline constexpr mixer_function<make::of_triangles<block_diagonal_mixer<K>>, Name> block_diagonal{};
/// Q itself a dense matrix, D ≤ 256: selective_dense_mixer.
inline constexpr mixer_function<make::dense> selective_dense{};
/// Q orthogonal, the same for all tokens: orthogonal_mixer.
inline constexpr mixer_function<make::orthogonal> orthogonal{};

/// A B, B applied first; of mixers and of functions that make them. A product of functions has the name of A,
/// or that which `named` gives it; the parameters of A and B are "Name.0…" and "Name.1…". A name of B's own
/// is refused.
template <class A, class... MapsA, class B, class... MapsB>
constexpr auto operator*(mixer_node<A, MapsA...>, mixer_node<B, MapsB...>) {
    return mixer_node<product_mixer<A, B>, MapsA..., MapsB...>{};
}
template <class A, auto... NameA, class B, auto... NameB>
constexpr auto operator*(mixer_function<A, NameA...>, mixer_function<B, NameB...>) {
    static_assert((detail::is_default_name<NameB> && ...),
                  "A * B: the product is named by A or by (A * B).named<\"P\">; B has no name of its own");
    return mixer_function<make::product<A, B>, NameA...>{};
}
/// With functions of one's own, which name the parameters of what they make.
template <class A, auto... NameA, class F>
    requires(!detail::is_mixer_function<F>)
constexpr auto operator*(mixer_function<A, NameA...> a, F f) {
    static_assert(
        detail::makes_mixers_otherwise<F>,
        "a product of mixers, A * B, is of two functions that make them, such as kronecker * dplr<2>; a mixer is "
        "applied when it has been made of what it sees, A(s) * v");
    if constexpr (detail::makes_mixers_otherwise<F>)
        return [a, f](auto s) { return a(s) * f(s); };
    else
        return a;  // so that this stays the only error
}
template <class F, class B, auto... NameB>
    requires(!detail::is_mixer_function<F> && detail::makes_mixers_otherwise<F>)
constexpr auto operator*(F f, mixer_function<B, NameB...> b) {
    return [f, b](auto s) { return f(s) * b(s); };
}
template <class A, auto... NameA, class F>
constexpr auto operator+(mixer_function<A, NameA...> a, F) {
    static_assert(detail::never<F>, "mixers are multiplied, A * B, and not added");
    return a;  // so that this stays the only error
}

namespace make {
template <class Maker, int Numerator, int Denominator>
struct contracted;
}
namespace detail {
template <class M>
inline constexpr bool is_compact_mixer =
    compact_mixer<M>;  // a concept in a static_assert would list all that it requires

template <int Numerator, int Denominator, class M>
consteval bool may_contract() {
    constexpr bool bounded = 0 < Numerator && Numerator < Denominator;
    static_assert(
        bounded,
        "contractive<numerator, denominator>(Q): their quotient bounds the norm of I - Q and must lie between 0 "
        "and 1");
    static_assert(
        is_compact_mixer<M>,
        "contractive<numerator, denominator>(Q): Q must be compact, householder or dplr, as the norm of I - Q is "
        "known of these alone; kronecker and block_diagonal are contractions already");
    return bounded && is_compact_mixer<M>;
}
}  // namespace detail

/// ‖I − Q‖₂ ≤ Numerator / Denominator < 1, of a mixer or of a function that makes one: contractive<9,
/// 10>(householder<4>). Q has to be compact, see contractive_mixer.
template <int Numerator, int Denominator, class M, class... Maps>
constexpr auto contractive(mixer_node<M, Maps...> Q) {
    if constexpr (detail::may_contract<Numerator, Denominator, M>())
        return mixer_node<contractive_mixer<M, Numerator, Denominator>, Maps...>{};
    else
        return Q;
}
template <int Numerator, int Denominator, class Maker, auto... Name>
constexpr auto contractive(mixer_function<Maker, Name...> Q) {
    if constexpr (detail::may_contract<Numerator, Denominator, typename decltype(Q(input_node{}))::mixer_type>())
        return mixer_function<make::contracted<Maker, Numerator, Denominator>, Name...>{};
    else
        return Q;
}

/// Of a function of one's own.
template <int Numerator, int Denominator, class F>
    requires(!detail::is_mixer_function<F> && !mixer_expression<F>)
constexpr auto contractive(F f) {
    static_assert(detail::makes_mixers_otherwise<F>,
                  "contractive<numerator, denominator>(Q): Q is a compact mixer or a function that makes one, such as "
                  "contractive<9, 10>(householder<4>)");
    if constexpr (detail::makes_mixers_otherwise<F>)
        return [f](auto s) { return contractive<Numerator, Denominator>(f(s)); };
    else
        return householder<1>;  // so that this stays the only error
}
// Without a bound, or with half of one.
template <int Numerator, class Q>
constexpr auto contractive(Q) {
    static_assert(detail::never<Q>, "contractive has a bound, a quotient of two whole numbers: contractive<9, 10>(Q)");
    return householder<1>;  // so that this stays the only error
}
template <class... NoBound, class Q>
constexpr auto contractive(Q) {
    static_assert(detail::never<Q>, "contractive has a bound, a quotient of two whole numbers: contractive<9, 10>(Q)");
    return householder<1>;  // so that this stays the only error
}

namespace make {
template <class Maker, int Numerator, int Denominator>
struct contracted {
    template <fixed_string Name, expression E>
    static constexpr auto make(E s) {
        return contractive<Numerator, Denominator>(Maker::template make<Name>(s));
    }
};
}  // namespace make

namespace make {
template <class Maker>
struct with_weight_norm;
}
/// Of a mixer, or of a function that makes one: all of its maps are weight-normalised.
/// fp_mamba(weight_normed(householder<4>)). What its numbers are made of otherwise, as those of `orthogonal`,
/// stays.
template <class M, class... Maps>
constexpr auto weight_normed(mixer_node<M, Maps...>) {
    return mixer_node<M, typename detail::weight_normed_map<Maps>::type...>{};
}
template <class Maker, auto... Name>
constexpr auto weight_normed(mixer_function<Maker, Name...>) {
    return mixer_function<make::with_weight_norm<Maker>, Name...>{};
}
/// Of a function of one's own.
template <class F>
    requires(!detail::is_mixer_function<F> && !expression<F>)
constexpr auto weight_normed(F f) {
    static_assert(detail::makes_mixers_otherwise<F>,
                  "weight_normed takes a map, such as linear<\"W\">(e), a mixer, or a function that makes one, such as "
                  "weight_normed(householder<4>)");
    if constexpr (detail::makes_mixers_otherwise<F>)
        return [f](auto s) { return weight_normed(f(s)); };
    else
        return householder<1>;  // so that this stays the only error
}

namespace make {
template <class Maker>
struct with_weight_norm {
    template <fixed_string Name, expression E>
    static constexpr auto make(E s) {
        return weight_normed(Maker::template make<Name>(s));
    }
};
}  // namespace make

/// Constants are not found by their argument, as functions are.
namespace symbols {
using fprnn::block_diagonal;
using fprnn::dplr;
using fprnn::householder;
using fprnn::kronecker;
using fprnn::orthogonal;
using fprnn::published_kronecker;
using fprnn::published_kronecker_spectral;
using fprnn::selective_dense;
}  // namespace symbols

namespace detail {
/// The mixer that a model's argument makes of s.
template <class F, expression E>
constexpr auto mixer_of(F f, E s) {
    static_assert(
        makes_mixers<F, E>,
        "a model's mixer is a function from what it sees to a mixer: householder<4>, dplr<2>, kronecker, or one "
        "of yours, [](auto s) { return householder<4, \"Q\", 2>(s); }");
    if constexpr (makes_mixers<F, E>)
        return f(s);
    else
        return householder<1>(s);  // a mixer, so that this stays the only error
}
}  // namespace detail

}  // namespace fprnn
