#pragma once

#include <fprnn/cuda/scan.hpp>
#include <fprnn/cuda/selective_scan_kernel.hpp>
#include <fprnn/cuda/tensor.hpp>

#include <string>

/// The selective scan on tensors of a device. Sources that call it with numbers that no other source does include
/// selective_scan.cuh instead, which has the kernels.
namespace fprnn::cuda {

/// What an expression has around its selective scan, done in the same kernel.
template <class T>
struct selective_scan_around {
    const tensor<T>* skip = nullptr;  ///< D [D]: y_t gains D ⊙ u_t
    const tensor<T>* gate = nullptr;  ///< z [B,T,D]: then y_t is multiplied by SiLU(z_t)
    bool softplus = false;            ///< Δ_t = softplus(delta_t)
};

/// What a selective scan returns: y [B,T,D] and the carry out H_{T−1} [B,N,D].
template <class T>
struct selective_scan_value {
    tensor<T> y, H;
};

namespace detail {

/// Starts selective_scan_tile for all tiles: a kernel in selective_scan.cuh, threads of the host in tests.
template <int Threads, int N, int Items, class T, class S>
void selective_scan_start(const device& d, index tiles, const selective_scan_sequences<T, S>& s);

/// States of a thread are in its registers.
template <class S>
constexpr index max_states = 256 / sizeof(S);

template <int Threads, int N = 4, class T, class S>
void selective_scan_launch(const device& d, const selective_scan_sequences<T, S>& s) {
    if constexpr (N < max_states<S>)
        if (s.states > N) return selective_scan_launch<Threads, 2 * N>(d, s);
    constexpr int items = N * sizeof(S) <= 64 ? 8 : 4;
    selective_scan_start<Threads, N, items>(d, selective_scan_tiles(s, Threads), s);
}

/// Threads of a block.
template <class S>
constexpr int selective_scan_threads = 128;

}  // namespace detail

/// Scan with a matrix state: H_t = exp(−exp(ω) ⊙ Δ_t) ⊙ H_{t−1} + b_t (Δ_t ⊙ u_t)ᵀ,  y_t = c_tᵀ H_t, from H_{−1} = H.
///                                                                                        (eq. mamba, app. mamba-definition)
/// As fprnn::selective_scan, whose numbers it has but for roundings; float, double, and bf16, whose states are float.
/// delta, u: [B,T,D]; omega: [N,D]; b, c: [B,T,N]; H: [B,N,D], zero when left out; N at most 64, for double 32. Errors: shapes that
/// do not match; more states; tensors of several devices; what CUDA says.
template <class T>
selective_scan_value<T> selective_scan(const tensor<T>& delta, const tensor<T>& omega, const tensor<T>& b,
                                       const tensor<T>& c, const tensor<T>& u, const tensor<T>& H = {},
                                       const selective_scan_around<T>& around = {}) {
    using S = typename detail::scan_state<T>::type;
    const char* operation = "selective_scan";
    fprnn::detail::require_rank(operation, "u", u.shape(), 3, "[B,T,D]");
    fprnn::detail::require_rank(operation, "omega", omega.shape(), 2, "[N,D]");
    const index B = u.shape()[0], tokens = u.shape()[1], D = u.shape()[2], N = omega.shape()[0];
    const fprnn::shape states{B, N, D};
    fprnn::detail::require_same(operation, "delta", delta.shape(), "u", u.shape());
    fprnn::detail::require_shape(operation, "omega", omega.shape(), {N, D});
    fprnn::detail::require_shape(operation, "b", b.shape(), {B, tokens, N});
    fprnn::detail::require_shape(operation, "c", c.shape(), {B, tokens, N});
    detail::require_optional(operation, "H", H, states);
    require(N <= detail::max_states<S>, operation, [&] {
        return "N = " + std::to_string(N) + " states, at most " + std::to_string(detail::max_states<S>) +
               " fit the registers of a thread";
    });
    require(u.where().has_value(), operation, [] { return "u is on no GPU"; });
    const auto together = [&](const char* name, const tensor<T>& x) {
        detail::require_together(operation, "u", u, name, x);
    };
    together("delta", delta), together("omega", omega), together("b", b), together("c", c), together("H", H);
    if (around.skip) {
        fprnn::detail::require_shape(operation, "skip", around.skip->shape(), {D});
        together("skip", *around.skip);
    }
    if (around.gate) {
        fprnn::detail::require_same(operation, "gate", around.gate->shape(), "u", u.shape());
        together("gate", *around.gate);
    }

    const device& d = *u.where();
    selective_scan_value<T> out{tensor<T>(d, u.shape()), tensor<T>(d, states)};
    if (out.y.empty() && out.H.empty()) return out;
    detail::selective_scan_launch<detail::selective_scan_threads<S>>(
        d, selective_scan_sequences<T, S>{.sequences = B,
                                          .tokens = tokens,
                                          .channels = D,
                                          .states = N,
                                          .sequence_rows = tokens,
                                          .token_rows = 1,
                                          .A = nullptr,
                                          .delta = delta.data(),
                                          .omega = omega.data(),
                                          .b = b.data(),
                                          .c = c.data(),
                                          .u = u.data(),
                                          .carry_in = H.data(),
                                          .skip = around.skip ? around.skip->data() : nullptr,
                                          .gate = around.gate ? around.gate->data() : nullptr,
                                          .softplus = around.softplus,
                                          .y = out.y.data(),
                                          .carry_out = out.H.data()});
    return out;
}

}  // namespace fprnn::cuda
