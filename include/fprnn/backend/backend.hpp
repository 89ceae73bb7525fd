#pragma once

#include <fprnn/core/host_device.hpp>
#include <fprnn/core/parallel.hpp>
#include <fprnn/core/small_array.hpp>
#include <fprnn/core/tensor.hpp>

#include <concepts>
#include <span>
#include <type_traits>

namespace fprnn {

/// A row-major matrix inside a larger buffer: `rows` rows of `columns` numbers, `stride` apart.
template <class T>
struct matrix {
    T* data;
    index rows;
    index columns;
    index stride;
};

/// A matrix and what a backend has made of it for products.
template <class T>
struct packed_matrix {
    matrix<const T> plain;
    const T* packed;
};

/// A part of a map's weights, and of the rows that it multiplies.
template <class T>
struct weights_part {
    matrix<T> w_bar;
    matrix<const T> x;
};
template <class T>
using weights_parts = std::span<const std::type_identity_t<weights_part<T>>>;

/// A team executes one row of channels together: on the CPU a loop over packs, on a GPU a block of threads. Kernel
/// bodies are written once against it; a body receives a lane, which loads and stores its share of the channels and may
/// prefetch(p) what it will load soon.
///
///     team::each(D, body)       body(lane) for all channels
///     team::sum<K>(D, body)     K sums over the channels of what body(lane) returns, in a fixed order
///     team::max(D, body)        the largest; NaN when one of them is not finite, −∞ when there are none
///     team::once(body)          body() a single time, when all have come so far, and all go on when it is done: what is
///                               written of a row that is not a channel's
template <class Team, class T>
concept team_of = requires(index n) {
    Team::each(n, [](auto lane) {
        lane.prefetch(static_cast<const T*>(nullptr));
        lane.store(static_cast<T*>(nullptr), lane.load(static_cast<const T*>(nullptr)));
    });
    {
        Team::template sum<1>(n, [](auto lane) { return small_array{lane.load(static_cast<const T*>(nullptr))}; })[0]
        } -> std::convertible_to<T>;
    {
        Team::max(n, [](auto lane) { return lane.load(static_cast<const T*>(nullptr)); })
        } -> std::convertible_to<T>;
    Team::once([] {});
};

/// What the library knows of a machine. `tile` sequences are worked on together: a token's bits then depend neither on
/// the number of threads nor on the other sequences of the batch, because every product has the same number of rows and
/// every tile is processed in one fixed order.
///
///     multiply(Y, X, W, overwrite, packing)       Y = X Wᵀ or Y += X Wᵀ        X [r,k], W [n,k], Y [r,n]
///     multiply_back(X̄, Ȳ, W, overwrite, packing)  X̄ = Ȳ W or X̄ += Ȳ W
///     multiply_weights(Ȳ, {W̄ᵢ, Xᵢ}, packing)      W̄ᵢ += Ȳᵀ Xᵢ, of any number of parts
///     packing_size<T>(r, n, k)           numbers of `packing`, memory that these products would otherwise take from the heap;
///                                        as `packed` it begins a cache line
///     multiply_packed(Y, X, W, overwrite), multiply_back_packed(X̄, Ȳ, W, overwrite)
///                                        the same for one tile of rows, with what pack(W, packed) or pack_back(W, packed)
///                                        has made of W once for all tokens, and pack_rows(X, packed) of X once for all maps
///     packed_size<T>(n, k)               numbers of `packed`, for W [n,k] or n rows of k; 0 when that would be of no use
///     for_each(n, body)                  body(i) or body(i, thread) for i in [0,n), thread in [0,min(n, threads()))
///     threads()                          that a loop runs on at most
template <class B, class T>
concept backend_for = requires(B& backend, matrix<T> y, matrix<const T> x, std::span<const weights_part<T>> parts,
                               index n, view<T> packing, T* packed) {
    requires team_of<typename B::template team<T>, T>;
    { B::tile } -> std::convertible_to<index>;
    B::multiply(y, x, x, true, packing);
    B::multiply_back(y, x, x, true, packing);
    B::multiply_weights(x, parts, packing);
    { B::template packing_size<T>(n, n, n) } -> std::convertible_to<index>;
    B::pack(x, packed);
    B::pack_back(x, packed);
    B::pack_rows(x, packed);
    B::multiply_packed(y, packed_matrix<T>{x, packed}, packed_matrix<T>{x, packed}, true);
    B::multiply_back_packed(y, packed_matrix<T>{x, packed}, packed_matrix<T>{x, packed}, true);
    { B::template packed_size<T>(n, n) } -> std::convertible_to<index>;
    backend.for_each(n, [](index) {});
    backend.for_each(n, [](index, index) {});
    { backend.threads() } -> std::convertible_to<index>;
};

}  // namespace fprnn
