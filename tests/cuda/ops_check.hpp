#pragma once

#include "distance.hpp"
#include "random.hpp"

#include <doctest/doctest.h>

#include <fprnn/cuda/backend.hpp>
#include <fprnn/cuda/tokens.hpp>
#include <fprnn/ops/layer_norm.hpp>
#include <fprnn/ops/linear.hpp>
#include <fprnn/ops/rms_norm.hpp>
#include <fprnn/ops/selective_scan.hpp>
#include <fprnn/ops/shift.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

/// Operations by themselves on tensors of cuda::device against those of the host: the same calls with another
/// backend.
namespace ops {

using fprnn::index;
using fprnn::shape;
using fprnn::tensor;
namespace cuda = fprnn::cuda;

/// Rounding, sums of some hundred numbers included.
template <class T>
inline constexpr double most = 32 * static_cast<double>(std::numeric_limits<T>::epsilon());

/// Copies tensors to where a backend computes, and back.
struct on_host {
    fprnn::reference backend{};
    template <class T>
    tensor<T> there(const tensor<T>& x) const {
        return x;
    }
    template <class T>
    tensor<T> back(const tensor<T>& x) const {
        return x;
    }
};
struct on_device {
    cuda::device backend{};
    template <class T>
    cuda::tensor<T> there(const tensor<T>& x) const {
        return backend.copy(x);
    }
    template <class T>
    tensor<T> back(const cuda::tensor<T>& x) const {
        return copy_to_host(x);
    }
};

/// What a function on_host and on_device returns, the results of its calls in their order.
template <class T, class Calls>
void check_same(const char* name, const shape& s, const Calls& calls) {
    const std::vector<tensor<T>> expected = calls(on_host{}), got = calls(on_device{});
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
        INFO(name, " of ", s.to_string(), ", result ", i);
        CHECK(got[i].shape() == expected[i].shape());
        CHECK(gpu::distance(got[i], expected[i]) <= most<T>);
    }
}

/// An operation of x alone and its adjoint, which accumulates.
template <class T, class Value, class Back>
void check_map(const char* name, const shape& s, const Value& value, const Back& back) {
    check_same<T>(name, s, [&](const auto& on) {
        const auto x = on.there(gpu::random<T>(s, 1)), y_bar = on.there(gpu::random<T>(s, 2));
        auto x_bar = on.there(gpu::random<T>(s, 3));
        back(x, y_bar, x_bar, on.backend);
        return std::vector{on.back(value(x, on.backend)), on.back(x_bar)};
    });
}

