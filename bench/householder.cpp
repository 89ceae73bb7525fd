// The Householder mixer on rows of tokens, against the machine's triad: its numbers are read once and used twice.

#include "measure.hpp"

#include <fprnn/core/random.hpp>
#include <fprnn/mixers/householder.hpp>

namespace {

using fprnn::eigen;
using fprnn::index;
using fprnn::tensor;

template <int R>
struct data {
    using mixer = fprnn::householder_mixer<R>;
    using team = eigen::team<float>;
    static constexpr index block = 64;

    index rows, D;
    tensor<float> q, v, w, out, out_bar, v_bar, w_bar, q_bar;
    eigen backend;

    data(index tokens, index channels, int threads)
        : rows(tokens),
          D(channels),
          q({rows, mixer::size(D)}),
          v({rows, D}),
          w({rows, D}),
          out({rows, D}),
          out_bar({rows, D}),
          v_bar({rows, D}),
          w_bar({rows, D}),
          q_bar({rows, mixer::size(D)}),
          backend(threads) {
        const fprnn::random_stream random(fprnn::seed{1}, 0);
        std::uint64_t k = 0;
        for (tensor<float>* x : {&v, &w, &out_bar})
            for (float& value : *x) value = static_cast<float>(random.normal(k++));
        tensor<float> u({R * D}), a({R});
        for (index r = 0; r < rows; ++r) {
            for (float& value : u) value = static_cast<float>(random.uniform(k++)) - 0.5f;
            const float* raw[] = {u.data(), a.data()};
            mixer::template prepare<team, float>(D, raw, &q(r, 0));
        }
    }
    template <class Body>
    void for_each_row(Body&& body) {
        backend.for_each((rows + block - 1) / block, [&](index i) {
            tensor<float> scratch({mixer::scratch(D)});
            for (index r = i * block; r < std::min(rows, (i + 1) * block); ++r) body(r, scratch.data());
        });
    }
    void apply() {
        for_each_row([&](index r, float* scratch) {
            mixer::template mix<team, float>(D, &q(r, 0), &v(r, 0), &w(r, 0), &out(r, 0), scratch);
        });
    }
    void vjp() {
        for_each_row([&](index r, float* scratch) {
            mixer::template mix_back<team, float>(D, &q(r, 0), &out_bar(r, 0), &v_bar(r, 0), &w_bar(r, 0), scratch);
            mixer::template mix_back_q<team, float>(D, &q(r, 0), &v(r, 0), &w(r, 0), &out_bar(r, 0), &q_bar(r, 0),
                                                    scratch);
        });
    }
    /// out − w = Π (I − α ū ūᵀ)(v − w), reflection by reflection in double.
    bool right() const {
        for (const index r : {index{0}, rows - 1}) {
            std::vector<double> d(static_cast<std::size_t>(D));
            for (index i = 0; i < D; ++i) d[static_cast<std::size_t>(i)] = double(v(r, i)) - double(w(r, i));
            for (index k = 0; k < R; ++k) {
                double along = 0;
                for (index i = 0; i < D; ++i) along += double(q(r, k * D + i)) * d[static_cast<std::size_t>(i)];
                for (index i = 0; i < D; ++i)
                    d[static_cast<std::size_t>(i)] -= double(q(r, R * D + k)) * along * double(q(r, k * D + i));
            }
            for (index i = 0; i < D; ++i)
                if (!(std::abs(out(r, i) - double(w(r, i)) - d[static_cast<std::size_t>(i)]) < 1e-4)) return false;
        }
        return true;
    }
};

template <int R, bool Back>
void householder(benchmark::State& state) {
    const index rows = state.range(1), D = state.range(2);
    data<R> d(rows, D, static_cast<int>(state.range(0)));
    d.apply();
    if (!d.right()) {
        state.SkipWithError("wrong result");
        return;
    }
    const std::string shape =
        "[" + std::to_string(rows) + "," + std::to_string(D) + "] R = " + std::to_string(R) + ": ";
    const auto best = bench::triad(d.backend, rows * D);
    const double numbers = 4.0 * static_cast<double>(rows * D);
    if constexpr (Back)
        bench::against(state, best, (3 * R + 7) * numbers,
                       shape + "(3 R + 7) 4 bytes a channel (Q, v, w, out's in; three cotangents in and out)",
                       [&] { d.vjp(); });
    else
        bench::against(state, best, (R + 3) * numbers, shape + "(R + 3) 4 bytes a channel (Q, v, w in; out)",
                       [&] { d.apply(); });
}

template <int R>
void householder_apply(benchmark::State& state) {
    householder<R, false>(state);
}
template <int R>
void householder_vjp(benchmark::State& state) {
    householder<R, true>(state);
}

BENCHMARK_TEMPLATE(householder_apply, 1)->Args({2, 16384, 512})->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_TEMPLATE(householder_apply, 4)->Args({2, 16384, 512})->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_TEMPLATE(householder_vjp, 1)->Args({2, 16384, 512})->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_TEMPLATE(householder_vjp, 4)->Args({2, 16384, 512})->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
