#pragma once

#include <fprnn/fixed_point/tile.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

/// A batch of sequences through a whole program, tile by tile on the backend's threads, there and back.
namespace fprnn::engine {

/// Where the nodes' parameters begin among the program's own, and how many there are.
template <class Program>
struct parameter_layout {
    std::array<index, Program::size> starts{};
    index count = 0;

    parameter_layout() = default;
    explicit parameter_layout(const dims& size) {
        for_each_node(typename Program::nodes{}, [&]<class E>() {
            starts[Program::template slot<E>] = count;
            std::vector<parameter_spec> specs;
            rule<E>::declare(size, specs);
            for (const auto& p : specs) count += p.extents.count();
        });
    }
};

/// What the way back reads of the way there.
template <class Program, class T, class Backend>
struct record {
    dims size;
    parameter_layout<Program> layout;  ///< for `size`
    const T* parameters = nullptr;
    index tiles = 0;
    index kept_per_tile = 0;
    std::optional<typename Backend::template memory<T>> kept{};
    /// Shared, because a solution outlives the tape.
    std::shared_ptr<convergence> adjoint_convergence = std::make_shared<convergence>();
    work_counters adjoint_work{};
    index bytes() const { return tiles * kept_per_tile * static_cast<index>(sizeof(T)); }

    void of(const dims& s, const T* p) {
        if (size != s) layout = parameter_layout<Program>(s);
        size = s;
        parameters = p;
    }
};

/// Tiles of a batch are summed in so many groups, each by one thread, so that any number of threads adds in one order.
inline constexpr index gradient_groups = 8;

/// y* of x [B,T,d_in], neither B nor T zero: result.value [B,T,width], how it was found, and result.carry [B,carry_width], which enters as
/// the carry in. Of `keep`, when it is given, layout and parameters are there.
template <class Program, class T, class Backend, class X, class Result>
void batch_forward(const chunked& schedule, const adjoint& method, const dims& size, const T* parameters,
                   view<const X> x, Backend& backend, record<Program, T, Backend>* keep, Result& result) {
    using frame = fprnn::frame<Program, T, Backend>;
    const index B = x.shape()[0], tokens = x.shape()[1];
    const index tile = tile_of<Backend>{B}.tile, tiles = (B + tile - 1) / tile;
    const auto layout = keep ? keep->layout : parameter_layout<Program>(size);
    const auto sizes = measure_tile<frame>(backend, B, size, tokens, pass::forward, schedule, method);
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
        auto f = make_frame<frame>(backend, B, size, tokens, pass::forward, schedule, method);
        f.parameter_start = &layout.starts;
        f.parameters = parameters;
        arena<T> scratch_arena(mine);
        arena<T> kept_arena(keep ? keep->kept->data() + i * sizes.kept : mine + sizes.scratch);
        const auto extra = lay_out(f, scratch_arena, kept_arena);
        forward(f, extra, schedule, x, value, carry, result, first, sequences);
        std::lock_guard lock(work_mutex);
        result.work += f.work;
    });
}

/// Its adjoint: adds to x_bar [B,T,d_in] and to `gradient`, laid out as the parameters, what y_bar [B,T,width] sends back.
template <class Program, class T, class Backend, class X>
void batch_backward(const chunked& schedule, const adjoint& method, record<Program, T, Backend>& kept, view<const X> x,
                    view<const X> y_bar, view<X> x_bar, T* gradient, Backend& backend) {
    using frame = fprnn::frame<Program, T, Backend>;
    using memory = typename Backend::template memory<T>;
    const index B = x.shape()[0], tokens = x.shape()[1], parameters = kept.layout.count;
    const index tile = tile_of<Backend>{B}.tile, tiles = (B + tile - 1) / tile;
    const auto sizes = measure_tile<frame>(backend, B, kept.size, tokens, pass::backward, schedule, method);
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
            auto f = make_frame<frame>(backend, B, kept.size, tokens, pass::backward, schedule, method);
            f.parameter_start = &kept.layout.starts;
            f.parameters = kept.parameters;
            f.gradient = group_gradient;
            arena<T> scratch_arena(scratch.data() + thread * sizes.scratch);
            arena<T> kept_arena(kept.kept->data() + i * sizes.kept);
            const auto extra = lay_out(f, scratch_arena, kept_arena);
            backward(f, extra, method, x, y_bar, first, sequences, *kept.adjoint_convergence);
            backend.at_once([&] {
                scatter(f, f.template bar_at<input_node>(0), true, x_bar, first, sequences);
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
