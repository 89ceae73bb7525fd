#pragma once

#include <fprnn/cuda/complex.hpp>
#include <fprnn/cuda/scan_kernel.hpp>
#include <fprnn/cuda/tensor.hpp>
#include <fprnn/ops/scan.hpp>

#include <complex>
#include <string>
#include <type_traits>

/// The diagonal scan on tensors of a device. Sources that call it with numbers that no other source does
/// include scan.cuh instead, which has the kernels.
namespace fprnn::cuda {

namespace detail {

template <class T>
struct computed_in<std::complex<T>> {
    using type = complex<T>;
};

/// How kernels read and write what a tensor of X holds.
template <class X>
struct stored_as {
    using type = X;
};
template <class T>
struct stored_as<std::complex<T>> {
    using type = complex<T>;
    static_assert(sizeof(type) == sizeof(std::complex<T>));
};

/// The memory of a tensor, as kernels take it.
template <class X>
auto* for_kernels(X* data) {
    using type = typename stored_as<std::remove_const_t<X>>::type;
    return reinterpret_cast<std::conditional_t<std::is_const_v<X>, const type, type>*>(data);
}

/// Threads of a block, tokens of a thread, and blocks that a multiprocessor must have registers for.
struct scan_tuning {
    int threads, items, blocks;
};
/// Data in registers: λ and u, or λ, ḣ and h, of `items` tokens. Larger blocks or more of them spill.
/// (docs/decisions/0011)
template <class S>
constexpr scan_tuning forward_tuning{256, 64 / sizeof(S), sizeof(S) == 16 ? 2 : 3};
template <class S>
constexpr scan_tuning back_tuning{256, 32 / sizeof(S),
                                  sizeof(S) == 16  ? 2
                                  : sizeof(S) == 8 ? 3
                                                   : 4};

/// Starts scan_tiles on the device: a kernel in scan.cuh, threads of the host in tests. nvcc cannot name a
/// scan_tuning in a kernel's stub, therefore three numbers.
template <int Threads, int Items, int Blocks, class Recurrence>
void scan_start(const device& d, const char* name, const tiling& tiles,
                const look_back<typename Recurrence::state>& between, const Recurrence& recurrence);

template <class Recurrence>
void scan_launch(const device& d, const char* name, const fprnn::shape& s, const Recurrence& recurrence) {
    using S = typename Recurrence::state;
    constexpr scan_tuning tuning = Recurrence::is_adjoint ? back_tuning<S> : forward_tuning<S>;
    const tiling tiles(s[0], s[1], s[2], tuning.threads, tuning.items);
    if (tiles.tiles == 0) return;

    tensor<unsigned char> zero(d, {index(sizeof(counter)) + checked_product(tiles.tiles, sizeof(flag), name)});
    zero.clear();
    tensor<affine<S>> blocks(d, {tiles.chunks > 1 ? tiles.chunks : 0, tiles.columns});
    const look_back<S> between{.taken = reinterpret_cast<counter*>(zero.data()),
                               .ready = reinterpret_cast<flag*>(zero.data() + sizeof(counter)),
                               .block = blocks.data(),
                               .chunks = tiles.chunks,
                               .bands = tiles.bands,
                               .columns = tiles.columns};
    scan_start<tuning.threads, tuning.items, tuning.blocks>(d, name, tiles, between, recurrence);
}

/// All on one device: "scan: u is on GPU 1 but lambda is on GPU 0".
template <class A, class B>
void require_together(const char* operation, const char* name, const tensor<A>& x, const char* other,
                      const tensor<B>& y) {
    if (!y.where()) return;
    require(x.where() == y.where(), operation, [&] {
        return place_of(other, y, x.where()) + " but " + name + " is on " +
               (x.where() ? "GPU " + std::to_string(x.where()->gpu()) : "no GPU");
    });
}

template <class T>
void require_optional(const char* operation, const char* name, const tensor<T>& got, const fprnn::shape& expected) {
    if (got.where()) fprnn::detail::require_shape(operation, name, got.shape(), expected);
}

}  // namespace detail

/// As scan, over the memory of h [B,T,D], which must not overlap lambda; it may be u's.
template <class T>
void scan_into(tensor<T>& h, const tensor<T>& lambda, const tensor<T>& u, const tensor<T>& carry = {},
               direction way = direction::forward) {
    fprnn::detail::require_rank("scan", "lambda", lambda.shape(), 3, "[B,T,D]");
    fprnn::detail::require_same("scan", "lambda", lambda.shape(), "u", u.shape());
    fprnn::detail::require_same("scan", "lambda", lambda.shape(), "h", h.shape());
    const fprnn::shape& s = u.shape();
    detail::require_optional("scan", "carry", carry, {s[0], s[2]});
    detail::require_together("scan", "lambda", lambda, "u", u);
    detail::require_together("scan", "lambda", lambda, "h", h);
    detail::require_together("scan", "lambda", lambda, "carry", carry);
    if (h.empty()) return;
    using S = typename detail::computed_in<T>::type;
    using detail::for_kernels;
    const scan_order order{s[1], s[2], way == direction::reversed};
    detail::scan_launch(*lambda.where(), "scan", s,
                        scan_recurrence<typename detail::stored_as<T>::type, S>{
                            order, for_kernels(lambda.data()), for_kernels(u.data()), for_kernels(carry.data()),
                            for_kernels(h.data()), nullptr});
}

/// Diagonal scan: h_t = λ_t ⊙ h_{t−1} + u_t, from h_{−1} = carry.                             (eq. intro_rnn)
/// As fprnn::scan, whose numbers it has but for roundings: it adds up in another order, which the shape alone
/// fixes, so that the bits are the same in every run. float, double, complex numbers of these, and bf16,
/// which is added up in float. lambda, u: [B,T,D]; carry: [B,D], zero when left out; returns h [B,T,D].
/// Products of λ over any number of tokens must be finite. Errors: shapes that do not match; tensors of
/// several devices; what CUDA says.
template <class T>
tensor<T> scan(const tensor<T>& lambda, const tensor<T>& u, const tensor<T>& carry = {},
               direction way = direction::forward) {
    fprnn::detail::require_rank("scan", "lambda", lambda.shape(), 3, "[B,T,D]");
    fprnn::detail::require_same("scan", "lambda", lambda.shape(), "u", u.shape());
    require(lambda.where().has_value(), "scan", [] { return "lambda is on no GPU"; });
    tensor<T> h(*lambda.where(), u.shape());
    scan_into(h, lambda, u, carry, way);
    return h;
}

/// Cotangents of a scan's arguments.
template <class T>
struct scan_cotangents {
    tensor<T> lambda, u, carry;

