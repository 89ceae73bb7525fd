#pragma once

#include <fprnn/backend/backend.hpp>
#include <fprnn/core/arena.hpp>
#include <fprnn/graph/node.hpp>

namespace fprnn {

template <class T, class Backend>
class frame;

/// How the nodes of one kind are evaluated and differentiated on a backend: an object without state, which knows no expression. What
/// it knows of a node is in the frame's graph, what it keeps of one is in the frame.
///
/// `s` is the node; `row` and `n` are rows of its tile, row t·tile + q of token t of sequence q.
template <class T, class Backend>
struct operation {
    using frame = fprnn::frame<T, Backend>;
    using slot = graph::slot;

    /// Values are kept from forward to backward, because they are expensive to compute.
    virtual constexpr bool keeps_values() const { return false; }
    /// hoist_back or end_back read the cotangents of all rows.
    virtual constexpr bool keeps_cotangents() const { return false; }

    /// Lays out the node's own memory (frame::make): `kept` survives until the backward pass.
    virtual void lay_out(frame&, slot /*s*/, arena<T>& /*scratch*/, arena<T>& /*kept*/) const {}
    /// Numbers that the node's matrix products need to pack their operands into.
    virtual index packing_size(const frame&, slot /*s*/) const { return 0; }
    /// Before the first token of a pass; `carry` [tile, carry] is what the last call left, in a backward pass the cotangent of what
    /// this one has left, null where it is zero.
    virtual void begin(frame&, slot /*s*/, const T* /*carry*/) const {}
    /// After the last token: fills `carry` of a node that has one, in a backward pass with the cotangent of what the last call left.
    virtual void end(frame&, slot /*s*/, T* /*carry*/) const {}

    /// Parts that depend on x alone, for all tokens, of a node that depends on more; and its adjoint.
    virtual void hoist(frame&, slot /*s*/) const {}
    virtual void hoist_back(frame&, slot /*s*/) const {}
    /// Rows of a chunk, of which the operands outside of the innermost loop are ready; and its adjoint.
    virtual void open(frame&, slot /*s*/, index /*row*/, index /*n*/) const {}
    virtual void open_back(frame&, slot /*s*/, index /*row*/, index /*n*/) const {}
    /// The chunk has been solved.
    virtual void close(frame&, slot /*s*/, index /*row*/, index /*n*/) const {}

    virtual void value(frame&, slot /*s*/, index /*row*/, index /*n*/) const {}
    /// Adds to the cotangents of operands; those that depend on less than `reach` receive nothing, and parameters receive only where
    /// it is dependence::input.
    virtual void back(frame&, slot /*s*/, index /*row*/, index /*n*/, dependence /*reach*/) const {}
    /// Before the adjoint of the iteration, and after those of what reads y*.
    virtual void begin_adjoint(frame&, slot /*s*/) const {}
    /// What the chunk that begins at `row` sends to the chunk before it, or to the call before.
    virtual void pass_to_chunk_before(frame&, slot /*s*/, index /*row*/) const {}
    /// After all tokens of a backward pass: what is formed once, from all rows.
    virtual void end_back(frame&, slot /*s*/) const {}

    /// Around the iterations of a chunk when the backward pass goes through each of them.
    virtual void before_unrolled_chunk(frame&, slot /*s*/) const {}
    virtual void after_unrolled_step(frame&, slot /*s*/, index /*row*/, index /*n*/) const {}
    virtual void after_unrolled_chunk(frame&, slot /*s*/, index /*row*/, index /*n*/) const {}

protected:
    ~operation() = default;
};

/// The one object of a type without state.
template <class Operation>
inline constexpr Operation instance{};

}  // namespace fprnn
