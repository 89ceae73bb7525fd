#pragma once

#include <fprnn/operations/plan.hpp>
#include <fprnn/operations/work.hpp>
#include <fprnn/ops/bodies.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory_resource>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

namespace fprnn {

/// The pass that a frame is in: operations keep in forward what backward needs and skip in replay what was
/// kept.
enum class pass { forward, replay, backward };

/// Whether a batch is worked on in tiles, each by one thread of the host, for which a row is as good as many,
/// and calls cost nothing.
template <class Backend>
inline constexpr bool has_tiles = requires {
    Backend::tile;
};

/// The sequences of a frame for a batch of B: all of them where a backend has no tiles. On the host a tile's,
/// and as many as there are of a batch that is smaller, or so many more that no register ends in another
/// place where the rows of a token are one row: so these tiles have the same bits.
template <class T, class Backend>
index tile_for(const plan<T, Backend>& what, const dims& size, index B) {
    if constexpr (!has_tiles<Backend>) {
        return B;
    } else {
        constexpr index most = Backend::tile;
        if constexpr (requires { requires Backend::products_are_by_row; }) {
            constexpr index numbers_of_a_register = 16;
            index tile = B;
            for (const graph::node& n : what.nodes.nodes) {
                const bool is_one_row = n.what == graph::kind::elementwise || n.what == graph::kind::scan ||
                                        n.what == graph::kind::selective_scan || n.what == graph::kind::recurrence;
                while (tile < most && is_one_row && !n.shared && tile * n.width.of(size) % numbers_of_a_register != 0)
                    ++tile;
            }
            return std::min(tile, most);
        }
        return most;
    }
}

/// What a frame has of one node.
template <class T>
struct node_rows {
    T* value = nullptr;
    T* bar = nullptr;  ///< cotangents
    index width = 0;
    index stride = 0;            ///< 0 where one row serves all tokens
    bool bars_of_chunk = false;  ///< cotangents are read while their chunk is solved, and never again
    index parameters = 0;        ///< where the node's parameters begin
    T* packed = nullptr;         ///< a tile of rows as linear maps multiply it, where several of them do
    std::array<graph::slot, 2> packed_by{graph::nowhere,
                                         graph::nowhere};        ///< the map that packs it, see operations::linear
    alignas(std::max_align_t) std::array<std::byte, 112> own{};  ///< what its operation keeps
};

template <class T, class Backend>
class frame_of_tile;

/// One tile of sequences on its way through a graph. Rows are time-major, [T, tile, width]: row t·tile + q is
/// token t of sequence q, so a chunk of tokens is one block of rows. Values and cotangents are in the
/// backend's memory: what happens there is called through the frame, in bodies.
template <class T, class Backend>
class frame {
public:
    using slot = graph::slot;

    frame(const fprnn::plan<T, Backend>& plan_, std::span<node_rows<T>> nodes_, Backend& backend, index tile_,
          const dims& size_, index tokens_, index chunk_, pass phase_, bool unrolled_, int threads_,
          const index* lengths_ = nullptr)
        : plan(plan_),
          graph(plan.nodes),
          on(backend),
          tile(tile_),
          size(size_),
          tokens(tokens_),
          chunk(chunk_),
          phase(phase_),
          unrolled(unrolled_),
          threads(threads_),
          lengths(lengths_),
          nodes(nodes_) {
        for (slot s = 0; s < graph.size(); ++s) {
            nodes[s].width = graph[s].width.of(size);
            nodes[s].stride = graph[s].shared ? 0 : nodes[s].width;
            nodes[s].bars_of_chunk = graph.is_iterated(s) && !plan.operations[s]->keeps_cotangents;
        }
    }
    frame& operator=(const frame&) = delete;

    const fprnn::plan<T, Backend>& plan;
    const graph::view graph;
    Backend& on;
    const index tile;
    const dims size;
    const index tokens;
    const index chunk;  ///< C, tokens of a chunk
    index span = 1;     ///< tokens of the chunk at hand; with one, rows may come one by one
    index token = 0;    ///< the first of the chunk at hand
    std::size_t stage_number = 0;
    index bar_row = 0;  ///< backward: where the cotangents begin that are kept for the chunk at hand alone
    pass phase;
    const bool unrolled;         ///< backward goes through several iterations, one by one
    const int threads;           ///< that may work on this tile side by side; 1 where there are tiles enough
    const index* const lengths;  ///< [tile], tokens of each sequence; null where all have all. On the host
    int worker = 0;              ///< which of the threads works, in by_blocks
    bool is_block = false;       ///< this is a part, in by_blocks: other threads work on other rows
    const T* parameters = nullptr;
    T* gradient = nullptr;
    view<T> packing{};   ///< memory of the matrix products
    T* steps = nullptr;  ///< of a chunk's tokens, without tiles
    work_counters work;
    const std::span<node_rows<T>> nodes;