    scan_cotangents() = default;
    /// Zero, for arguments of [B,T,D].
    scan_cotangents(const device& d, const fprnn::shape& s) : lambda(d, s), u(d, s), carry(d, {s[0], s[2]}) {
        lambda.clear(), u.clear(), carry.clear();
    }
};

/// The adjoint of scan, as fprnn::scan_back: g_t = ḣ_t + conj(λ_{t+1}) ⊙ g_{t+1} with the carry-out's
/// cotangent added at the last token; ū += g, λ̄_t += g_t ⊙ conj(h_{t−1}), the carry-in's += conj(λ_0) ⊙ g_0.
/// Accumulates into `into`, or overwrites it on request, which spares reading it. Errors: as scan.
template <update Update = update::accumulate, class T>
void scan_back(const tensor<T>& lambda, const tensor<T>& h, const tensor<T>& carry, const tensor<T>& h_bar,
               const tensor<T>& carry_bar, scan_cotangents<T>& into, direction way = direction::forward) {
    using fprnn::detail::require_same;
    fprnn::detail::require_rank("scan_back", "lambda", lambda.shape(), 3, "[B,T,D]");
    require_same("scan_back", "lambda", lambda.shape(), "h", h.shape());
    require_same("scan_back", "lambda", lambda.shape(), "h_bar", h_bar.shape());
    require_same("scan_back", "lambda", lambda.shape(), "into.lambda", into.lambda.shape());
    require_same("scan_back", "lambda", lambda.shape(), "into.u", into.u.shape());
    const fprnn::shape& s = lambda.shape();
    const fprnn::shape state{s[0], s[2]};
    detail::require_optional("scan_back", "carry", carry, state);
    detail::require_optional("scan_back", "carry_bar", carry_bar, state);
    fprnn::detail::require_shape("scan_back", "into.carry", into.carry.shape(), state);
    const auto together = [&](const char* name, const tensor<T>& x) {
        detail::require_together("scan_back", "lambda", lambda, name, x);
    };
    together("h", h), together("h_bar", h_bar), together("carry", carry), together("carry_bar", carry_bar);
    together("into.lambda", into.lambda), together("into.u", into.u), together("into.carry", into.carry);
    if (into.carry.empty()) return;
    using S = typename detail::computed_in<T>::type;
    using detail::for_kernels;
    const scan_order order{s[1], s[2], way == direction::forward};
    detail::scan_launch(*lambda.where(), "scan_back", s,
                        scan_back_recurrence<typename detail::stored_as<T>::type, S, Update>{
                            order, for_kernels(lambda.data()), for_kernels(h.data()), for_kernels(carry.data()),
                            for_kernels(h_bar.data()), for_kernels(carry_bar.data()), for_kernels(into.lambda.data()),
                            for_kernels(into.u.data()), for_kernels(into.carry.data())});
}

}  // namespace fprnn::cuda

/// The same with the device named, as operations name their backend. Errors: also tensors of another device.
namespace fprnn {

template <class T>
void scan_into(cuda::tensor<T>& h, const cuda::tensor<T>& lambda, const cuda::tensor<T>& u,
               const cuda::tensor<T>& carry, direction way, const cuda::device& d) {
    if (!lambda.empty()) d.require_here("scan", "lambda", lambda);
    cuda::scan_into(h, lambda, u, carry, way);
}
template <class T>
cuda::tensor<T> scan(const cuda::tensor<T>& lambda, const cuda::tensor<T>& u, const cuda::tensor<T>& carry,
                     direction way, const cuda::device& d) {
    if (!lambda.empty()) d.require_here("scan", "lambda", lambda);
    return cuda::scan(lambda, u, carry, way);
}
template <update Update = update::accumulate, class T>
void scan_back(const cuda::tensor<T>& lambda, const cuda::tensor<T>& h, const cuda::tensor<T>& carry,
               const cuda::tensor<T>& h_bar, const cuda::tensor<T>& carry_bar, cuda::scan_cotangents<T>& into,
               direction way, const cuda::device& d) {
    if (!lambda.empty()) d.require_here("scan_back", "lambda", lambda);
    cuda::scan_back<Update>(lambda, h, carry, h_bar, carry_bar, into, way);
}

}  // namespace fprnn
