#pragma once

#include <fprnn/core/shape.hpp>

#include <algorithm>
#include <cstddef>
#include <string>

namespace fprnn {

/// A string that can be a template argument: the name of a node.
template <std::size_t N>
struct fixed_string {
    char text[N]{};
    consteval fixed_string(const char (&s)[N]) { std::copy_n(s, N, text); }
    constexpr const char* c_str() const { return text; }
    friend constexpr bool operator==(const fixed_string&, const fixed_string&) = default;
};

/// The sizes that symbolic widths stand for.
struct dims {
    index d_in = 0;     ///< channels of the layer's input
    index d_inner = 0;  ///< D, channels of the iterate
    index d_state = 1;  ///< N, rows of a matrix state
    index d_out = 1;    ///< channels of an output that is neither

    friend bool operator==(const dims&, const dims&) = default;

    void validate() const {
        const auto positive = [](const char* name, index value) {
            require(value >= 1, "init",
                    [&] { return std::string(name) + " must be at least 1, got " + std::to_string(value); });
        };
        positive("d_in", d_in);
        positive("d_inner", d_inner);
        positive("d_state", d_state);
        positive("d_out", d_out);
    }
};

/// Symbolic widths: two nodes fit when their width types are equal, so most size mistakes are type errors.
struct d_in {
    static index of(const dims& d) { return d.d_in; }
};
struct d_inner {
    static index of(const dims& d) { return d.d_inner; }
};
struct d_state {
    static index of(const dims& d) { return d.d_state; }
};
struct d_out {
    static index of(const dims& d) { return d.d_out; }
};
template <index K>
struct fixed_width {
    static index of(const dims&) { return K; }
};
template <index K, class W>
struct times_width {
    static index of(const dims& d) { return checked_product(K, W::of(d), "width"); }
};
template <class... W>
struct sum_width {
    static index of(const dims& d) {
        index sum = 0;
        ((sum = checked_sum(sum, W::of(d), "width")), ...);
        return sum;
    }
};

}  // namespace fprnn
