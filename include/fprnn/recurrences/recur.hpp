#pragma once

#include <fprnn/ops/rows.hpp>
#include <fprnn/recurrences/recurrence.hpp>

#include <algorithm>
#include <array>
#include <string>

/// Any recurrence on whole sequences, without an expression.
namespace fprnn {

/// The inputs of a recurrence M, [B,T,width] each.
template <class M, class T>
using recurrence_inputs = std::array<view<const T>, M::inputs>;

/// What a recurrence returns: y [B,T,value] and the carry out, the states behind the last tokens [B,state].
template <class T>
struct recurrence_value {
    tensor<T> y, S;
};

namespace detail {

/// A recurrence's sequences. Errors: shapes that do not match.
template <class M, class T>
struct recurrence_sequences {
    index B = 0, tokens = 0;
    typename M::sizes of{};

    recurrence_sequences(const std::string& operation, const recurrence_inputs<M, T>& x, view<const T> parameters,
                         view<const T> S) {
        std::array<index, M::inputs> widths;
        for (std::size_t k = 0; k < M::inputs; ++k) {
            const std::string name = "input " + std::to_string(k);
            require_rank(operation.c_str(), name.c_str(), x[k].shape(), 3, "[B,T,width]");
            widths[k] = x[k].shape()[2];
            require_shape(operation.c_str(), name.c_str(), x[k].shape(), {x[0].shape()[0], x[0].shape()[1], widths[k]});
        }
        B = x[0].shape()[0], tokens = x[0].shape()[1];
        of = M::of(widths);
        const index p = recurring::parameters<M>(of);
        require(parameters.size() == p, operation.c_str(), [&] {
            return "parameters must be " + std::to_string(p) + " numbers, got " + std::to_string(parameters.size());
        });
        require_optional(operation.c_str(), "S", S, {B, M::state(of)});
    }
    /// The rows of sequence b.
    template <class U, class Arrays>
    recurring::rows<M, U> rows(Arrays& x, index b) const {
        recurring::rows<M, U> all;
        for (std::size_t k = 0; k < M::inputs; ++k) {
            all.stride[k] = x[k].shape()[2];
            all.data[k] = x[k].data() + b * tokens * all.stride[k];
        }
        return all;
    }
};

template <class M, class Team, class T>
buffer<T> prepared_parameters([[maybe_unused]] const typename M::sizes& of, view<const T> raw) {
    buffer<T> p(static_cast<std::size_t>(raw.size()));
    if constexpr (recurrence_with_parameters<M>) M::template prepare<Team, T>(of, raw.data(), p.data());
    return p;
}

}  // namespace detail

/// y_t = read(S_t), S_t = step(S_{t−1}; x_t), from S_{−1} = S.
/// x: M::inputs arrays [B,T,width]; parameters: M's, none where it has none; S: [B,state], zero when left
/// out; B and T may be 0. Errors: shapes that do not match, widths that M refuses.
///
///     auto [y, S] = fprnn::recur<fprnn::gated_delta_recurrence, float>({alpha, k, v, beta, q});
template <class M, class T, host_memory_backend<T> Backend = reference>
recurrence_value<T> recur(const recurrence_inputs<M, T>& x, view<const T> parameters = {}, view<const T> S = {},
                          Backend backend = {}) {
    using team = typename Backend::template team<T>;
    const detail::recurrence_sequences<M, T> s(M::name, x, parameters, S);
    const auto p = detail::prepared_parameters<M, team>(s.of, parameters);
    const index state = M::state(s.of), value = M::value(s.of);
    recurrence_value<T> to{tensor<T>({s.B, s.tokens, value}), tensor<T>({s.B, state})};
    if (S.data()) std::copy_n(S.data(), S.size(), to.S.data());
    backend.for_each(s.B, [&](index b) {
        const auto rows = s.template rows<const T>(x, b);
        T* H = to.S.data() + b * state;
        for (index t = 0; t < s.tokens; ++t)
            M::template step<team, T>(s.of, p.data(), rows[t], H, H, to.y.data() + (b * s.tokens + t) * value);
    });
    return to;
}

/// Cotangents of a recurrence's inputs, parameters and carry in.
template <class M, class T>
struct recurrence_cotangents {
    std::array<tensor<T>, M::inputs> x;
    tensor<T> parameters, S;

    /// Zero, for such arguments.
    recurrence_cotangents(const recurrence_inputs<M, T>& like, view<const T> raw_parameters = {}) {
        const detail::recurrence_sequences<M, T> s(M::name, like, raw_parameters, {});
        for (std::size_t k = 0; k < M::inputs; ++k) x[k] = tensor<T>(like[k].shape());
        parameters = tensor<T>({raw_parameters.size()});
        S = tensor<T>({s.B, M::state(s.of)});
    }
};

/// The adjoint, from ȳ and the cotangent of the carry out, S_bar [B,state], zero when left out. Accumulates
/// into `into`. States are recomputed: it takes the memory of about T/16 + 16 states a thread. Errors: shapes
/// that do not match.
template <class M, class T, host_memory_backend<T> Backend = reference>
void recur_back(const recurrence_inputs<M, T>& x, view<const T> parameters, view<const T> S, view<const T> y_bar,
                view<const T> S_bar, recurrence_cotangents<M, T>& into, Backend backend = {}) {
    using team = typename Backend::template team<T>;
    const std::string operation = M::name + std::string("_back");
    const detail::recurrence_sequences<M, T> s(operation, x, parameters, S);
    const index state = M::state(s.of), value = M::value(s.of), count = parameters.size();
    detail::require_shape(operation.c_str(), "y_bar", y_bar.shape(), shape{s.B, s.tokens, value});
    detail::require_optional(operation.c_str(), "S_bar", S_bar, shape{s.B, state});
    for (std::size_t k = 0; k < M::inputs; ++k)
        detail::require_shape(operation.c_str(), ("into.x[" + std::to_string(k) + "]").c_str(), into.x[k].shape(),
                              x[k].shape());
    detail::require_shape(operation.c_str(), "into.parameters", into.parameters.shape(), shape{count});
    detail::require_shape(operation.c_str(), "into.S", into.S.shape(), shape{s.B, state});
    const auto p = detail::prepared_parameters<M, team>(s.of, parameters);
    buffer<T> p_bar(static_cast<std::size_t>(s.B * count));
    backend.for_each(s.B, [&](index b) {
        buffer<T> start(static_cast<std::size_t>(state)), running(static_cast<std::size_t>(state)),
            scratch(static_cast<std::size_t>(recurring::scratch<M>(s.of, s.tokens)));
        if (S.data()) std::copy_n(S.data() + b * state, state, start.data());
        if (S_bar.data()) std::copy_n(S_bar.data() + b * state, state, running.data());
        recurring::back<M, team, T>(s.of, s.tokens, p.data(), s.template rows<const T>(x, b), start.data(),
                                    y_bar.data() + b * s.tokens * value, value, running.data(),
                                    s.template rows<T>(into.x, b), p_bar.data() + b * count, scratch.data());
        for (index i = 0; i < state; ++i) into.S[b * state + i] += running[static_cast<std::size_t>(i)];
    });
    if constexpr (recurrence_with_parameters<M>) {
        buffer<T> sum(static_cast<std::size_t>(count));
        for (index b = 0; b < s.B; ++b)
            for (index i = 0; i < count; ++i)
                sum[static_cast<std::size_t>(i)] += p_bar[static_cast<std::size_t>(b * count + i)];
        M::template prepare_back<team, T>(s.of, p.data(), sum.data(), into.parameters.data());
    }
}

}  // namespace fprnn
