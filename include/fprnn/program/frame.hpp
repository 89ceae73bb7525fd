#pragma once

#include <fprnn/backend/backend.hpp>
#include <fprnn/core/arena.hpp>
#include <fprnn/ops/bodies.hpp>
#include <fprnn/program/lowering.hpp>
#include <fprnn/program/work.hpp>

#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

namespace fprnn {

/// How a node is evaluated and differentiated: specialised for every kind of node in program/rules.hpp.
template <class E>
struct rule;

/// Whether P is the first to write to E's cotangents and overwrites them, which have not been cleared. Those of a vector that all tokens
/// share are sums and never overwritten.
template <class Program, class P, class E>
inline constexpr bool stores =
    !rule<E>::broadcast && first_writer<Program, E> == Program::template slot<P> && rule<P>::template may_store_to<E>;
/// Whether a node does.
template <class Program, class E>
inline constexpr bool is_stored = false;
template <class Program, class E>
    requires(first_writer<Program, E> != graph::nowhere)
inline constexpr bool is_stored<Program, E> =
    stores<Program, node_at<typename Program::nodes, first_writer<Program, E>>, E>;

/// The pass a frame is in: rules keep in forward what backward needs and skip in replay what was kept.
enum class pass { forward, replay, backward };

/// Whether a batch is worked on in tiles, each by one thread of the host, for which a row is as good as many, and calls cost nothing.
template <class Backend>
inline constexpr bool has_tiles = requires {
    Backend::tile;
};

/// The sequences of a frame: as many as the backend says, known when this is compiled, or else a whole batch.
template <class Backend>
struct tile_of {
    index tile;
};
template <class Backend>
    requires has_tiles<Backend>
struct tile_of<Backend> {
    static constexpr index tile = Backend::tile;
    explicit tile_of(index) {}
};

/// As a backend's row_sums, of rows that nobody shares.
template <class T>
struct rows_of_their_own {
    receiver<T> into;
    static void finish() {}
};

/// One tile of sequences on its way through a program. Rows are time-major, [T, tile, width]: row t·tile + s is token t
/// of sequence s, so a chunk of tokens is one block of rows. `value` and `bar` hold every node's rows and cotangents, in the
/// backend's memory: what happens there is called through the frame, in bodies.
template <class Program, class T, class Backend>
struct frame : tile_of<Backend> {
    using program = Program;
    using scalar = T;
    using backend = Backend;
    static constexpr std::size_t nodes = Program::size;
    using tile_of<Backend>::tile;

    frame(Backend& backend_, index sequences) : tile_of<Backend>{sequences}, on(backend_) {}

    Backend& on;
    dims size;
    index tokens = 0;
    index chunk = 1;    ///< C, tokens of a chunk
    index span = 1;     ///< tokens of the chunk at hand; with one, rows may come one by one
    index bar_row = 0;  ///< backward: where the cotangents begin that are kept for the chunk at hand alone
    pass phase = pass::forward;
    bool unrolled = false;  ///< backward goes through several iterations, one by one
    const T* parameters = nullptr;
    T* gradient = nullptr;
    const std::array<index, nodes>* parameter_start = nullptr;

    std::array<T*, nodes> value{};
    std::array<T*, nodes> bar{};
    std::array<index, nodes> width{};
    std::array<T*, nodes> packed{};  ///< a tile of rows as linear maps multiply it, where several of them do
    view<T> packing{};               ///< memory of the matrix products
    T* steps = nullptr;              ///< of a chunk's tokens, without tiles
    work_counters work;

    template <class List>
    struct memories;
    template <class... E>
    struct memories<type_list<E...>> {
        using type = std::tuple<typename rule<E>::template memory<T>...>;
    };
    typename memories<typename Program::nodes>::type memory;

    /// body.row<Team>(i, worker) for i in [0,n), a team a row.
    template <class Body>
    void each_row(index n, const Body& body) const {
        on.template rows<T>(n, body);
    }
    /// body.row<Team>(0, 0) of one long row, whose channels all teams share.
    template <class Body>
    void one_row(const Body& body) const {
        on.template row<T>(body);
    }
    /// Where the bodies of n rows add what they add up in `to` [width], once finish() is called.
    auto sums(index n, index width_, T* to) const { return typename Backend::template row_sums<T>(on, n, width_, to); }
    /// `numbers` of scratch for every row that a team works on while others work on theirs.
    strided<T> take_per_worker(arena<T>& scratch, index numbers, index n) const {
        return {scratch.take(on.workers(n) * numbers), numbers};
    }

    index rows() const { return tokens * tile; }
    /// Rows of E's cotangents. Unrolled, every node has all of its rows.
    template <class E>
    index bar_rows_of() const {
        return bars_of_chunk<E> && !unrolled ? chunk * tile : rows();
    }
    /// Whether nobody asks for E's cotangents once its chunk is solved.
    template <class E>
    static constexpr bool bars_of_chunk = (E::depends == dependence::shifted || E::depends == dependence::current) &&
                                          !rule<E>::bars_stay;

