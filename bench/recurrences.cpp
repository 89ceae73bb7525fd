// Recurrences with a state for each head, eager: the scan of Mamba-2 against the selective scan with as many
// states, of which it computes one exponential a head instead of one a channel and state, and the gated delta
// rule against products of matrices.

#include "measure.hpp"

#include <fprnn/core/random.hpp>
#include <fprnn/ops/selective_scan.hpp>
#include <fprnn/recurrences/gated_delta.hpp>
#include <fprnn/recurrences/head_scan.hpp>
#include <fprnn/recurrences/recur.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <memory>

namespace {

using fprnn::eigen;
using fprnn::gated_delta_recurrence;
using fprnn::index;
using fprnn::recur;
using fprnn::recur_back;
using fprnn::shape;
using fprnn::tensor;

constexpr index B = 8, T = 512, heads = 8, channels = 32, states = 32, D = heads * channels;
using head_scan = fprnn::head_scan_recurrence<1>;

/// Uniform on [low, high).
tensor<float> numbers(const shape& s, std::uint64_t stream, float low, float high) {
    tensor<float> x(s);
    const fprnn::random_stream random(fprnn::seed{1}, stream);
    for (index i = 0; i < x.size(); ++i)
        x[i] = low + (high - low) * static_cast<float>(random.uniform(static_cast<std::uint64_t>(i)));
    return x;
}
/// Rows of length 1 in each head.
tensor<float> units(const shape& s, std::uint64_t stream) {
    tensor<float> x = numbers(s, stream, -1, 1);
    for (index i = 0; i < x.size(); i += states) {
        float squares = 0;
        for (index k = 0; k < states; ++k) squares += x[i + k] * x[i + k];
        for (index k = 0; k < states; ++k) x[i + k] /= std::sqrt(squares);
    }
    return x;
}

/// A recurrence with inputs, and what its adjoint adds to.
template <class M>
struct data {
    std::array<tensor<float>, M::inputs> arrays;
    fprnn::recurrence_inputs<M, float> x = views(arrays);
    tensor<float> y_bar = numbers({B, T, D}, 9, -1, 1);
    fprnn::recurrence_cotangents<M, float> bars{x};

    static fprnn::recurrence_inputs<M, float> views(const std::array<tensor<float>, M::inputs>& of) {
        fprnn::recurrence_inputs<M, float> x;
        for (std::size_t k = 0; k < M::inputs; ++k) x[k] = of[k].view();
        return x;
    }
    bool right(eigen backend) const {
        const auto got = recur<M, float>(x, {}, {}, backend), expected = recur<M, float>(x);
        for (index i = 0; i < got.y.size(); ++i)
            if (!(std::abs(expected.y[i] - got.y[i]) <= 1e-4f * (1 + std::abs(expected.y[i])))) return false;
        return true;
    }
    void run(bool back, eigen backend) {
        if (back)
            recur_back<M, float>(x, {}, {}, y_bar.view(), {}, bars, backend);
        else
            benchmark::DoNotOptimize(recur<M, float>(x, {}, {}, backend).y.data());
    }
};

const std::string size_of_all = shape{B, T, D}.to_string() + " in 8 heads, 32 states: ";

/// Of the selective scan with the same inputs but for a rate and a step for each channel.
bench::yardstick selective_scan(eigen backend, bool back) {
    struct arrays {
        tensor<float> delta = numbers({B, T, D}, 0, 0, 0.1f), omega = numbers({states, D}, 1, 0, 1),
                      b = numbers({B, T, states}, 2, -1, 1), c = numbers({B, T, states}, 3, -1, 1),
                      u = numbers({B, T, D}, 4, -1, 1), y_bar = numbers({B, T, D}, 5, -1, 1);
        fprnn::selective_scan_cotangents<float> bars{{B, T, D}, states};
    };
    auto x = std::make_shared<arrays>();
    return {"selective_scan", double(B * T), [=]() mutable {
                if (back)
                    fprnn::selective_scan_back(x->delta, x->omega, x->b, x->c, x->u, {}, x->y_bar, {}, x->bars,
                                               backend);
                else
                    benchmark::DoNotOptimize(
                        fprnn::selective_scan(x->delta, x->omega, x->b, x->c, x->u, {}, backend).y.data());
            }};
}

void head_scan_of(benchmark::State& state, bool back) {
    eigen backend(static_cast<int>(state.range(0)));
    data<head_scan> d{{{numbers({B, T, heads}, 0, 0.9f, 1), numbers({B, T, states}, 1, -1, 1),
                        numbers({B, T, D}, 2, -1, 1), numbers({B, T, states}, 3, -1, 1)}}};
    if (!d.right(backend)) return state.SkipWithError("wrong result");
    bench::against(state, selective_scan(backend, back), double(B * T), size_of_all + "tokens of the selective scan",
                   [&] { d.run(back, backend); });
}
void head_scan_forward(benchmark::State& state) { head_scan_of(state, false); }
void head_scan_backward(benchmark::State& state) { head_scan_of(state, true); }

void gated_delta_of(benchmark::State& state, bool back) {
    eigen backend(static_cast<int>(state.range(0)));
    data<gated_delta_recurrence> d{
        {{numbers({B, T, heads}, 0, 0.9f, 1), units({B, T, heads * states}, 1), numbers({B, T, D}, 2, -1, 1),
          numbers({B, T, heads}, 3, 0, 1), units({B, T, heads * states}, 4)}}};
    if (!d.right(backend)) return state.SkipWithError("wrong result");
    // Sᵀk, αS + βk rᵀ and Sᵀq; states again and G + q ȳᵀ, Gᵀk, G r and S r̄, G − k r̄ᵀ, ⟨G, S⟩.
    const double all = double(B * T * D * states), flops = (back ? 7.0 * 2 + 16.0 : 7.0) * all;
    bench::against(state, bench::sgemm(backend), flops,
                   size_of_all + (back ? "7 K V flops twice, and 16" : "7 K V flops a token and head"),
                   [&] { d.run(back, backend); });
}
void gated_delta_forward(benchmark::State& state) { gated_delta_of(state, false); }
void gated_delta_backward(benchmark::State& state) { gated_delta_of(state, true); }

BENCHMARK(head_scan_forward)->Arg(1)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(head_scan_backward)->Arg(1)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(gated_delta_forward)->Arg(1)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(gated_delta_backward)->Arg(1)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