    /// body.row<Team>(i, worker) for i in [0,n), a team a row.
    template <class Body>
    void each_row(index n, const Body& body) const {
        if constexpr (has_tiles<Backend>)
            on.template rows<T>(n, body, worker);
        else
            on.template rows<T>(n, body);
    }
    /// The same of rows of tokens, which add to nothing that they have in common.
    template <class Body>
    void each_token(index n, const Body& body) {
        if constexpr (has_tiles<Backend>)
            by_blocks(0, n, [&](frame&, index first, index count) {
                using team = typename Backend::template team<T>;
                for (index i = first; i < first + count; ++i) body.template row<team>(i, 0);
            });
        else
            each_row(n, body);
    }
    /// Whether n rows are worth more than one thread.
    bool shares(index n) const { return threads > 1 && n >= 2 * rows_of_block(); }
    /// Calls what(part, row, n) for blocks of the n rows from `row`: where threads share the tile, side by
    /// side, each with a part of the frame's scratch. Products and bodies of the blocks have the bits that
    /// they have together.
    template <class What>
    void by_blocks(index row, index n, const What& what) {
        if (!shares(n)) return what(*this, row, n);
        const index block = rows_of_block();
        std::mutex mutex;
        work_counters sum;
        on.for_each((n + block - 1) / block, [&](index i, index thread) {
            frame part = *this;
            part.worker = static_cast<int>(thread);
            part.is_block = true;
            part.packing = {packing.data() + thread * (packing.size() / threads), {packing.size() / threads}};
            part.work = {};
            what(part, row + i * block, std::min(block, n - i * block));
            const std::lock_guard lock(mutex);
            sum.add_block(part.work, i == 0);
        });
        work += sum;
    }
    /// Calls what(q) for n sequences that have so many numbers.
    template <class What>
    void by_sequences(index numbers, index n, const What& what) const {
        if (n * numbers >= numbers_of_block) return on.for_each(n, what);
        for (index q = 0; q < n; ++q) what(q);
    }
    /// Calls what(first, count) for parts of a row of so many channels, which know nothing of each other, and
    /// for `tokens` of them.
    template <class What>
    void by_channels(index tokens_, index channels, const What& what) const {
        constexpr index line = 16;
        const index parts = std::min<index>(threads, channels / line);
        if (parts < 2 || tokens_ * channels < numbers_of_block) return what(0, channels);
        const index count = (channels / line + parts - 1) / parts * line;
        on.for_each((channels + count - 1) / count,
                    [&](index i) { what(i * count, std::min(count, channels - i * count)); });
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
        return {scratch.take((has_tiles<Backend> ? threads : on.workers(n)) * numbers), numbers};
    }

    index rows() const { return tokens * tile; }
    void begin_chunk(index row, index n) { token = row / tile, span = n / tile; }
    /// Of `n` tokens from token `first` on those that sequence q has.
    index tokens_within(index q, index first, index n) const {
        return lengths ? std::clamp<index>(lengths[q] - first, 0, n) : n;
    }
    index tokens_of_chunk(index q) const { return tokens_within(q, token, span); }
    /// Zeroes what stands behind the ends of sequences in n rows from `row` on, the first of which is at
    /// `data`: what nobody asked for shall not become a state, a next iterate or, times a cotangent of zero,
    /// NaN.
    void clear_behind(index row, index n, index width_, T* data) const {
        if (!lengths) return;
        for (index r = row; r < row + n; ++r)
            if (r / tile >= lengths[r % tile]) on.fill(width_, data + (r - row) * width_, 0);
    }
    /// The one that the pass is in.
    const fprnn::stage<T, Backend>& stage() const { return plan.stages[stage_number]; }
    /// Channels of its iterate.
    index iterate_width() const { return nodes[stage().previous].width; }

    /// A new object in the memory that the frame has for node s.
    template <class M>
    M& make(slot s) {
        static_assert(std::is_trivially_copyable_v<M> && sizeof(M) <= sizeof(nodes[s].own));
        return *::new (static_cast<void*>(nodes[s].own.data())) M{};
    }
    template <class M>
    M& own(slot s) {
        return *std::launder(reinterpret_cast<M*>(nodes[s].own.data()));
    }
    template <class M>
    const M& own(slot s) const {
        return *std::launder(reinterpret_cast<const M*>(nodes[s].own.data()));
    }

    index width(slot s) const { return nodes[s].width; }
    index stride(slot s) const { return nodes[s].stride; }
    const T* parameters_of(slot s) const { return parameters + nodes[s].parameters; }
    T* gradient_of(slot s) const { return gradient + nodes[s].parameters; }