#define OPERATION(f)                                                                                              \
#f, s, [](const auto& x, auto on) { return fprnn::f(x, on); },                                                \
                                                                [](const auto& x, const auto& y_bar, auto& x_bar, \
                                                                   auto on) { fprnn::f##_back(x, y_bar, x_bar, on); }

template <class T>
void check_maps(const shape& s) {
    check_map<T>(OPERATION(sigmoid));
    check_map<T>(OPERATION(silu));
    check_map<T>(OPERATION(softplus));
    check_map<T>(OPERATION(exp));
    check_map<T>(OPERATION(tanh));
    check_map<T>(OPERATION(l2_normalise));
}

#undef OPERATION

template <class T>
void check_norms(const shape& s) {
    const shape row{s.back()};
    check_same<T>("rms_norm", s, [&](const auto& on) {
        const auto x = on.there(gpu::random<T>(s, 1)), w = on.there(gpu::random<T>(row, 2)),
                   y_bar = on.there(gpu::random<T>(s, 3));
        auto x_bar = on.there(gpu::random<T>(s, 4)), w_bar = on.there(gpu::random<T>(row, 5));
        fprnn::rms_norm_back(x, w, y_bar, x_bar, w_bar, on.backend);
        return std::vector{on.back(fprnn::rms_norm(x, w, on.backend)), on.back(x_bar), on.back(w_bar)};
    });
    check_same<T>("layer_norm", s, [&](const auto& on) {
        const auto x = on.there(gpu::random<T>(s, 1)), w = on.there(gpu::random<T>(row, 2)),
                   b = on.there(gpu::random<T>(row, 3)), y_bar = on.there(gpu::random<T>(s, 4));
        auto x_bar = on.there(gpu::random<T>(s, 5)), w_bar = on.there(gpu::random<T>(row, 6)),
             b_bar = on.there(gpu::random<T>(row, 7));
        fprnn::layer_norm_back(x, w, y_bar, x_bar, w_bar, b_bar, on.backend);
        return std::vector{on.back(fprnn::layer_norm(x, w, b, on.backend)), on.back(x_bar), on.back(w_bar),
                           on.back(b_bar)};
    });
}

template <class T>
void check_linear(const shape& s, index n) {
    const shape out{s[0], s[1], n}, weights{n, s[2]};
    check_same<T>("linear", s, [&](const auto& on) {
        const auto x = on.there(gpu::random<T>(s, 1)), W = on.there(gpu::random<T>(weights, 2)),
                   b = on.there(gpu::random<T>({n}, 3)), y_bar = on.there(gpu::random<T>(out, 4));
        auto x_bar = on.there(gpu::random<T>(s, 5)), W_bar = on.there(gpu::random<T>(weights, 6)),
             b_bar = on.there(gpu::random<T>({n}, 7)), other = on.there(gpu::random<T>(s, 8));
        fprnn::linear_back(x, W, y_bar, x_bar, W_bar, b_bar, on.backend);
        fprnn::linear_back(x, W, y_bar, other, {}, {}, on.backend);
        return std::vector{on.back(fprnn::linear(x, W, b, on.backend)),
                           on.back(fprnn::linear(x, W, {}, on.backend)),
                           on.back(x_bar),
                           on.back(W_bar),
                           on.back(b_bar),
                           on.back(other)};
    });
}

template <class T>
void check_shift(const shape& s) {
    const shape row{s[0], s[2]};
    check_same<T>("shift", s, [&](const auto& on) {
        const auto x = on.there(gpu::random<T>(s, 1)), carry = on.there(gpu::random<T>(row, 2)),
                   out_bar = on.there(gpu::random<T>(row, 3));
        auto x_bar = on.there(gpu::random<T>(s, 4)), carry_bar = on.there(gpu::random<T>(row, 5)),
             other = on.there(gpu::random<T>(s, 6));
        fprnn::shift_back(x, out_bar, x_bar, carry_bar, on.backend);
        fprnn::shift_back(x, {}, other, {}, on.backend);
        return std::vector{on.back(fprnn::shift(x, carry, on.backend)), on.back(fprnn::shift(x, {}, on.backend)),
                           on.back(x_bar), on.back(carry_bar), on.back(other)};
    });
}

/// Rows of a table and back, and a loss of them.
template <class T>
void check_tokens(index B, index tokens, index V, index D) {
    tensor<std::int32_t> of({B, tokens});
    for (index i = 0; i < of.size(); ++i) of[i] = static_cast<std::int32_t>((3 * i * i + i) % V);
    check_same<T>("embedding", {B, tokens, D}, [&](const auto& on) {
        const auto table = on.there(gpu::random<T>({V, D}, 1)), y_bar = on.there(gpu::random<T>({B, tokens, D}, 2));
        auto table_bar = on.there(gpu::random<T>({V, D}, 3)), y = on.there(gpu::random<T>({B, tokens, D}, 4));
        fprnn::embedding_back(of, y_bar, table_bar, on.backend);
        fprnn::embedding(table, of, y, on.backend);
        return std::vector{on.back(fprnn::embedding(table, of, on.backend)), on.back(y), on.back(table_bar)};
    });
    of[1] = fprnn::ignored_target;
    check_same<T>("cross_entropy", {B, tokens, V}, [&](const auto& on) {
        const shape s{B, tokens, V};
        const auto logits = on.there(gpu::random<T>(s, 1, 3));
        auto bar = on.there(gpu::random<T>(s, 2)), more = on.there(gpu::random<T>(s, 3));
        const auto with = fprnn::cross_entropy(logits, of, bar, on.backend),
                   without = fprnn::cross_entropy(logits, of, {}, on.backend);
        CHECK(with.loss == without.loss);
        CHECK(with.tokens == B * tokens - 1);
        fprnn::cross_entropy_back(logits, of, T(0.5), more, on.backend);
        auto smooth_bar = on.there(gpu::random<T>(s, 2));
        const auto smooth = fprnn::cross_entropy(logits, of, smooth_bar, on.backend, 0.25);
        return std::vector{tensor<T>({2}, {static_cast<T>(with.loss), static_cast<T>(smooth.loss)}), on.back(bar),
                           on.back(more), on.back(smooth_bar)};
    });
}

template <class T>
void check_scans(const shape& s, index N) {
    const shape row{s[0], s[2]};
    using fprnn::direction;
    for (const auto way : {direction::forward, direction::reversed})
        check_same<T>("scan", s, [&](const auto& on) {
            const auto lambda = on.there(gpu::random<T>(s, 1, 0.1, 0.8)), u = on.there(gpu::random<T>(s, 2)),
                       carry = on.there(gpu::random<T>(row, 3)), h_bar = on.there(gpu::random<T>(s, 4)),
                       carry_bar = on.there(gpu::random<T>(row, 5));
            const auto h = fprnn::scan(lambda, u, carry, way, on.backend);
            auto other = on.there(gpu::random<T>(s, 6));
            fprnn::scan_into(other, lambda, u, {}, way, on.backend);
            auto into = [&] {
                if constexpr (requires { lambda.where(); })
                    return cuda::scan_cotangents<T>(on.backend, s);
                else
                    return fprnn::scan_cotangents<T>(s);
            }();
            fprnn::scan_back(lambda, h, carry, h_bar, carry_bar, into, way, on.backend);
            return std::vector{on.back(h), on.back(other), on.back(into.lambda), on.back(into.u), on.back(into.carry)};
        });
    check_same<T>("selective_scan", s, [&](const auto& on) {
        const shape states{s[0], s[1], N}, matrix{s[0], N, s[2]};
        const auto delta = on.there(gpu::random<T>(s, 1, 0.1, 0.3)), omega = on.there(gpu::random<T>({N, s[2]}, 2)),
                   b = on.there(gpu::random<T>(states, 3)), c = on.there(gpu::random<T>(states, 4)),
                   u = on.there(gpu::random<T>(s, 5)), H = on.there(gpu::random<T>(matrix, 6)),
                   y_bar = on.there(gpu::random<T>(s, 7)), H_bar = on.there(gpu::random<T>(matrix, 8));
        auto out = fprnn::selective_scan(delta, omega, b, c, u, H, on.backend);
        auto first = on.back(out.y), after = on.back(out.H);
        fprnn::selective_scan_into(out, delta, omega, b, c, u, {}, on.backend);
        auto into = [&] {
            if constexpr (requires { u.where(); })
                return cuda::selective_scan_cotangents<T>(on.backend, s, N);
            else
                return fprnn::selective_scan_cotangents<T>(s, N);
        }();
        fprnn::selective_scan_back(delta, omega, b, c, u, H, y_bar, H_bar, into, on.backend);
        return std::vector{
            first,           after,           on.back(out.y),  on.back(out.H), on.back(into.delta), on.back(into.omega),
            on.back(into.b), on.back(into.c), on.back(into.u), on.back(into.H)};
    });
}

/// Every operation, of widths around a block's threads.
template <class T>
void check_all() {
    for (const shape& s : {shape{3, 5, 17}, shape{1, 4, 1}, shape{2, 3, 130}}) {
        check_maps<T>(s);
        check_norms<T>(s);
        check_linear<T>(s, 9);
        check_shift<T>(s);
        check_scans<T>(s, 3);
    }
    check_tokens<T>(3, 5, 7, 17);
}

}  // namespace ops
