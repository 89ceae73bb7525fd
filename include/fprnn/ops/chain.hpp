#pragma once

#include <fprnn/backend/reference.hpp>
#include <fprnn/ops/rows.hpp>

#include <cstddef>
#include <utility>

/// Elementwise functions and their chains. A chain is a type made of functions and argument positions alone,
/// so that it can be the template argument of a kernel on any backend: multiply<argument<0>,
/// sigmoid<argument<1>>>.
///
/// Every node has  value(a)         its value, given the arguments a[0], a[1], …
///                 back(a, g, bar)  adds to bar[i] the cotangent of argument i, given the cotangent g of the
///                                  value.
namespace fprnn::chain {

template <int Place>
struct argument {
    template <class V>
    FPRNN_BOTH static V value(const V* a) {
        return a[Place];
    }
    template <class V>
    FPRNN_BOTH static void back(const V*, V g, V* bar) {
        bar[Place] += g;
    }
};

template <int Numerator, int Denominator = 1>
struct constant {
    template <class V>
    FPRNN_BOTH static V value(const V*) {
        if constexpr (Denominator == 1)
            return V(Numerator);
        else
            return V(Numerator) / V(Denominator);
    }
    template <class V>
    FPRNN_BOTH static void back(const V*, V, V*) {}
};

template <class A, class B>
struct add {
    template <class V>
    FPRNN_BOTH static V value(const V* a) {
        return A::value(a) + B::value(a);
    }
    template <class V>
    FPRNN_BOTH static void back(const V* a, V g, V* bar) {
        A::back(a, g, bar);
        B::back(a, g, bar);
    }
};

template <class A, class B>
struct subtract {
    template <class V>
    FPRNN_BOTH static V value(const V* a) {
        return A::value(a) - B::value(a);
    }
    template <class V>
    FPRNN_BOTH static void back(const V* a, V g, V* bar) {
        A::back(a, g, bar);
        B::back(a, -g, bar);
    }
};

template <class A, class B>
struct multiply {
    template <class V>
    FPRNN_BOTH static V value(const V* a) {
        return A::value(a) * B::value(a);
    }
    template <class V>
    FPRNN_BOTH static void back(const V* a, V g, V* bar) {
        A::back(a, g * B::value(a), bar);
        B::back(a, g * A::value(a), bar);
    }
};

/// A function of one argument; F has value(x) and slope(x, y), the derivative where y = value(x), and may
/// have a name to be printed.
template <class F, class A>
struct apply {
    template <class V>
    FPRNN_BOTH static V value(const V* a) {
        return F::value(A::value(a));
    }
    template <class V>
    FPRNN_BOTH static void back(const V* a, V g, V* bar) {
        const V x = A::value(a);
        A::back(a, g * F::slope(x, F::value(x)), bar);
    }
};

struct sigmoid_function {
    static constexpr const char* name = "sigmoid";
    /// σ(x) = 1 / (1 + e^{−x})
    template <class V>
    FPRNN_BOTH static V value(V x) {
        using math::logistic;
        return logistic(x);
    }
    template <class V>
    FPRNN_BOTH static V slope(V, V y) {
        return y * (V(1) - y);
    }
};

struct silu_function {
    static constexpr const char* name = "silu";
    /// SiLU(x) = x σ(x)
    template <class V>
    FPRNN_BOTH static V value(V x) {
        return x * sigmoid_function::value(x);
    }
    template <class V>
    FPRNN_BOTH static V slope(V x, V) {
        const V s = sigmoid_function::value(x);
        return s * (V(1) + x * (V(1) - s));
    }
};

struct softplus_function {
    static constexpr const char* name = "softplus";
    /// softplus(x) = log(1 + e^x) = max(x, 0) + log(1 + e^{−|x|})
    template <class V>
    FPRNN_BOTH static V value(V x) {
        using math::abs, math::exp, math::log1p, math::maximum;
        return maximum(x, V(0)) + log1p(exp(-abs(x)));
    }
    template <class V>
    FPRNN_BOTH static V slope(V x, V) {
        return sigmoid_function::value(x);
    }
};

struct exp_function {
    static constexpr const char* name = "exp";
    template <class V>
    FPRNN_BOTH static V value(V x) {
        using math::exp;
        return exp(x);
    }
    template <class V>
    FPRNN_BOTH static V slope(V, V y) {
        return y;
    }
};

struct tanh_function {
    static constexpr const char* name = "tanh";
    /// tanh(x) = 2 σ(2x) − 1, which has no digits of a small x. Below 5/8 it is Lambert's continued fraction
    /// x / (1 + x² / (3 + x² / (5 + …))) as far as 15: 6 · 10⁻¹⁸ off at most.
    template <class V>
    FPRNN_BOTH static V value(V x) {
        using math::abs, math::multiply_add, math::select;
        const V z = x * x;
        const V above = multiply_add(multiply_add(multiply_add(V(36), z, V(6930)), z, V(270270)), z, V(2027025));
        const V below = multiply_add(multiply_add(multiply_add(z + V(630), z, V(51975)), z, V(945945)), z, V(2027025));
        return select(abs(x) < V(0.625), x * above / below, V(2) * sigmoid_function::value(V(2) * x) - V(1));
    }
    template <class V>
    FPRNN_BOTH static V slope(V, V y) {
        return V(1) - y * y;
    }
};

struct negate_function {
    template <class V>
    FPRNN_BOTH static V value(V x) {
        return -x;
    }
    template <class V>
    FPRNN_BOTH static V slope(V, V) {
        return V(-1);
    }
};

// The K pointers are unpacked and not looped over: GCC 12 vectorises the addresses of an array of them, and
// where AVX-512 has no tuning of its own (-march=native -O3 in a virtual machine) it fails to compile what it
// makes of that.

/// y = F(a[0], …, a[K−1]) for one row.
template <class F, class Team, std::size_t K, class T>
FPRNN_BOTH void row(index channels, const small_array<const T*, K>& a, T* y) {
    Team::each(channels, [&](auto lane) {
        using V = decltype(lane.load(y));
        const auto unpacked = [&]<std::size_t... k>(std::index_sequence<k...>) {
            const V x[] = {lane.load(a[k])...};
            lane.store(y, F::value(x));
        };
        unpacked(std::make_index_sequence<K>{});
    });
}

/// Flag k of a list, false beyond its end.
template <std::size_t k, bool... Flags>
inline constexpr bool flag = false;
template <bool First, bool... Rest>
inline constexpr bool flag<0, First, Rest...> = First;
template <std::size_t k, bool First, bool... Rest>
    requires(k > 0)
inline constexpr bool flag<k, First, Rest...> = flag<k - 1, Rest...>;

template <bool Store, class Lane, class T, class V>
FPRNN_BOTH void send(Lane lane, T* bar, V v) {
    if constexpr (Store)
        lane.store(bar, v);
    else if (bar)
        lane.add(bar, v);
}

/// a_bar[k] += (∂F/∂a[k]) ⊙ y_bar for one row, or = where flag k of Stores is set; a null a_bar[k] is left
/// out.
template <class F, class Team, std::size_t K, class T, bool... Stores>
FPRNN_BOTH void row_back(index channels, const small_array<const T*, K>& a, const T* y_bar,
                         const small_array<T*, K>& a_bar) {
    Team::each(channels, [&](auto lane) {
        using V = decltype(lane.load(y_bar));
        const auto unpacked = [&]<std::size_t... k>(std::index_sequence<k...>) {
            const V x[] = {lane.load(a[k])...};
            V bar[] = {((void)k, V(T(0)))...};
            F::back(x, lane.load(y_bar), static_cast<V*>(bar));
            (send<flag<k, Stores...>>(lane, a_bar[k], bar[k]), ...);
        };
        unpacked(std::make_index_sequence<K>{});
    });
}

}  // namespace fprnn::chain

namespace fprnn {

namespace body {

/// y = F(a[0], …, a[K−1])
template <class F, std::size_t K, class T>
struct chain {
    index channels;
    small_array<strided<const T>, K> a;
    strided<T> y;

    template <class Team>
    FPRNN_BOTH void row(index r, index) const {
        fprnn::chain::row<F, Team, K, T>(channels, at(a, r), y[r]);
    }
};

/// ā[k] += (∂F/∂a[k]) ⊙ ȳ, or = where flag k of Stores is set.
template <class F, std::size_t K, class T, bool... Stores>
struct chain_back {
    index channels;
    small_array<strided<const T>, K> a;
    strided<const T> y_bar;
    small_array<receiver<T>, K> a_bar;

    template <class Team>
    FPRNN_BOTH void row(index r, index worker) const {
        fprnn::chain::row_back<F, Team, K, T, Stores...>(channels, at(a, r), y_bar[r], at(a_bar, r, worker));
    }
};

}  // namespace body

}  // namespace fprnn
