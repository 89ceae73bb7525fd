#pragma once

#include <fprnn/fixed_point/tile.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

/// A batch of sequences through a whole program, tile by tile on the backend's threads, there and back.
namespace fprnn::engine {

/// Where the nodes' parameters begin among a layer's own, and how many there are.
struct parameter_layout {
    std::vector<index> starts{};
    index count = 0;

    parameter_layout() = default;
    parameter_layout(const graph::view& g, const dims& size) {
        graph::for_each_declaration(g, size, [&](graph::slot, const std::vector<parameter_spec>& specs) {
            starts.push_back(count);
            for (const auto& p : specs) count += p.extents.count();
        });
    }
};

/// What a backward pass reads of the forward pass.
template <class T, class Backend>
struct record {
    dims size;
    parameter_layout layout;  ///< for `size`
    const T* parameters = nullptr;
    index tiles = 0;
    index kept_per_tile = 0;
    std::optional<typename Backend::template memory<T>> kept{};
    /// Shared, because a solution outlives the tape.
    std::shared_ptr<convergence> adjoint_convergence = std::make_shared<convergence>();
    work_counters adjoint_work{};
    index bytes() const { return tiles * kept_per_tile * static_cast<index>(sizeof(T)); }

    void of(const graph::view& g, const dims& s, const T* p) {
        if (size != s) layout = parameter_layout(g, s);
        size = s;
        parameters = p;
    }
};

/// A frame with its memory and the parameters of its nodes.
template <class T, class Backend>
workspace<T> begin_tile(frame<T, Backend>& f, const parameter_layout& layout, const T* parameters, T* gradient,
                        arena<T> scratch, arena<T> kept) {
    for (graph::slot s = 0; s < f.graph.size(); ++s) f.nodes[s].parameters = layout.starts[s];
    f.parameters = parameters;
    f.gradient = gradient;
    return lay_out(f, scratch, kept);
}

/// Tiles of a batch are summed in so many groups, each by one thread, so that any number of threads adds in one order.
inline constexpr index gradient_groups = 8;

/// y* of x [B,T,d_in], neither B nor T zero: result.value [B,T,width], how it was found, and result.carry [B,carry_width], which enters as
/// the carry in. Of `keep`, when it is given, layout and parameters are there.
template <class T, class Backend, class X, class Result>
void batch_forward(const plan<T, Backend>& what, const chunked& schedule, const adjoint& method, const dims& size,
                   const T* parameters, view<const X> x, Backend& backend, record<T, Backend>* keep, Result& result) {
    const index B = x.shape()[0], tokens = x.shape()[1];
    const index tile = tile_of<Backend>{B}.tile, tiles = (B + tile - 1) / tile;
    const parameter_layout own = keep ? parameter_layout() : parameter_layout(what.nodes, size);
    const parameter_layout& layout = keep ? keep->layout : own;
    const pass_of<T, Backend> forward_pass{what, backend, B, size, tokens, pass::forward, schedule, method};
    const auto sizes = measure_tile(forward_pass);
    if (keep) {
        keep->tiles = tiles;
        keep->kept_per_tile = sizes.kept;
        keep->kept.emplace(backend, tiles * sizes.kept);
    }
    // For all threads at once: what a loop asks for does not depend on how many of them join it.
    const index per_thread = sizes.scratch + (keep ? 0 : sizes.kept);
    typename Backend::template memory<T> memory(backend, std::min<index>(tiles, backend.threads()) * per_thread);
    const view<X> value{result.value.data(), result.value.shape()};
    const view<T> carry{result.carry.data(), result.carry.shape()};
    std::mutex work_mutex;
    backend.for_each(tiles, [&](index i, index thread) {
        const index first = i * tile, sequences = std::min(tile, B - first);
        T* const mine = memory.data() + thread * per_thread;
        auto f = forward_pass.make_frame();
        const auto extra = begin_tile(f, layout, parameters, static_cast<T*>(nullptr), arena<T>(mine),
                                      arena<T>(keep ? keep->kept->data() + i * sizes.kept : mine + sizes.scratch));
        forward(f, extra, schedule, x, value, carry, result, first, sequences);
        std::lock_guard lock(work_mutex);
        result.work += f.work;
    });
}

/// Its adjoint: adds to x_bar [B,T,d_in] and to `gradient`, laid out as the parameters, what y_bar [B,T,width] sends back.
template <class T, class Backend, class X>
void batch_backward(const plan<T, Backend>& what, const chunked& schedule, const adjoint& method,
                    record<T, Backend>& kept, view<const X> x, view<const X> y_bar, view<X> x_bar, T* gradient,
                    Backend& backend) {
    using memory = typename Backend::template memory<T>;
    const index B = x.shape()[0], tokens = x.shape()[1], parameters = kept.layout.count;
    const index tile = tile_of<Backend>{B}.tile, tiles = (B + tile - 1) / tile;
    const pass_of<T, Backend> backward_pass{what, backend, B, kept.size, tokens, pass::backward, schedule, method};
    const auto sizes = measure_tile(backward_pass);
    constexpr bool one_tile = !has_tiles<Backend>;
    const index groups = std::min(gradient_groups, tiles);
    memory partial(backend, groups * parameters);
    memory scratch(backend, std::min<index>(groups, backend.threads()) * sizes.scratch);
    kept.adjoint_convergence->begin(B);
    kept.adjoint_work = {};
    std::mutex work_mutex;
    backend.for_each(groups, [&](index g, index thread) {
        T* group_gradient = partial.data() + g * parameters;
        backend.fill(parameters, group_gradient, 0);
        for (index i = g * tiles / groups; i < (g + 1) * tiles / groups; ++i) {
            const index first = i * tile, sequences = std::min(tile, B - first);
            auto f = backward_pass.make_frame();
            const auto extra = begin_tile(f, kept.layout, kept.parameters, group_gradient,
                                          arena<T>(scratch.data() + thread * sizes.scratch),
                                          arena<T>(kept.kept->data() + i * sizes.kept));
            backward(f, extra, method, x, y_bar, first, sequences, *kept.adjoint_convergence);
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
