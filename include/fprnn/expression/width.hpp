#pragma once

#include <fprnn/core/shape.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <type_traits>

namespace fprnn {

/// A string that can be a template argument: the name of a node.
template <std::size_t N>
struct fixed_string {
    char text[N]{};
    consteval fixed_string(const char (&s)[N]) { std::copy_n(s, N, text); }
    constexpr const char* c_str() const { return text; }
    friend constexpr bool operator==(const fixed_string&, const fixed_string&) = default;
};

/// The sizes that symbolic widths stand for, by name.
struct dims {
    index d_in = 0;       ///< channels of the layer's input
    index d_inner = 0;    ///< D, channels of the iterate
    index d_state = 1;    ///< N, rows of a matrix state
    index d_out = 1;      ///< channels of an output that is neither
    index heads = 1;      ///< H
    index d_head = 1;     ///< V, channels of a head
    index d_key = 1;      ///< K, rows of a head's state
    index context = 256;  ///< tokens that attention has room for, those of earlier calls among them

    friend bool operator==(const dims&, const dims&) = default;

    /// Errors: a size below 1; they name the operation.
    void validate(const char* operation = "init") const;
};

struct named_size {
    const char* name;
    index dims::*size;
};
/// All of them.
inline constexpr std::array named_sizes{named_size{"d_in", &dims::d_in},       named_size{"d_inner", &dims::d_inner},
                                        named_size{"d_state", &dims::d_state}, named_size{"d_out", &dims::d_out},
                                        named_size{"heads", &dims::heads},     named_size{"d_head", &dims::d_head},
                                        named_size{"d_key", &dims::d_key},     named_size{"context", &dims::context}};

inline void dims::validate(const char* operation) const {
    for (const named_size& s : named_sizes)
        require(this->*s.size >= 1, operation,
                [&] { return std::string(s.name) + " must be at least 1, got " + std::to_string(this->*s.size); });
}

/// Symbolic widths: two nodes fit when their width types are equal, so most size mistakes are type errors.
template <index dims::*Size>
struct size_width {
    static index of(const dims& d) { return d.*Size; }
};
using d_in = size_width<&dims::d_in>;
using d_inner = size_width<&dims::d_inner>;
using d_state = size_width<&dims::d_state>;
using d_out = size_width<&dims::d_out>;
using heads = size_width<&dims::heads>;
using d_head = size_width<&dims::d_head>;
using d_key = size_width<&dims::d_key>;
template <index K>
struct fixed_width {
    static index of(const dims&) { return K; }
};
template <index K, class W>
struct times_width {
    static index of(const dims& d) { return checked_product(K, W::of(d), "width"); }
};
/// Several of another width, such as heads of d_head channels.
template <class A, class B>
struct product_width {
    static index of(const dims& d) { return checked_product(A::of(d), B::of(d), "width"); }
};
/// A part of another width, such as a head's channels of d_inner: quotient_width<d_inner, heads>. Errors: it
/// does not divide.
template <class Whole, class Parts>
struct quotient_width {
    static index of(const dims& d) {
        const index whole = Whole::of(d), parts = Parts::of(d);
        require(whole % parts == 0, "width", [&] {
            return std::to_string(parts) + " parts, such as heads, must divide the " + std::to_string(whole) +
                   " channels that they are of";
        });
        return whole / parts;
    }
};
namespace detail {
template <class Parts, class Part>
struct width_of_parts {
    using type = product_width<Parts, Part>;
};
template <class Parts, class Whole>
struct width_of_parts<Parts, quotient_width<Whole, Parts>> {
    using type = Whole;
};
}  // namespace detail
namespace detail {
template <class Part, class Width>
inline constexpr bool is_quotient_of = false;
template <class Whole, class Parts>
inline constexpr bool is_quotient_of<quotient_width<Whole, Parts>, Whole> = true;
/// Whether channels as wide as Width are parts as wide as Part, one behind the other.
template <class Part, class Width>
inline constexpr bool is_made_of = std::is_same_v<Part, Width> || is_quotient_of<Part, Width>;
template <class Part, index K, class W>
inline constexpr bool is_made_of<Part, times_width<K, W>> =
    std::is_same_v<Part, times_width<K, W>> || is_quotient_of<Part, times_width<K, W>> || is_made_of<Part, W>;
template <class Part, class A, class B>
inline constexpr bool is_made_of<Part, product_width<A, B>> =
    std::is_same_v<Part, product_width<A, B>> || is_quotient_of<Part, product_width<A, B>> || is_made_of<Part, B>;
}  // namespace detail
template <class... W>
struct sum_width {
    static index of(const dims& d) {
        index sum = 0;
        ((sum = checked_sum(sum, W::of(d), "width")), ...);
        return sum;
    }
};

}  // namespace fprnn
