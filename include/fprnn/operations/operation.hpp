#pragma once

#include <fprnn/backend/backend.hpp>
#include <fprnn/core/arena.hpp>
#include <fprnn/graph/node.hpp>

#include <type_traits>

namespace fprnn {

template <class T, class Backend>
class frame;

/// How the nodes of one kind are evaluated and differentiated on a backend: a struct that knows no
/// expression, and inherits these functions, which do nothing, and the names. It says what is different by
/// functions of the same names and arguments. What it knows of a node is in the frame's graph, what it keeps
/// of one is in the frame (frame::make, frame::own).
///
/// `s` is the node; `row` and `n` are rows of its tile, row t·tile + q of token t of sequence q.
template <class T, class Backend>
struct operation_on {
    using frame = fprnn::frame<T, Backend>;
    using slot = graph::slot;

    /// Values are kept from forward to backward, because they are expensive to compute.
    static constexpr bool keeps_values = false;
    /// hoist_back or end_back read the cotangents of all rows.
    static constexpr bool keeps_cotangents = false;
    /// Values of a row are made of its own operands, so that blocks of rows may be evaluated side by side.
    static constexpr bool is_by_row = true;

    /// Lays out the node's own memory: `kept` survives until the backward pass.
    void lay_out(frame&, slot /*s*/, arena<T>& /*scratch*/, arena<T>& /*kept*/) const {}
    /// Numbers that the node's matrix products need to pack their operands into.
    index packing_size(const frame&, slot /*s*/) const { return 0; }
    /// Before the first token of a pass; `carry` [tile, carry] is what the last call left, in a backward pass
    /// the cotangent of what this one has left, null where it is zero.
    void begin(frame&, slot /*s*/, const T* /*carry*/) const {}
    /// After the last token: fills `carry` of a node that has one, in a backward pass with the cotangent of
    /// what the last call left. Where begin had one, it is the same memory with the same numbers.
    void end(frame&, slot /*s*/, T* /*carry*/) const {}

    /// Parts that depend on x alone, for all tokens, of a node that depends on more.
    void hoist(frame&, slot /*s*/) const {}
    /// Rows of a chunk, of which the operands outside of the innermost loop are ready.
    void open(frame&, slot /*s*/, index /*row*/, index /*n*/) const {}
    void value(frame&, slot /*s*/, index /*row*/, index /*n*/) const {}
    /// The chunk has been solved.
    void close(frame&, slot /*s*/, index /*row*/, index /*n*/) const {}

    /// Before the adjoint of the iteration, and after those of what reads y*.
    void begin_adjoint(frame&, slot /*s*/) const {}
    /// The adjoints of open and of hoist.
    void open_back(frame&, slot /*s*/, index /*row*/, index /*n*/) const {}
    void hoist_back(frame&, slot /*s*/) const {}
    /// Adds to the cotangents of operands; those that depend on less than `reach` receive nothing, and
    /// parameters receive only where it is dependence::input.
    void back(frame&, slot /*s*/, index /*row*/, index /*n*/, dependence /*reach*/) const {}
    /// What the chunk that begins at `row` sends to the chunk before it, or to the call before.
    void pass_to_chunk_before(frame&, slot /*s*/, index /*row*/) const {}
    /// After all tokens of a backward pass: what is formed once, from all rows.
    void end_back(frame&, slot /*s*/) const {}

    /// Around the iterations of a chunk when the backward pass goes through each of them.
    void before_unrolled_chunk(frame&, slot /*s*/) const {}
    void after_unrolled_step(frame&, slot /*s*/, index /*row*/, index /*n*/) const {}
    void after_unrolled_chunk(frame&, slot /*s*/, index /*row*/, index /*n*/) const {}
};

/// An operation_on as the engine calls it. What belongs to the adjoint does nothing in a program that goes
/// forward alone.
template <class T, class Backend>
struct operation {
    using frame = fprnn::frame<T, Backend>;
    using slot = graph::slot;

    bool keeps_values, keeps_cotangents, is_by_row;

