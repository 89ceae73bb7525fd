// Compiled for sm_90 and never run: proves that the kernel bodies of the library are device code, and that a layer's type
// leads to kernels whose template arguments hold no names.

// A body that calls host code is an error here, wherever it would only be a warning.
#pragma nv_diag_error 20011, 20012, 20013, 20014, 20015

#include <fprnn/cuda/block.cuh>
#include <fprnn/cuda/row_block.cuh>
#include <fprnn/cuda/selective_scan_kernel.hpp>

#include <fprnn/ops/scan.hpp>
#include <fprnn/ops/selective_scan_kernel.hpp>
#include <fprnn/program/lowering.hpp>

#include <cuda_bf16.h>

#include <string_view>

namespace fprnn::probe {

constexpr int threads = 128;
template <class T>
using team = cuda::row_block<T, threads>;

// ---- kernels: one block a row, or a sequence where time is the recurrence -------------------------------------------

/// Rows of K arguments, `stride` apart; 0 for a vector that all rows share.
template <class T, std::size_t K>
struct rows_of {
    small_array<T*, K> data;
    small_array<index, K> stride;

    __device__ small_array<T*, K> at(index row) const {
        small_array<T*, K> a;
        for (std::size_t k = 0; k < K; ++k) a[k] = data[k] ? data[k] + row * stride[k] : nullptr;
        return a;
    }
};

template <class Functor, std::size_t K, class T>
__global__ void chain_value(index channels, rows_of<const T, K> a, T* y) {
    const index row = blockIdx.x;
    chain::row<Functor, team<T>, K, T>(channels, a.at(row), y + row * channels);
}

template <class Functor, std::size_t K, class T>
__global__ void chain_back(index channels, rows_of<const T, K> a, const T* y_bar, rows_of<T, K> a_bar) {
    const index row = blockIdx.x;
    chain::row_back<Functor, team<T>, K, T>(channels, a.at(row), y_bar + row * channels, a_bar.at(row));
}

template <class T>
__global__ void scan_value(index tokens, index channels, const T* lambda, const T* u, const T* carry, T* h) {
    const index at = blockIdx.x * tokens * channels;
    kernel::scan<team<T>>(tokens, channels, channels, lambda + at, u + at, carry + blockIdx.x * channels, h + at);
}

template <class T>
__global__ void scan_back(index tokens, index channels, const T* lambda, const T* h, const T* carry, const T* h_bar,
                          T* running, T* lambda_bar, T* u_bar) {
    const index at = blockIdx.x * tokens * channels, state = blockIdx.x * channels;
    kernel::scan_back<team<T>>(tokens, channels, channels, lambda + at, h + at, carry + state, h_bar + at,
                               running + state, lambda_bar + at, u_bar + at);
}

template <class T>
__global__ void selective_scan_value(kernel::selective_scan_shape s, const T* A, const T* delta, const T* b, const T* c,
                                     const T* u, T* H, T* y) {
    const index at = blockIdx.x * s.tokens * s.channels, at_n = blockIdx.x * s.tokens * s.states;
    kernel::selective_scan<team<T>>(s, A, delta + at, b + at_n, c + at_n, u + at,
                                    H + blockIdx.x * s.states * s.channels, y + at);
}

template <class T>
__global__ void selective_scan_back_input(kernel::selective_scan_shape s, const T* A, const T* delta, const T* b,
                                          const T* c, const T* y_bar, T* H_bar, T* u_bar) {
    const index at = blockIdx.x * s.tokens * s.channels, at_n = blockIdx.x * s.tokens * s.states;
    kernel::selective_scan_back_input<team<T>>(s, A, delta + at, b + at_n, c + at_n, y_bar + at,
                                               H_bar + blockIdx.x * s.states * s.channels, u_bar + at);
}

template <class T>
__global__ void selective_scan_back_token(index N, index D, const T* A, const T* delta, const T* b, const T* c,
                                          const T* u, const T* H, const T* y_bar, T* H_bar, T* A_bar, T* delta_bar,
                                          T* b_bar, T* c_bar, T* u_bar, T* work) {
    const index at = blockIdx.x * D, at_n = blockIdx.x * N, state = at * N;
    kernel::selective_scan_back_token<team<T>>(N, D, A, delta + at, b + at_n, c + at_n, u + at, H + state, y_bar + at,
                                               H_bar + state, A_bar + state, delta_bar + at, b_bar + at_n, c_bar + at_n,
                                               u_bar + at, work + 2 * at);
}

/// States in registers, a block a tile.
template <int N, int Items, class T, class S>
__global__ void __launch_bounds__(threads) selective_scan_states(cuda::selective_scan_sequences<T, S> s) {
    cuda::selective_scan_tile<threads, N, Items>(cuda::block{}, blockIdx.x, s);
}

template <class M, class T>
__global__ void mixer_prepare(index D, const T* first, index first_width, const T* second, index second_width, T* q,
                              index size) {
    const T* raw[] = {first + blockIdx.x * first_width, second + blockIdx.x * second_width};
    M::template prepare<team<T>, T>(D, raw, q + blockIdx.x * size);
}

template <class M, class T>
__global__ void mixer_mix(index D, const T* q, index size, const T* v, const T* w, T* out, T* work, index scratch) {
    const index at = blockIdx.x * D;
    M::template mix<team<T>, T>(D, q + blockIdx.x * size, v + at, w + at, out + at, work + blockIdx.x * scratch);
}

template <class M, class T>
__global__ void mixer_mix_back(index D, const T* q, index size, const T* out_bar, T* v_bar, T* w_bar, T* work,
                               index scratch) {
    const index at = blockIdx.x * D;
    M::template mix_back<team<T>, T>(D, q + blockIdx.x * size, out_bar + at, v_bar + at, w_bar + at,
                                     work + blockIdx.x * scratch);
}

/// From the cotangent of what a mixer gives to those of its maps, in one kernel.
template <class M, class T>
__global__ void mixer_back(index D, const T* first, index first_width, const T* second, index second_width, const T* q,
                           index size, const T* v, const T* w, const T* out_bar, T* q_bar, T* first_bar, T* second_bar,
                           T* work, index scratch) {
    const index row = blockIdx.x, at = row * D;
    const T* raw[] = {first + row * first_width, second + row * second_width};
    T* raw_bar[] = {first_bar + row * first_width, second_bar + row * second_width};
    M::template mix_back_q<team<T>, T>(D, q + row * size, v + at, w + at, out_bar + at, q_bar + row * size,
                                       work + row * scratch);
    M::template prepare_back<team<T>, T>(D, raw, q + row * size, q_bar + row * size, raw_bar);
}

template <class Norm, class T>
__global__ void norm_value(index D, const T* x, const T* weight, const T* bias, T* y) {
    const index at = blockIdx.x * D;
    Norm::template value<team<T>, T>(D, x + at, weight, bias, y + at);
}

/// A row's relative step, the residual of one token.
template <class T>
__global__ void relative_step(index D, const T* to, const T* from, T* residual) {
    const index at = blockIdx.x * D;
    const T change = team<T>::max(D, [&](auto lane) { return math::abs(lane.load(to + at) - lane.load(from + at)); });
    const T scale = team<T>::max(D, [&](auto lane) { return math::abs(lane.load(to + at)); });
    if (threadIdx.x == 0) residual[blockIdx.x] = change / (scale + T(1e-8));
}

// ---- from a layer's type to launches --------------------------------------------------------------------------------

/// A chain is made of functions and positions alone.
template <class F>
inline constexpr bool is_chain = false;
template <int I>
inline constexpr bool is_chain<chain::argument<I>> = true;
template <int N, int D>
inline constexpr bool is_chain<chain::constant<N, D>> = true;
template <class A, class B>
inline constexpr bool is_chain<chain::add<A, B>> = (is_chain<A> && is_chain<B>);
template <class A, class B>
inline constexpr bool is_chain<chain::subtract<A, B>> = (is_chain<A> && is_chain<B>);
template <class A, class B>
inline constexpr bool is_chain<chain::multiply<A, B>> = (is_chain<A> && is_chain<B>);
template <class F, class A>
inline constexpr bool is_chain<chain::apply<F, A>> = is_chain<A>;

template <class T>
consteval bool names_a_string() {
    return std::string_view(__PRETTY_FUNCTION__).find("fixed_string") != std::string_view::npos;
}

template <class E>
inline constexpr bool is_elementwise = false;
template <template <class...> class F, class... E>
inline constexpr bool is_elementwise<elementwise_node<F, E...>> = true;

/// nvcc writes into its kernel stubs the alias by which a template argument was named, here chain_functor<E> with all of
/// E's strings, which it cannot write. Taking the functor apart leaves its own name.
template <template <class...> class Function, class... A, std::size_t K>
void launch_chain(Function<A...>, index rows, index channels, rows_of<const float, K> a, rows_of<float, K> a_bar,
                  const float* in, float* out) {
    using functor = Function<A...>;
    const auto blocks = static_cast<unsigned>(rows);
    chain_value<functor, K, float><<<blocks, threads>>>(channels, a, out);
    chain_back<functor, K, float><<<blocks, threads>>>(channels, a, in, a_bar);
}

/// Launches value and adjoint of every elementwise chain that the layer y = f(x, y) lowers to.
template <class F>
void launch_chains(F, index rows, index channels, const float* in, float* out) {
    for_each_node(typename program<fixed_point_node<F>>::nodes{}, [&]<class E>() {
        if constexpr (is_elementwise<E>) {
            using functor = chain_functor<E>;
            static_assert(is_chain<functor>);
            static_assert(names_a_string<E>() && !names_a_string<functor>());
            constexpr std::size_t K = length<chain_arguments<E>>;
            rows_of<const float, K> a{};
            rows_of<float, K> a_bar{};
            for (std::size_t k = 0; k < K; ++k) {
                a.data[k] = in;
                a_bar.data[k] = out;
                a.stride[k] = a_bar.stride[k] = channels;
            }
            launch_chain(functor{}, rows, channels, a, a_bar, in, out);
        }
    });
}

template <class M, class... Maps>
void launch_mixer(mixer_node<M, Maps...>, index rows, index D, const float* in, float* out) {
    const auto blocks = static_cast<unsigned>(rows);
    const index size = M::size(D), scratch = M::scratch(D);
    mixer_prepare<M><<<blocks, threads>>>(D, in, size, in, size, out, size);
    mixer_mix<M><<<blocks, threads>>>(D, in, size, in, in, out, out, scratch);
    mixer_mix_back<M><<<blocks, threads>>>(D, in, size, in, out, out, out, scratch);
    mixer_back<M><<<blocks, threads>>>(D, in, size, in, size, in, size, in, in, in, out, out, out, out, scratch);
}

namespace layers {
using namespace symbols;

constexpr auto s = cat(in, shift(prev));
constexpr auto Q = householder<4, "Q">(s);

// h_t = λ_t ⊙ h_{t−1} + (1 − λ_t) ⊙ (Q_t B x_t + (I − Q_t) h_t^{ℓ−1})
constexpr auto lambda = sigmoid(affine<"lambda">(in));
constexpr auto u = (1 - lambda) * (Q * linear<"B">(in) + (I - Q) * prev);
constexpr auto fp_rnn = scan(lambda, u);

// y_t = LayerNorm(c_tᵀ H_t + D ⊙ x̃_t)
constexpr auto x_tilde = Q * linear<"x">(in) + (I - Q) * prev;
constexpr auto fp_mamba =
    layer_norm<"y_norm">(selective_scan<"ssm">(softplus(affine<"delta">(in)), normalise(linear<"b", d_state>(s)),
                                               normalise(linear<"c", d_state>(s)), x_tilde) +
                         parameter<"D">() * x_tilde);

// Two layers with other names have the same kernels.
constexpr auto renamed = (1 - sigmoid(affine<"decay">(in))) * prev;
constexpr auto plain = (1 - sigmoid(affine<"lambda">(in))) * prev;
static_assert(!std::same_as<decltype(renamed), decltype(plain)>);
static_assert(std::same_as<chain_functor<decltype(renamed)>, chain_functor<decltype(plain)>>);

// λ is hoisted, so the innermost chain of FP-RNN is one product.
static_assert(std::same_as<chain_functor<std::remove_const_t<decltype(u)>>,
                           chain::multiply<chain::argument<0>, chain::argument<1>>>);
}  // namespace layers

/// What a step of each layer launches beside its matrix products.
void launch(index B, index T, index D, index N, const float* in, float* out) {
    const auto sequences = static_cast<unsigned>(B), rows = static_cast<unsigned>(B * T);
    launch_chains(layers::fp_rnn, B * T, D, in, out);
    launch_chains(layers::fp_mamba, B * T, D, in, out);

    launch_mixer(layers::Q, B * T, D, in, out);

    scan_value<<<sequences, threads>>>(T, D, in, in, in, out);
    scan_back<<<sequences, threads>>>(T, D, in, in, in, in, out, out, out);

    const kernel::selective_scan_shape shape{T, N, D, D, N};
    selective_scan_value<<<sequences, threads>>>(shape, in, in, in, in, in, out, out);
    selective_scan_back_input<<<sequences, threads>>>(shape, in, in, in, in, in, out, out);
    selective_scan_back_token<<<rows, threads>>>(N, D, in, in, in, in, in, in, in, out, out, out, out, out, out, out);

    selective_scan_states<16, 8><<<sequences, threads>>>(cuda::selective_scan_sequences<float, float>{B, T, D, N});
    selective_scan_states<16, 8>
        <<<sequences, threads>>>(cuda::selective_scan_sequences<__nv_bfloat16, float>{B, T, D, N});
    selective_scan_states<16, 4><<<sequences, threads>>>(cuda::selective_scan_sequences<double, double>{B, T, D, N});

    norm_value<layer_norm_function><<<rows, threads>>>(D, in, in, in, out);
    norm_value<rms_norm_function><<<rows, threads>>>(D, in, in, in, out);
    relative_step<<<rows, threads>>>(D, in, in, out);
}

}  // namespace fprnn::probe