    template <class E>
    static constexpr std::size_t slot = Program::template slot<E>;
    template <class E>
    auto& memory_of() {
        return std::get<slot<E>>(memory);
    }
    template <class E>
    index width_of() const {
        return width[slot<E>];
    }
    template <class E>
    index stride_of() const {
        return rule<E>::broadcast ? 0 : width[slot<E>];
    }
    template <class E>
    T* value_at(index row) const {
        return value[slot<E>] + row * stride_of<E>();
    }
    template <class E>
    T* bar_at(index row) const {
        return bar[slot<E>] + (bars_of_chunk<E> ? row - bar_row : row) * stride_of<E>();
    }
    /// The cotangent rows of operand E, or null when E depends on less than the pass reaches.
    template <class E, dependence Reach>
    T* bar_within(index row) const {
        if constexpr (E::depends < Reach)
            return nullptr;
        else
            return bar_at<E>(row);
    }
    template <class E>
    strided<T> values(index row) const {
        return {value_at<E>(row), stride_of<E>()};
    }
    template <class E>
    strided<T> bars(index row) const {
        return {bar_at<E>(row), stride_of<E>()};
    }
    /// Where n rows send the cotangents of operand E, nowhere when E depends on less than the pass reaches: `into`, and then finish().
    template <class E, dependence Reach>
    auto bars_within(index row, index n) const {
        if constexpr (rule<E>::broadcast)
            return sums(n, width_of<E>(), bar_within<E, Reach>(row));
        else
            return rows_of_their_own<T>{{{bar_within<E, Reach>(row), stride_of<E>()}}};
    }
    template <class E>
    matrix<T> value_rows(index row, index n) const {
        return {value_at<E>(row), n, width_of<E>(), stride_of<E>()};
    }
    template <class E>
    matrix<const T> const_value_rows(index row, index n) const {
        return {value_at<E>(row), n, width_of<E>(), stride_of<E>()};
    }
    template <class E>
    matrix<T> bar_rows(index row, index n) const {
        return {bar_at<E>(row), n, width_of<E>(), stride_of<E>()};
    }
    template <class E>
    matrix<const T> const_bar_rows(index row, index n) const {
        return {bar_at<E>(row), n, width_of<E>(), stride_of<E>()};
    }
    template <class E>
    const T* parameters_of() const {
        return parameters + (*parameter_start)[slot<E>];
    }
    template <class E>
    T* gradient_of() const {
        return gradient + (*parameter_start)[slot<E>];
    }
};

/// What rules that need nothing more inherit.
struct plain_rule {
    template <class T>
    struct memory {};
    /// One row serves all tokens.
    static constexpr bool broadcast = false;
    /// In a one-token chunk every row is evaluated by itself.
    static constexpr bool row_local = true;
    /// In a one-token chunk it is p + g ⊙ a, channel by channel, of the operand a that the innermost loop changes.
    static constexpr bool affine = false;
    /// Kept from forward to backward because it is dear to compute.
    static constexpr bool kept = false;
    /// Whether back stores the cotangents of an operand outside of the iteration when they are the first that it receives.
    template <class>
    static constexpr bool may_store_to = false;
    /// hoist_back or end_back need the cotangents of all rows.
    static constexpr bool bars_stay = false;

    /// argument_error when the node cannot work with these sizes.
    static void check(const dims&) {}
    /// Appends the node's parameters.
    static void declare(const dims&, std::vector<parameter_spec>&) {}
    /// Numbers per sequence that a later call needs to go on.
    static index carry(const dims&) { return 0; }
    /// Lays out the node's own memory: `kept` survives until the backward pass.
    template <class F>
    static void lay_out(F&, arena<typename F::scalar>& /*scratch*/, arena<typename F::scalar>& /*kept*/) {}
    /// Numbers that the node's matrix products need to pack their operands into.
    template <class F>
    static index packing_size(const F&) {
        return 0;
    }
    /// Before the first token of a pass; `carry` [tile, carry()] is what the last call left, null on the way back.
    template <class F>
    static void begin(F&, const typename F::scalar* /*carry*/) {}
    /// After the last token of forward.
    template <class F>
    static void end(F&, typename F::scalar* /*carry*/) {}
    /// Parts that depend on x alone, for all tokens, of a node that depends on more.
    template <class F>
    static void hoist(F&) {}
    /// Rows of a chunk whose operands outside the innermost loop are ready.
    template <class F>
    static void open(F&, index /*row*/, index /*n*/) {}
    /// The chunk has been solved.
    template <class F>
    static void close(F&, index /*row*/, index /*n*/) {}
    /// As open, for the adjoint.
    template <class F>
    static void open_back(F&, index /*row*/, index /*n*/) {}
    /// The adjoint of hoist.
    template <class F>
    static void hoist_back(F&) {}
    /// Around the iterations of a chunk when backward goes through each of them.
    template <class F>
    static void before_unrolled_chunk(F&) {}
    template <class F>
    static void after_unrolled_step(F&, index /*row*/, index /*n*/) {}
    template <class F>
    static void after_unrolled_chunk(F&, index /*row*/, index /*n*/) {}
    /// After all tokens of backward: what is formed once, from all rows.
    template <class F>
    static void end_back(F&) {}
    template <class F>
    static void value(F&, index /*row*/, index /*n*/) {}
    template <dependence Reach, class F>
    static void back(F&, index /*row*/, index /*n*/) {}
};

/// sum += from, from = 0: iterations share the carry they begin from, and only the last hands one on.
template <class F, class T>
void move_to_sum(F& f, index n, T* from, T* sum) {
    f.one_row(body::add<T>{n, from, sum});
    f.on.fill(n, from, 0);
}

}  // namespace fprnn
