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

/// Rows of numbers that are `stride` apart: one that all share with a stride of 0, none where `data` is null.
template <class T>
struct strided {
    T* data = nullptr;
    index stride = 0;

    FPRNN_BOTH T* operator[](index row) const { return data ? data + row * stride : nullptr; }
    template <class U>
        requires(std::is_same_v<U, const T> && !std::is_const_v<T>)
    FPRNN_BOTH operator strided<U>() const { return {data, stride}; }
};

namespace detail {

// What concepts call, by name: nvcc takes no generic lambda in a requirement.
template <class T>
struct store_what_is_loaded {
    template <class Lane>
    void operator()(Lane lane) const {
        lane.prefetch(static_cast<const T*>(nullptr));
        lane.store(static_cast<T*>(nullptr), lane.load(static_cast<const T*>(nullptr)));
    }
};
template <class T>
struct load {
    template <class Lane>
    auto operator()(Lane lane) const {
        return lane.load(static_cast<const T*>(nullptr));
    }
};
template <class T>
struct load_one {
    template <class Lane>
    auto operator()(Lane lane) const {
        return small_array{lane.load(static_cast<const T*>(nullptr))};
    }
};
struct nothing {
    void operator()() const {}
};
struct loop_body {
    void operator()(index, index) const {}
};
struct row_body {
    template <class Team>
    void row(index, index) const {}
};

}  // namespace detail

/// Where bodies of rows add to: rows of their own, or what belongs to whoever works on a row.
template <class T>
struct receiver {
    strided<T> rows;
    bool of_worker = false;

    FPRNN_BOTH T* at(index row, index worker) const { return rows[of_worker ? worker : row]; }
};

/// A team executes one row of channels together: on the CPU a loop over packs, on a GPU a block of threads.
/// Kernel bodies are written once against it; a body receives a lane, which loads and stores its share of the
/// channels and may prefetch(p) what it will load soon.
///
///     team::each(D, body)       body(lane) for all channels
///     team::sum<K>(D, body)     K sums over the channels of what body(lane) returns, in a fixed order
///     team::max(D, body)        the largest; NaN when one of them is not finite, −∞ when there are none
///     team::once(body)          body() a single time, when all have come so far, and all go on when it is
///                               done: what is written of a row that is not a channel's
template <class Team, class T>
concept team_of = requires(index n, detail::store_what_is_loaded<T> store, detail::load<T> load,
                           detail::load_one<T> load_one, detail::nothing nothing) {
    Team::each(n, store);
    { Team::template sum<1>(n, load_one)[0] } -> std::convertible_to<T>;
    { Team::max(n, load) } -> std::convertible_to<T>;
    Team::once(nothing);
};

/// The row p of D numbers, which a body reads more than once, for lanes to load from: p itself, or what a
/// team has read of it into registers.
template <class Team, class T>
FPRNN_BOTH auto held(index D, const T* p) {
    if constexpr (requires { Team::held(D, p); })
        return Team::held(D, p);
    else
        return p;
}
/// Room for a row of D numbers that nobody but this body reads, for lanes to store and load: p itself, or
/// registers of a team.
template <class Team, class T>
FPRNN_BOTH auto room(index D, T* p) {
    if constexpr (requires { Team::room(D, p); })
        return Team::room(D, p);
    else
        return p;
}
/// Bodies that do so with rows of `channels` numbers say that they do.
template <class Body>
concept holds_rows = requires(const Body& body) {
    requires Body::holds;
    { body.channels } -> std::convertible_to<index>;
};

/// Whether a machine stores sequences as X whose numbers are T: as themselves, or in a shorter type that it
/// names.
template <class X, class T, class Backend>
consteval bool may_store() {
    if constexpr (requires { typename Backend::template computed_in<X>; })
        return std::is_same_v<typename Backend::template computed_in<X>, T>;
    else
        return std::is_same_v<X, T>;
}

