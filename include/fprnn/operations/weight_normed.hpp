#pragma once

#include <fprnn/operations/linear.hpp>
#include <fprnn/ops/l2_normalise.hpp>

namespace fprnn {

/// Row r of a weight-normalised map: W_r = g_r v_r / ‖v_r‖, and 0 where v_r = 0.
struct weight_norm_function {
    template <class Team, class T>
    FPRNN_BOTH static void value(index k, const T* v, T g, T* W) {
        l2_normalise_function::measure<Team, T>(k, v, [&](const auto& of, T norm, T) {
            const T scale = norm > T(0) ? g / norm : T(0);
            Team::each(k, [&](auto lane) { lane.store(W, of(lane) * decltype(of(lane))(scale)); });
        });
    }

    /// With v̂ = v_r / ‖v_r‖: ḡ_r += v̂ᵀ W̄_r, v̄_r += (g_r / ‖v_r‖) (W̄_r − v̂ (v̂ᵀ W̄_r)); nothing where
    /// v_r = 0, which has no v̂.
    template <class Team, class T>
    FPRNN_BOTH static void back(index k, const T* v, T g, const T* W_bar, T* v_bar, T* g_bar) {
        l2_normalise_function::measure<Team, T>(k, v, [&](const auto& of, T norm, T slope) {
            if (!(norm > T(0))) return;
            const T scale = T(1) / norm;
            const T along =
                Team::template sum<1>(k, [&](auto lane) { return small_array{of(lane) * lane.load(W_bar)}; })[0] *
                scale;
            Team::once([&] { *g_bar += along; });
            Team::each(k, [&](auto lane) {
                using V = decltype(lane.load(v));
                lane.add(v_bar, (lane.load(W_bar) - of(lane) * V(along * scale)) * V(g * slope * scale));
            });
        });
    }
};

namespace body {

template <class T>
struct weight_norm {
    index channels;
    strided<const T> v;
    const T* g;
    strided<T> W;

    template <class Team>
    FPRNN_BOTH void row(index r, index) const {
        weight_norm_function::value<Team, T>(channels, v[r], g[r], W[r]);
    }
};
template <class T>
struct weight_norm_back {
    index channels;
    strided<const T> v;
    const T* g;
    strided<const T> W_bar;
    strided<T> v_bar;
    T* g_bar;

    template <class Team>
    FPRNN_BOTH void row(index r, index) const {
        weight_norm_function::back<Team, T>(channels, v[r], g[r], W_bar[r], v_bar[r], g_bar + r);
    }
};

}  // namespace body

namespace operations {

/// A linear map whose W is computed once a pass, of v [n,k] and, behind it, g [n].
template <class T, class Backend>
struct weight_normed_linear : linear<T, Backend> {
    using typename operation_on<T, Backend>::frame, typename operation_on<T, Backend>::slot;
    using plain = linear<T, Backend>;
    static_assert(has_tiles<Backend>, "weight-normalised maps are the CPU's: use linear or affine on a device");

    void lay_out(frame& f, slot s, arena<T>& scratch, arena<T>& kept) const {
        plain::lay_out(f, s, scratch, kept);
        auto& m = own(f, s);
        m.W = scratch.take(size(f, s));
        if (f.phase != pass::forward) m.W_bar = scratch.take(size(f, s));
    }
    void begin(frame& f, slot s, const T* carry) const {
        const auto& m = own(f, s);
        const index k = plain::columns(f, s);
        f.each_row(f.width(s), body::weight_norm<T>{k, {f.parameters_of(s), k}, g(f, s), {m.W, k}});
        if (m.W_bar) f.on.fill(size(f, s), m.W_bar, 0);
        plain::begin(f, s, carry);
    }
    void end_back(frame& f, slot s) const {
        plain::end_back(f, s);
        const index k = plain::columns(f, s);
        T* const v_bar = f.gradient_of(s);
        f.each_row(f.width(s),
                   body::weight_norm_back<T>{
                       k, {f.parameters_of(s), k}, g(f, s), {own(f, s).W_bar, k}, {v_bar, k}, v_bar + size(f, s)});
    }

private:
    static auto& own(frame& f, slot s) { return f.template own<typename plain::memory>(s); }
    static index size(const frame& f, slot s) { return f.width(s) * plain::columns(f, s); }
    static const T* g(const frame& f, slot s) { return f.parameters_of(s) + size(f, s); }
};

}  // namespace operations

}  // namespace fprnn