    T* value_at(slot s, index row) const { return nodes[s].value + row * nodes[s].stride; }
    strided<T> values(slot s, index row) const { return {value_at(s, row), nodes[s].stride}; }
    matrix<const T> value_rows(slot s, index row, index n) const {
        return {value_at(s, row), n, nodes[s].width, nodes[s].stride};
    }
    T* bar_at(slot s, index row) const {
        const node_rows<T>& of = nodes[s];
        return of.bar + (of.bars_of_chunk ? row - bar_row : row) * of.stride;
    }
    /// Rows of cotangents. Unrolled, every node has all of its rows.
    index bar_rows_of(slot s) const { return nodes[s].bars_of_chunk && !unrolled ? chunk * tile : rows(); }
    /// Null where operand s depends on less than the pass reaches.
    T* bar_within(slot s, index row, dependence reach) const {
        return graph[s].depends < reach ? nullptr : bar_at(s, row);
    }
    strided<T> bars(slot s, index row) const { return {bar_at(s, row), nodes[s].stride}; }
    matrix<T> bar_rows(slot s, index row, index n) const {
        return {bar_at(s, row), n, nodes[s].width, nodes[s].stride};
    }

    /// The values of node s at the sequences' last tokens, `before` [tile, width] of those that have none.
    void copy_last(slot s, const T* before, T* to) const {
        const index D = nodes[s].width;
        if (!lengths) return on.copy(tile * D, value_at(s, rows() - tile), to);
        for (index q = 0; q < tile; ++q)
            on.copy(D, lengths[q] > 0 ? value_at(s, (lengths[q] - 1) * tile + q) : before + q * D, to + q * D);
    }
    /// Adds bar [tile, width] to the cotangents of node s at the sequences' last tokens, to `before_bar`,
    /// where it is not null, of those that have none.
    void add_to_last(slot s, const T* bar, T* before_bar) const {
        const index D = nodes[s].width;
        if (!lengths) return one_row(body::add<T>{tile * D, bar, bar_at(s, rows() - tile)});
        for (index q = 0; q < tile; ++q) {
            T* to = before_bar ? before_bar + q * D : nullptr;
            if (lengths[q] > 0) to = bar_at(s, (lengths[q] - 1) * tile + q);
            if (to) one_row(body::add<T>{D, bar + q * D, to});
        }
    }

private:
    static constexpr index numbers_of_block = 8192;

    friend class frame_of_tile<T, Backend>;
    frame(const frame&) = default;

    /// So many that registers end where they end in all rows together.
    index rows_of_block() const { return (numbers_of_block / size.d_inner + 16) / 16 * 16; }
};

namespace detail {
template <class T>
struct memory_of_nodes {
    std::array<std::byte, 12288> room;  // of 40 nodes; others come from the heap
    std::pmr::monotonic_buffer_resource resource{room.data(), room.size()};
    std::pmr::vector<node_rows<T>> nodes;

    explicit memory_of_nodes(std::size_t n) : nodes(n, &resource) {}
};
}  // namespace detail

/// A frame with what its nodes have.
template <class T, class Backend>
class frame_of_tile : detail::memory_of_nodes<T>, public frame<T, Backend> {
public:
    template <class... Rest>
    explicit frame_of_tile(const fprnn::plan<T, Backend>& what, Rest&&... rest)
        : detail::memory_of_nodes<T>(what.nodes.size()),
          frame<T, Backend>(what, detail::memory_of_nodes<T>::nodes, rest...) {}
    frame_of_tile(const frame_of_tile&) = delete;
};

/// Where n rows from `row` add to the cotangents of operand s: `into`, and then finish(). Nowhere where s
/// depends on less than the pass reaches.
template <class T, class Backend>
class cotangents {
public:
    receiver<T> into;

    cotangents() = default;
    cotangents(const frame<T, Backend>& f, graph::slot s, index row, index n, dependence reach) {
        T* const to = f.bar_within(s, row, reach);
        if (f.graph[s].shared)
            into = sums_.emplace(f.on, n, f.width(s), to).into;
        else
            into = {{to, f.stride(s)}, false};
    }
    /// Of each worker its own.
    explicit cotangents(strided<T> of_workers) : into{of_workers, true} {}
    void finish() {
        if (sums_) sums_->finish();
    }

private:
    std::optional<typename Backend::template row_sums<T>> sums_;
};

/// sum += from, from = 0: iterations share the carry that they begin from, and only the last hands one on.
template <class T, class Backend>
void move_to_sum(frame<T, Backend>& f, index n, T* from, T* sum) {
    f.one_row(body::add<T>{n, from, sum});
    f.on.fill(n, from, 0);
}

}  // namespace fprnn