/// How a training or an evaluation stores sequences between layers: as X. The default is what its parameters
/// are; a backend may have a shorter type.
template <class X>
struct sequences_as {};

/// What the library knows of a machine. `tile` sequences are worked on together: a token's bits then depend
/// neither on the number of threads nor on the other sequences of the batch, because every product has the
/// same number of rows and every tile is processed in one fixed order. A machine with `products_are_by_row`
/// says that a row of a smaller product has the same bits: a small batch then has a small tile. A machine
/// without `tile` takes a whole batch at a time. Where a batch is one tile, threads share its rows and
/// channels on the way forward, in pieces that change no bit.
///
/// Tiles, on the threads of the host:
///     for_each(n, body)                  body(i) or body(i, thread) for i in [0,n), where 0 ≤ thread <
///                                        min(n, threads())
///     threads()                          that a loop runs on at most
///
/// What happens in a tile, in the order in which it is called:
///     rows<T>(n, body)                   body.row<Team>(i, worker) for every row i in [0,n), a team a row;
///                                        `worker`, below workers(n), is no other row's at that time, and has
///                                        scratch of its own
///     row<T>(body)                       body.row<Team>(0, 0) of one long row, which all teams share: each()
///                                        alone may be called, and a thread owns the same channels in all of
///                                        them
///     row_sums<T> s(backend, n, width, to)   what bodies of n rows add to the receiver s.into [width],
///                                            s.finish() adds to `to`; a null
///                                        `to` receives nothing
///     pass(tokens, sizes, calls)         runs calls(), a loop over tokens one by one. A backend may record
///                                        what they launch under their type and `sizes`, and replay it with
///                                        other addresses and numbers. After a recording that failed calls()
///                                        runs again from its start; launches that have been executed are
///                                        then skipped
///     by_rows(n, calls)                  calls(), in which row after row may go through all of what is
///                                        called, instead of call after call for all rows: what happens in
///                                        row i of rows(n, ·) touches no other row, and what is called by
///                                        row, copy and fill has n rows of equal parts. Products, seen and
///                                        any() come in between, sums over n rows may arrive in the end. What
///                                        calls use has to last until then
///     repeat(n, running, calls)          calls() until running[i] is zero for all rows, which it sets; rows
///                                        that are done may go through it, too, and what it called once may
///                                        happen again without calling it
///     repeat_by_rows(n, running, calls)  the same within by_rows(n, ·), where row i may be done before
///                                        others begin, and nothing may come in between
///     at_once(calls)                     calls(), of which either all happens or, where something throws,
///                                        nothing, as far as the backend can take it back
///     copy(n, from, to), fill(n, to, value)
///     put(n, from, to)                   numbers of the host, which may change when this returns
///     seen(n, from)                      from[i] as the host sees it, when all that was called has happened;
///                                        of any type of bytes
///     any<T>(n, flags)                   whether one of them is not zero
/// A body is an aggregate of pointers and numbers, without the names of an expression in its type.
///
///     multiply(Y, X, W, overwrite, packing)       Y = X Wᵀ or Y += X Wᵀ        X [r,k], W [n,k], Y [r,n]
///     multiply_back(X̄, Ȳ, W, overwrite, packing)  X̄ = Ȳ W or X̄ += Ȳ W
///     multiply_weights(Ȳ, {W̄ᵢ, Xᵢ}, packing)      W̄ᵢ += Ȳᵀ Xᵢ, of any number of parts
///     packing_size<T>(r, n, k)           numbers of `packing`, memory that these products would otherwise
///                                        take from the heap; as `packed` it begins a cache line
///     multiply_packed(Y, X, W, overwrite), multiply_back_packed(X̄, Ȳ, W, overwrite)
///                                        the same for one tile of rows, with what pack(W, packed) or
///                                        pack_back(W, packed) has made of W once for all tokens, and
///                                        pack_rows(X, packed) of X once for all maps
///     packed_size<T>(n, k)               numbers of `packed`, for W [n,k] or n rows of k; 0 when that would
///                                        be of no use
///
/// Memory: memory<T>(backend, n) has n numbers at data(), not initialised, until it ends; array<T> is what
/// the machine's tensors are, which assign(array, shape) makes zeros of that shape. Where array<T> is not
/// tensor<T>, memory is the backend's own, and its headers say what the host's do for others:
/// detail::arguments and detail::eager (ops/rows.hpp), detail::embedding_rows, detail::cross_entropy_rows,
/// parameters_on, gradient_on and detail::updates_on are specialised; Backend::planning
/// (operations/table.hpp) and Backend::layer_calls (fixed_point/layer.hpp) are what it does differently with
/// expressions and with layer(theta, x, backend).
template <class B, class T>
concept backend_for = requires(B& backend, matrix<T> y, matrix<const T> x, std::span<const weights_part<T>> parts,
                               index n, view<T> packing, T* to, const T* from, detail::row_body body,
                               detail::nothing nothing, typename B::template row_sums<T>& sums,
                               typename B::template memory<T>& memory, typename B::template array<T>& array) {
    requires team_of<typename B::template team<T>, T>;
    backend.for_each(n, detail::loop_body{});
    { backend.threads() } -> std::convertible_to<index>;
    backend.template rows<T>(n, body);
    backend.template row<T>(body);
    { sums.into } -> std::convertible_to<receiver<T>>;
    sums.finish();
    backend.pass(n, std::span<const index>(), nothing);
    backend.by_rows(n, nothing);
    backend.repeat(n, from, nothing);
    backend.repeat_by_rows(n, from, nothing);
    backend.at_once(nothing);
    { backend.workers(n) } -> std::convertible_to<index>;
    backend.copy(n, from, to);
    backend.fill(n, to, T(0));
    backend.put(n, from, to);
    { backend.seen(n, from)[0] } -> std::convertible_to<T>;
    { backend.template any<T>(n, from) } -> std::convertible_to<bool>;
    backend.multiply(y, x, x, true, packing);
    backend.multiply_back(y, x, x, true, packing);
    backend.multiply_weights(x, parts, packing);
    { backend.template packing_size<T>(n, n, n) } -> std::convertible_to<index>;
    backend.pack(x, to);
    backend.pack_back(x, to);
    backend.pack_rows(x, to);
    backend.multiply_packed(y, packed_matrix<T>{x, to}, packed_matrix<T>{x, to}, true);
    backend.multiply_back_packed(y, packed_matrix<T>{x, to}, packed_matrix<T>{x, to}, true);
    { backend.template packed_size<T>(n, n) } -> std::convertible_to<index>;
    { memory.data() } -> std::convertible_to<T*>;
    backend.assign(array, shape{n});
};

/// What backends inherit whose products pack nothing beforehand.
template <class Backend>
struct without_packing {
    friend bool operator==(const without_packing&, const without_packing&) = default;

    template <class T>
    static constexpr index packing_size(index, index, index) {
        return 0;
    }
    template <class T>
    static constexpr index packed_size(index, index) {
        return 0;
    }
    template <class T>
    static void pack(matrix<const T>, T*) {}
    template <class T>
    static void pack_back(matrix<const T>, T*) {}
    template <class T>
    static void pack_rows(matrix<const T>, T*) {}
    template <class T>
    void multiply_packed(matrix<T> y, packed_matrix<T> x, packed_matrix<T> w, bool overwrite) const {
        static_cast<const Backend&>(*this).multiply(y, x.plain, w.plain, overwrite);
    }
    template <class T>
    void multiply_back_packed(matrix<T> x_bar, packed_matrix<T> y_bar, packed_matrix<T> w, bool overwrite) const {
        static_cast<const Backend&>(*this).multiply_back(x_bar, y_bar.plain, w.plain, overwrite);
    }
};

}  // namespace fprnn
