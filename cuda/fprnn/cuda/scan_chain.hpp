#pragma once

#include <fprnn/backend/backend.hpp>
#include <fprnn/ops/chain.hpp>
#include <fprnn/ops/selective_scan_kernel.hpp>

#include <cstddef>
#include <utility>

/// Elementwise chains in the kernel of a selective scan (see fprnn/cuda/scan_chains.hpp).
namespace fprnn::kernel {

/// Where a chain in a scan's body has an argument: it is the scan's value, or its input u, or of a vector
/// that all tokens share, or of rows like u's.
enum class operand { scan, input, vector, rows };

/// The arguments of a chain in a scan of T, as many as there are places that they come From.
template <class T, operand... From>
struct chain_operands {
    static constexpr bool is_chain = true;
    static constexpr std::size_t size = sizeof...(From);
    small_array<strided<const T>, size> a;

    /// body(k) for the arguments that come from there.
    template <operand Where, class Body>
    FPRNN_BOTH static void each(Body&& body) {
        const auto unpacked = [&]<std::size_t... k>(std::index_sequence<k...>) {
            ((From == Where ? body(k) : void()), ...);
        };
        unpacked(std::make_index_sequence<size>{});
    }
    /// Of token t of sequence s.
    FPRNN_BOTH small_array<const T*, size> at(const selective_scan_shape& shape, index s, index t) const {
        small_array<const T*, size> there;
        each<operand::vector>([&](std::size_t k) { there[k] = a[k].data; });
        const auto in_row = [&](std::size_t k) { there[k] = a[k][s] + t * shape.stride; };
        each<operand::scan>(in_row), each<operand::input>(in_row), each<operand::rows>(in_row);
        return there;
    }

    /// In registers: the arguments that are vectors or rows, of a channel.
    FPRNN_BOTH void load_vectors(index channel, T (&x)[size]) const {
        each<operand::vector>([&](std::size_t k) { x[k] = a[k].data[channel]; });
    }
    FPRNN_BOTH void load_rows(index at, T (&x)[size]) const {
        each<operand::rows>([&](std::size_t k) { x[k] = a[k].data[at]; });
    }
    /// All of them, of a scan's value y and its input u.
    template <class S>
    FPRNN_BOTH static void gather(const T (&vectors)[size], const T (&rows)[size], S y, S u, S (&x)[size]) {
        each<operand::scan>([&](std::size_t k) { x[k] = y; });
        each<operand::input>([&](std::size_t k) { x[k] = u; });
        each<operand::vector>([&](std::size_t k) { x[k] = static_cast<S>(vectors[k]); });
        each<operand::rows>([&](std::size_t k) { x[k] = static_cast<S>(rows[k]); });
    }
};

/// to = F(a[0], a[1], …) of a scan's tokens, evaluated where it scans.
template <class F, class T, operand... From>
struct chain_of_scan : chain_operands<T, From...> {
    using operands = chain_operands<T, From...>;
    strided<T> to;
    bool is_read = true;  ///< by others than the scan

    /// Of sequence s, token after token in memory.
    template <class Team>
    FPRNN_BOTH void row(const selective_scan_shape& shape, index s) const {
        for (index t = 0; t < shape.tokens; ++t)
            chain::row<F, Team, operands::size, T>(shape.channels, this->at(shape, s, t), to[s] + t * shape.stride);
    }
    template <class S>
    FPRNN_BOTH static S value(const T (&vectors)[operands::size], const T (&rows)[operands::size], S y, S u) {
        S x[operands::size];
        operands::gather(vectors, rows, y, u, x);
        return F::value(static_cast<const S*>(x));
    }
};

template <class S>
struct received_by_scan {
    S value, input;
};

/// Its adjoint: ā[k] += (∂F/∂a[k]) ⊙ bar, or = where flag k of Stores is set, where somebody asks for it.
template <class F, class T, class Stores, operand... From>
struct chain_of_scan_back;
template <class F, class T, bool... Stores, operand... From>
struct chain_of_scan_back<F, T, std::integer_sequence<bool, Stores...>, From...> : chain_operands<T, From...> {
    using operands = chain_operands<T, From...>;
    strided<const T> bar;
    small_array<receiver<T>, operands::size> a_bar;

    /// Whether what the operand from Where receives is the first that it does.
    template <operand Where>
    static constexpr bool stores_to = ((From == Where && Stores) || ...);

    template <class Team>
    FPRNN_BOTH void row(const selective_scan_shape& shape, index s, index worker) const {
        for (index t = 0; t < shape.tokens; ++t) {
            small_array<T*, operands::size> to;
            operands::template each<operand::vector>([&](std::size_t k) { to[k] = a_bar[k].at(s, worker); });
            const auto in_row = [&](std::size_t k) {
                T* rows = a_bar[k].at(s, worker);
                to[k] = rows ? rows + t * shape.stride : nullptr;
            };
            operands::template each<operand::scan>(in_row), operands::template each<operand::input>(in_row);
            operands::template each<operand::rows>(in_row);
            chain::row_back<F, Team, operands::size, T, Stores...>(shape.channels, this->at(shape, s, t),
                                                                   bar[s] + t * shape.stride, to);
        }
    }
    /// In registers, a channel of a token, whose number in rows is `at`: sends what rows receive of g, and
    /// adds what vectors do to to_vectors. Returns what the scan's value and its input u receive.
    template <class S>
    FPRNN_BOTH received_by_scan<S> back_at(index at, const T (&vectors)[operands::size], S u, S g,
                                           S (&to_vectors)[operands::size]) const {
        constexpr bool stores[] = {Stores...};
        T rows[operands::size];
        S y = S(0), x[operands::size], sent[operands::size] = {};
        this->load_rows(at, rows);
        operands::template each<operand::scan>([&](std::size_t k) { y = static_cast<S>(this->a[k].data[at]); });
        operands::gather(vectors, rows, y, u, x);
        F::back(static_cast<const S*>(x), g, static_cast<S*>(sent));
        operands::template each<operand::rows>([&](std::size_t k) {
            T* const to = a_bar[k].rows.data;
            if (!to) return;
            to[at] = static_cast<T>(stores[k] ? sent[k] : static_cast<S>(to[at]) + sent[k]);
        });
        operands::template each<operand::vector>([&](std::size_t k) { to_vectors[k] += sent[k]; });
        received_by_scan<S> received{S(0), S(0)};
        operands::template each<operand::scan>([&](std::size_t k) { received.value += sent[k]; });
        operands::template each<operand::input>([&](std::size_t k) { received.input += sent[k]; });
        return received;
    }
    /// Adds what vectors have received in all to the worker's sums.
    template <class S>
    FPRNN_BOTH void send_vectors(index worker, index channel, const S (&sent)[operands::size]) const {
        operands::template each<operand::vector>([&](std::size_t k) {
            if (T* const to = a_bar[k].at(0, worker))
                to[channel] = static_cast<T>(static_cast<S>(to[channel]) + sent[k]);
        });
    }
};

template <class T>
struct no_chain {
    static constexpr bool is_chain = false;
    static constexpr std::size_t size = 1;

    template <class Team>
    FPRNN_BOTH void row(const selective_scan_shape&, index) const {}
    template <class Team>
    FPRNN_BOTH void row(const selective_scan_shape&, index, index) const {}
    FPRNN_BOTH void load_vectors(index, T (&)[1]) const {}
    FPRNN_BOTH void load_rows(index, T (&)[1]) const {}
    template <class S>
    FPRNN_BOTH void send_vectors(index, index, const S (&)[1]) const {}
};

}  // namespace fprnn::kernel
