#pragma once

#include <fprnn/backend/backend.hpp>
#include <fprnn/ops/elementwise.hpp>
#include <fprnn/ops/selective_scan_kernel.hpp>

#include <cstddef>
#include <utility>

/// Elementwise chains in the kernel of a selective scan (see fprnn/program/rules/scan_chains.hpp).
namespace fprnn::kernel {

/// Where a chain in a scan's body has an argument: it is the scan's value, or its input u, or of a vector that all tokens share, or of rows
/// like u's.
enum class operand { scan, input, vector, rows };

/// to = F(a[0], a[1], …) of a scan's tokens, evaluated where it scans.
template <class F, class T, operand... From>
struct chain_of_scan {
    static constexpr bool is_chain = true;
    static constexpr std::size_t size = sizeof...(From);
    small_array<strided<const T>, size> a;
    strided<T> to;
    bool is_read = true;  ///< by others than the scan

    /// body(k) for the arguments that come from there.
    template <operand Where, class Body>
    FPRNN_BOTH static void each(Body&& body) {
        const auto unpacked = [&]<std::size_t... k>(std::index_sequence<k...>) {
            ((From == Where ? body(k) : void()), ...);
        };
        unpacked(std::make_index_sequence<size>{});
    }

    /// Of sequence s, token after token in memory.
    template <class Team>
    FPRNN_BOTH void row(const selective_scan_shape& shape, index s) const {
        for (index t = 0; t < shape.tokens; ++t) {
            small_array<const T*, size> at;
            each<operand::vector>([&](std::size_t k) { at[k] = a[k].data; });
            const auto in_row = [&](std::size_t k) { at[k] = a[k][s] + t * shape.stride; };
            each<operand::scan>(in_row), each<operand::input>(in_row), each<operand::rows>(in_row);
            chain::row<F, Team, size, T>(shape.channels, at, to[s] + t * shape.stride);
        }
    }

    /// In registers: the arguments that are vectors or rows, of a channel.
    FPRNN_BOTH void load_vectors(index channel, T (&x)[size]) const {
        each<operand::vector>([&](std::size_t k) { x[k] = a[k].data[channel]; });
    }
    FPRNN_BOTH void load_rows(index at, T (&x)[size]) const {
        each<operand::rows>([&](std::size_t k) { x[k] = a[k].data[at]; });
    }
    template <class S>
    FPRNN_BOTH static S value(const T (&vectors)[size], const T (&rows)[size], S y, S u) {
        S x[size];
        each<operand::scan>([&](std::size_t k) { x[k] = y; });
        each<operand::input>([&](std::size_t k) { x[k] = u; });
        each<operand::vector>([&](std::size_t k) { x[k] = static_cast<S>(vectors[k]); });
        each<operand::rows>([&](std::size_t k) { x[k] = static_cast<S>(rows[k]); });
        return F::value(static_cast<const S*>(x));
    }
};

template <class T>
struct no_chain {
    static constexpr bool is_chain = false;
    static constexpr std::size_t size = 1;

    template <class Team>
    FPRNN_BOTH void row(const selective_scan_shape&, index) const {}
    FPRNN_BOTH void load_vectors(index, T (&)[1]) const {}
    FPRNN_BOTH void load_rows(index, T (&)[1]) const {}
};

}  // namespace fprnn::kernel
