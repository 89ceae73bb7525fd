#pragma once

#include <fprnn/fixed_point/tile.hpp>

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

/// A batch of sequences through a whole program, tile by tile on the backend's threads, there and back.
namespace fprnn::engine {

/// Where the nodes' parameters begin among a layer's own, and how many there are.
struct parameter_layout {
    std::vector<index> starts{};
    index count = 0;

    parameter_layout() = default;
    parameter_layout(const graph::view& g, const dims& size) {
        graph::for_each_declaration(g, size, [&](graph::slot s, const std::vector<parameter_spec>& specs) {
            const graph::slot same = g[s].same_type;
            starts.push_back(same == graph::nowhere ? count : starts[same]);
            for (const auto& p : specs) count += p.extents.count();
        });
    }
};

/// What a backward pass reads of the forward pass.
template <class T, class Backend>
struct record {
    const graph::node* nodes = nullptr;  ///< of the layer that went forward
    dims size;
    parameter_layout layout;  ///< of `nodes`, for `size`
    const T* parameters = nullptr;
    shape inputs{0};        ///< [B,T,d_in]
    index chunk = 0;        ///< tokens of the schedule's chunks, at most T
    bool together = false;  ///< a share of the batch ended the iterations
    index tiles = 0;
    index kept_per_tile = 0;
    std::optional<typename Backend::template memory<T>> kept{};
    std::vector<index> lengths{};  ///< of the sequences; none where all have all tokens
    /// Shared, because a solution outlives the tape.
    std::shared_ptr<convergence> adjoint_convergence = std::make_shared<convergence>();
    work_counters adjoint_work{};
    index bytes() const { return tiles * kept_per_tile * static_cast<index>(sizeof(T)); }

