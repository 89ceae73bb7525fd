#pragma once

#include <fprnn/tape/tape.hpp>
#include <fprnn/train/ranks.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

/// Sequences whose tokens lie on consecutive ranks, on the tape: a rank records its own tokens, from the
/// carry that the rank before hands on, and hands its own carry on to the next. Memory is that of a rank's
/// tokens. A rank waits for the one before it; where a batch is recorded in several parts, they work at the
/// same time on different ones.
///
///     const variable before = mpi::receive_carry(all, tape, {B, layer.carry_width(sizes)});
///     const auto [y, carry] = layer(tape, sizes, prefix, x, before);
///     mpi::hand_on(all, tape, carry);
///     tape.back(loss);                      // of this rank's tokens; the losses of all ranks add up
///     mpi::sum(all, std::span(gradient));   // of all tokens, on every rank
namespace fprnn::mpi {

/// The carry before this rank's tokens: zero on rank 0, on others what rank − 1 hands on, to which its
/// cotangent goes back. `extents` are those of the carry on every rank.
template <class T, host_memory_backend<T> Backend>
variable receive_carry(ranks& all, tape<T, Backend, T>& t, shape extents) {
    auto carry = t.make(extents);
    if (all.rank() == 0) return t.leaf(std::move(carry));
    all.receive(std::as_writable_bytes(std::span(carry.begin(), carry.end())), all.rank() - 1);
    return t.record(std::move(carry), [&all](tape<T, Backend, T>& tp, variable self) {
        const auto& bar = tp.bar(self);
        all.send(std::as_bytes(std::span(bar.begin(), bar.end())), all.rank() - 1);
    });
}

/// Hands a carry on to rank + 1, whose receive_carry takes it, and takes its cotangent back. On the last rank
/// nothing.
template <class T, host_memory_backend<T> Backend>
void hand_on(ranks& all, tape<T, Backend, T>& t, variable carry) {
    if (all.rank() + 1 == all.size()) return;
    const auto& value = t.value(carry);
    all.send(std::as_bytes(std::span(value.begin(), value.end())), all.rank() + 1);
    t.record(t.make({1}), [&all, carry](tape<T, Backend, T>& tp, variable) {
        auto& bar = tp.bar(carry);
        std::vector<T> of_next(static_cast<std::size_t>(bar.size()));
        all.receive(std::as_writable_bytes(std::span(of_next)), all.rank() + 1);
        std::transform(of_next.begin(), of_next.end(), bar.begin(), bar.begin(), [](T a, T b) { return a + b; });
    });
}

namespace detail {
/// Of ranks first … last − 1, on rank `first`: pairwise.
template <class T>
void sum_of_ranks(ranks& all, std::span<T> numbers, std::vector<T>& other, index first, index last) {
    if (last - first == 1) return;
    const index middle = first + (last - first) / 2, me = all.rank();
    if (me < middle)
        sum_of_ranks(all, numbers, other, first, middle);
    else
        sum_of_ranks(all, numbers, other, middle, last);
    if (me == middle) all.send(std::as_bytes(numbers), first);
    if (me == first) {
        all.receive(std::as_writable_bytes(std::span(other)), middle);
        std::transform(numbers.begin(), numbers.end(), other.begin(), numbers.begin(), [](T a, T b) { return a + b; });
    }
}
}  // namespace detail

/// Overwrites the numbers, as many on every rank, with their sums over the ranks, which have the same bits
/// everywhere and in every run.
template <class T>
void sum(ranks& all, std::span<T> numbers) {
    std::vector<T> other(numbers.size());
    detail::sum_of_ranks(all, numbers, other, 0, all.size());
    all.broadcast(std::as_writable_bytes(numbers));
}

}  // namespace fprnn::mpi