    constexpr operation(bool values, bool cotangents, bool by_row)
        : keeps_values(values), keeps_cotangents(cotangents), is_by_row(by_row) {}
    virtual void lay_out(frame&, slot s, arena<T>& scratch, arena<T>& kept) const = 0;
    virtual index packing_size(const frame&, slot s) const = 0;
    virtual void begin(frame&, slot s, const T* carry) const = 0;
    virtual void end(frame&, slot s, T* carry) const = 0;
    virtual void hoist(frame&, slot s) const = 0;
    virtual void open(frame&, slot s, index row, index n) const = 0;
    virtual void value(frame&, slot s, index row, index n) const = 0;
    virtual void close(frame&, slot s, index row, index n) const = 0;
    virtual void begin_adjoint(frame&, slot) const {}
    virtual void open_back(frame&, slot, index /*row*/, index /*n*/) const {}
    virtual void hoist_back(frame&, slot) const {}
    virtual void back(frame&, slot, index /*row*/, index /*n*/, dependence /*reach*/) const {}
    virtual void pass_to_chunk_before(frame&, slot, index /*row*/) const {}
    virtual void end_back(frame&, slot) const {}
    virtual void before_unrolled_chunk(frame&, slot) const {}
    virtual void after_unrolled_step(frame&, slot, index /*row*/, index /*n*/) const {}
    virtual void after_unrolled_chunk(frame&, slot, index /*row*/, index /*n*/) const {}

protected:
    ~operation() = default;
};

/// Op as an object, without its adjoint, which a program that goes forward alone then does not compile.
template <class Op, class T, class Backend>
struct forward_operation : operation<T, Backend> {
    using typename operation<T, Backend>::frame, typename operation<T, Backend>::slot;

    constexpr explicit forward_operation(Op o = {})
        : operation<T, Backend>(Op::keeps_values, Op::keeps_cotangents, Op::is_by_row), op(o) {}

    void lay_out(frame& f, slot s, arena<T>& scratch, arena<T>& kept) const override {
        op.lay_out(f, s, scratch, kept);
    }
    index packing_size(const frame& f, slot s) const override { return op.packing_size(f, s); }
    void begin(frame& f, slot s, const T* carry) const override { op.begin(f, s, carry); }
    void end(frame& f, slot s, T* carry) const override { op.end(f, s, carry); }
    void hoist(frame& f, slot s) const override { op.hoist(f, s); }
    void open(frame& f, slot s, index row, index n) const override { op.open(f, s, row, n); }
    void value(frame& f, slot s, index row, index n) const override { op.value(f, s, row, n); }
    void close(frame& f, slot s, index row, index n) const override { op.close(f, s, row, n); }

    [[no_unique_address]] Op op;
};
/// The same with its adjoint. What goes forward is compiled once for both.
template <class Op, class T, class Backend>
struct differentiated_operation final : forward_operation<Op, T, Backend> {
    using typename operation<T, Backend>::frame, typename operation<T, Backend>::slot;
    using forward_operation<Op, T, Backend>::forward_operation, forward_operation<Op, T, Backend>::op;

    void begin_adjoint(frame& f, slot s) const override { op.begin_adjoint(f, s); }
    void open_back(frame& f, slot s, index row, index n) const override { op.open_back(f, s, row, n); }
    void hoist_back(frame& f, slot s) const override { op.hoist_back(f, s); }
    void back(frame& f, slot s, index row, index n, dependence reach) const override { op.back(f, s, row, n, reach); }
    void pass_to_chunk_before(frame& f, slot s, index row) const override { op.pass_to_chunk_before(f, s, row); }
    void end_back(frame& f, slot s) const override { op.end_back(f, s); }
    void before_unrolled_chunk(frame& f, slot s) const override { op.before_unrolled_chunk(f, s); }
    void after_unrolled_step(frame& f, slot s, index row, index n) const override {
        op.after_unrolled_step(f, s, row, n);
    }
    void after_unrolled_chunk(frame& f, slot s, index row, index n) const override {
        op.after_unrolled_chunk(f, s, row, n);
    }
};
template <class Op, class T, class Backend, bool Adjoint>
using operation_object =
    std::conditional_t<Adjoint, differentiated_operation<Op, T, Backend>, forward_operation<Op, T, Backend>>;

/// The one object of a type without state.
template <class Operation>
inline constexpr Operation instance{};

}  // namespace fprnn