    void of(const graph::view& g, const dims& s, const shape& x, const chunked& schedule, const T* p) {
        if (nodes != g.nodes.data() || size != s) layout = parameter_layout(g, s);
        nodes = g.nodes.data();
        size = s;
        inputs = x;
        chunk = std::min(schedule.length, x[1]);
        parameters = p;
        kept.reset();
    }
};

/// A frame with its memory and the parameters of its nodes.
template <class T, class Backend>
workspace<T> begin_tile(frame<T, Backend>& f, const solving& how, const parameter_layout& layout, const T* parameters,
                        T* gradient, arena<T> scratch, arena<T> kept) {
    for (graph::slot s = 0; s < f.graph.size(); ++s) f.nodes[s].parameters = layout.starts[s];
    f.parameters = parameters;
    f.gradient = gradient;
    return lay_out(f, how, scratch, kept);
}

/// A tile that is alone has all threads; loops inside of a loop have one.
template <class Backend>
int threads_of_a_tile(const Backend& backend, index tiles) {
    return has_tiles<Backend> && tiles == 1 ? static_cast<int>(backend.threads()) : 1;
}

/// Tiles of a batch are summed in so many groups, each by one thread, so that any number of threads adds in
/// one order.
inline constexpr index gradient_groups = 8;

/// The residual at place `share` of the batch's, linear between two.
inline double quantile(std::vector<double> residuals, double share) {
    std::sort(residuals.begin(), residuals.end());
    const double place = share * static_cast<double>(residuals.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const double part = place - static_cast<double>(below);
    // Nothing is added to what is infinite.
    return part > 0 ? (1 - part) * residuals[below] + part * residuals[below + 1] : residuals[below];
}

/// Whether a share of a batch, and not each sequence, says when its iterations end.
template <class T, class Backend>
bool are_side_by_side(const plan<T, Backend>& what, const solving& how) {
    return has_tiles<Backend> && how.stop.is_of_a_batch() && what.has_fixed_point();
}

/// Tiles that are iterated side by side until a share of the batch has converged: one evaluation of all of
/// them after the other.
template <class T, class Backend>
class side_by_side {
public:
    struct tile {
        std::unique_ptr<frame_of_tile<T, Backend>> f;
        workspace<T> e;
        index first, sequences;
    };
    side_by_side(std::vector<tile>& tiles, Backend& backend, const solving& how)
        : tiles_(tiles), backend_(backend), how_(how) {}

    void solve_chunk(index row, index n) {
        iteration_rule rule = how_.rule();
        rule.tolerance = 0;
        rule.ell_max = std::numeric_limits<int>::max();
        each([&](tile& t) {
            t.f->on.fill(n * t.f->iterate_width(), y(t, row), 0);
            t.f->begin_chunk(row, n);
            begin_watches(*t.f, t.sequences, rule, t.e.watches);
            if (t.e.own.memory) t.f->on.fill(t.sequences * t.e.own.per_sequence, t.e.own.memory, 0);
        });
        for (int ell = 1;; ++ell) {
            each([&](tile& t) {
                step(*t.f, row, n, ell == 1);
                measure(*t.f, how_.stop, t.sequences, t.f->value_at(t.f->stage().fixed_point, row), y(t, row),
                        t.e.watches);
            });
            if (ends(ell)) break;
            each([&](tile& t) {
                move(*t.f, how_.solver, t.e.own, t.sequences, t.f->value_at(t.f->stage().fixed_point, row), y(t, row),
                     t.e.watches);
            });
        }
        each([&](tile& t) {
            for (index q = 0; q < t.sequences; ++q) {
                watch<T>& w = t.e.watches.one[q];
                if (w.running()) w.finish(has_converged(w) ? status::converged : status::max_iterations);
            }
            for (const graph::slot s : t.f->stage().iterated) t.f->plan.operations[s]->close(*t.f, s, row, n);
            t.f->clear_behind(row, n, t.f->iterate_width(), t.f->value_at(t.f->stage().fixed_point, row));
            report(*t.f, t.sequences, t.e.watches, counts_of_stage(*t.f, t.e) + row / t.f->chunk);
        });
    }

private:
    template <class Body>
    void each(const Body& body) {
        backend_.for_each(static_cast<index>(tiles_.size()),
                          [&](index i) { body(tiles_[static_cast<std::size_t>(i)]); });
    }
    static T* y(tile& t, index row) { return t.f->value_at(t.f->stage().previous, row); }
    double residual_of(const watch<T>& w) const {
        return how_.stop.share_of_a_batch().best_ever ? w.best() : w.residual();
    }
    bool has_converged(const watch<T>& w) const {
        return residual_of(w) < how_.stop.share_of_a_batch().tolerance || residual_of(w) < how_.stop.tolerance();
    }
    bool ends(int ell) {
        if (ell >= how_.stop.ell_max()) return true;
        std::vector<double> residuals;
        double delta = 0;
        bool any = false;
        for (const tile& t : tiles_)
            for (index q = 0; q < t.sequences; ++q) {
                if (t.f->tokens_of_chunk(q) == 0) continue;
                const watch<T>& w = t.e.watches.one[q];
                residuals.push_back(residual_of(w));
                if (!w.running()) continue;  // its δ falls no more
                any = true;
                delta = std::max(delta, w.delta());
            }
        const share& of = how_.stop.share_of_a_batch();
        return !any || delta < of.least_delta || quantile(residuals, of.of) < of.tolerance ||
               (how_.stop.tolerance() > 0 && quantile(residuals, 1) < how_.stop.tolerance());
    }

    std::vector<tile>& tiles_;
    Backend& backend_;
    const solving& how_;
};

/// y* of x [B,T,d_in], neither B nor T zero: result.value [B,T,width], how it was found, and result.carry
/// [B,carry_width], which enters as the carry in. Of `keep`, when it is given, layout, parameters and lengths
/// are there.
template <class T, class Backend, class X, class Result>
void batch_forward(const plan<T, Backend>& what, const solving& how, const dims& size, const T* parameters,
                   view<const X> x, std::span<const index> lengths, Backend& backend, record<T, Backend>* keep,
                   Result& result) {
    const index B = x.shape()[0], tokens = x.shape()[1];
    const index tile = tile_for(what, size, B), tiles = (B + tile - 1) / tile;
    const parameter_layout own = keep ? parameter_layout() : parameter_layout(what.nodes, size);
    const parameter_layout& layout = keep ? keep->layout : own;
    const bool together = are_side_by_side(what, how);
    const tile_lengths of_tiles(lengths, tokens, tile, tiles, how.schedule.length, together);
    const pass_of<T, Backend> forward_pass{what,     backend,       tile, size,
                                           of_tiles, pass::forward, how,  threads_of_a_tile(backend, tiles)};
    const auto sizes = measure_tiles(forward_pass);
    if (keep) {
        keep->together = together;
        keep->tiles = tiles;
        keep->kept_per_tile = sizes.kept;
        keep->kept.emplace(backend, tiles * sizes.kept);
    }
    // For all threads at once: what a loop asks for does not depend on how many of them join it.
    const index per_thread = sizes.scratch + (keep ? 0 : sizes.kept);
    const index memories = together ? tiles : std::min<index>(tiles, backend.threads());
    typename Backend::template memory<T> memory(backend, memories * per_thread);
    const view<X> value{result.value.data(), result.value.shape()};
    const view<T> carry{result.carry.data(), result.carry.shape()};
    const auto begin = [&](frame<T, Backend>& f, index i, index place) {
        T* const mine = memory.data() + place * per_thread;
        return begin_tile(f, how, layout, parameters, static_cast<T*>(nullptr), arena<T>(mine),
                          arena<T>(keep ? keep->kept->data() + i * sizes.kept : mine + sizes.scratch));
    };
    const auto sequences_of = [&](index i) { return std::min(tile, B - i * tile); };
    if constexpr (has_tiles<Backend>) {
        if (together) {
            using side_by_side = engine::side_by_side<T, Backend>;
            std::vector<typename side_by_side::tile> all;
            for (index i = 0; i < tiles; ++i) {
                std::unique_ptr<frame_of_tile<T, Backend>> f(new frame_of_tile<T, Backend>(forward_pass.make_frame(i)));
                const auto extra = begin(*f, i, i);
                all.push_back({std::move(f), extra, i * tile, sequences_of(i)});
            }
            const auto each = [&](const auto& body) {
                backend.for_each(tiles, [&](index i) { body(all[static_cast<std::size_t>(i)]); });
            };
            each([&](auto& t) { begin_forward(*t.f, t.e, x, carry, t.first, t.sequences); });
            side_by_side solver(all, backend, how);
            for (std::size_t k = 0; k < what.stages.size(); ++k) {
                each([&](auto& t) { enter_stage(*t.f, t.e, k, result, t.first, t.sequences); });
                if (what.stages[k].has_fixed_point())
                    for_each_chunk(*all[0].f, [&](index row, index n) { solver.solve_chunk(row, n); });
            }
            each([&](auto& t) { end_forward(*t.f, t.e, value, carry, result, t.first, t.sequences); });
            for (const auto& t : all) result.work += t.f->work;
            return;
        }
    }
    std::mutex work_mutex;
    backend.for_each(tiles, [&](index i, index thread) {
        auto f = forward_pass.make_frame(i);
        const auto extra = begin(f, i, thread);
        forward(f, extra, how, x, value, carry, result, i * tile, sequences_of(i));
        std::lock_guard lock(work_mutex);
        result.work += f.work;
    });
}

/// Its adjoint: adds to x_bar [B,T,d_in], to the cotangent of the carry in and to `gradient`, laid out as the
/// parameters, what y_bar [B,T,width] and the cotangent of the carry out send back.
template <class T, class Backend, class X>
void batch_backward(const plan<T, Backend>& what, const solving& how, record<T, Backend>& kept, view<const X> x,
                    view<const X> y_bar, view<X> x_bar, const carry_bars<T>& carries, T* gradient, Backend& backend) {
    using memory = typename Backend::template memory<T>;
    const index B = x.shape()[0], tokens = x.shape()[1], parameters = kept.layout.count;
    const index tile = tile_for(what, kept.size, B), tiles = (B + tile - 1) / tile;
    const bool together = are_side_by_side(what, how);
    require(together == kept.together, "layer.back", [&] {
        return std::string("expected the stop of the forward pass, ") + (kept.together ? "a" : "no") +
               " share of the batch, got " + (together ? "one" : "none");
    });
    const tile_lengths of_tiles(kept.lengths, tokens, tile, tiles, how.schedule.length, together);
    const pass_of<T, Backend> backward_pass{what,     backend,        tile, kept.size,
                                            of_tiles, pass::backward, how,  threads_of_a_tile(backend, tiles)};
    const auto sizes = measure_tiles(backward_pass);
    constexpr bool one_tile = !has_tiles<Backend>;
    const index groups = std::min(gradient_groups, tiles);
    memory partial(backend, groups * parameters);
    memory scratch(backend, std::min<index>(groups, backend.threads()) * sizes.scratch);
    kept.adjoint_convergence->begin(B, what.fixed_points());
    kept.adjoint_work = {};
    std::mutex work_mutex;
    backend.for_each(groups, [&](index g, index thread) {
        T* group_gradient = partial.data() + g * parameters;
        backend.fill(parameters, group_gradient, 0);
        for (index i = g * tiles / groups; i < (g + 1) * tiles / groups; ++i) {
            const index first = i * tile, sequences = std::min(tile, B - first);
            auto f = backward_pass.make_frame(i);
            const auto extra = begin_tile(f, how, kept.layout, kept.parameters, group_gradient,
                                          arena<T>(scratch.data() + thread * sizes.scratch),
                                          arena<T>(kept.kept->data() + i * sizes.kept));
            backward(f, extra, how.adjoint, x, y_bar, carries, first, sequences, *kept.adjoint_convergence);
            backend.at_once([&] {
                scatter(f, f.bar_at(f.graph.input, 0), true, x_bar, first, sequences);
                if (one_tile && parameters > 0)
                    backend.template row<T>(body::add<T>{parameters, partial.data(), gradient});
            });
            std::lock_guard lock(work_mutex);
            kept.adjoint_work += f.work;
        }
    });
    if (one_tile) return;
    constexpr index block = 4096;
    backend.for_each((parameters + block - 1) / block, [&](index i) {
        const index first = i * block, n = std::min(parameters - first, block);
        for (index g = 0; g < groups; ++g)
            backend.template row<T>(body::add<T>{n, partial.data() + g * parameters + first, gradient + first});
    });
}

}  // namespace fprnn::engine
