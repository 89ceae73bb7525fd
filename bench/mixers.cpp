// Mixers on rows of tokens: those of R directions against the machine's triad, as their numbers are read once
// and used twice; Kronecker's, which compute more than they read, against sgemm.

#include "measure.hpp"

#include <fprnn/core/random.hpp>
#include <fprnn/mixers/dplr.hpp>
#include <fprnn/mixers/householder.hpp>
#include <fprnn/mixers/kronecker.hpp>
#include <fprnn/operations/table.hpp>

namespace {

using fprnn::eigen;
using fprnn::index;
using fprnn::tensor;

template <class M>
struct data {
    using team = eigen::team<float>;
    using mix_body = fprnn::body::mix<M, float>;  // what layers call
    using back_body = fprnn::body::mix_back<M, float>;
    static constexpr index block = 64;
    static constexpr index line = 16;  // numbers: layers begin every row of q on a cache line, too

    index rows, D;
    tensor<float> raw0, raw1, q, v, w, out, out_bar, v_bar, w_bar, q_bar, raw0_bar, raw1_bar;
    eigen backend;
    tensor<float> of_threads;  ///< scratch [threads]
    int repeats = 1;           ///< of every block of rows

    data(index tokens, index channels, int threads)
        : rows(tokens),
          D(channels),
          raw0({rows, M::raw_sizes(D)[0]}),
          raw1({rows, M::raw_sizes(D)[1]}),
          q({rows, (M::size(D) + line - 1) / line * line}),
          v({rows, D}),
          w({rows, D}),
          out({rows, D}),
          out_bar({rows, D}),
          v_bar({rows, D}),
          w_bar({rows, D}),
          q_bar(q.shape()),
          raw0_bar(raw0.shape()),
          raw1_bar(raw1.shape()),
          backend(threads),
          of_threads({threads, std::max(M::scratch(D), fprnn::mixing::prepare_scratch<M>(D)) + line}) {
        std::uint64_t stream = 0;
        for (tensor<float>* x : {&v, &w, &out_bar, &raw0, &raw1}) {
            const fprnn::random_stream random(fprnn::seed{1}, stream++);
            for (index i = 0; i < x->size(); ++i) (*x)[i] = static_cast<float>(random.uniform(i)) - 0.5f;
        }
        prepare();
    }
    static fprnn::strided<float> rows_of(tensor<float>& x) { return {x.data(), x.shape()[1]}; }
    template <class Body>
    void for_each_row(Body&& body) {
        backend.for_each((rows + block - 1) / block, [&](index i, index thread) {
            for (int k = 0; k < repeats; ++k)
                for (index r = i * block; r < std::min(rows, (i + 1) * block); ++r) body(r, &of_threads(thread, 0));
        });
    }
    void prepare() {
        for_each_row([&](index r, float* scratch) {
            const float* raw[] = {&raw0(r, 0), &raw1(r, 0)};
            fprnn::mixing::prepare<M, team, float>(D, raw, &q(r, 0), scratch);
        });
    }
    void prepare_back() {
        for_each_row([&](index r, float* scratch) {
            const float* raw[] = {&raw0(r, 0), &raw1(r, 0)};
            float* bars[] = {&raw0_bar(r, 0), &raw1_bar(r, 0)};
            fprnn::mixing::prepare_back<M, team, float>(D, raw, &q(r, 0), &q_bar(r, 0), bars, scratch);
        });
    }
    void apply() {
        for_each_row([&](index r, float* scratch) {
            mix_body{D, rows_of(q), rows_of(v), rows_of(w), rows_of(out), {scratch, 0}}.template row<team>(r, 0);
        });
    }
    void vjp() {
        for_each_row([&](index r, float* scratch) {
            back_body{D,
                      rows_of(q),
                      rows_of(v),
                      rows_of(w),
                      rows_of(out_bar),
                      {rows_of(v_bar)},
                      {rows_of(w_bar)},
                      {rows_of(q_bar)},
                      {scratch, 0}}
                .template row<team>(r, 0);
        });
    }
    /// Of the first and the last row: what the reference computes in double.
    bool right() const {
        using plain = fprnn::serial_team<double>;
        for (const index r : {index{0}, rows - 1}) {
            const auto doubles = [r](const tensor<float>& x) {
                tensor<double> y({x.shape()[1]});
                for (index i = 0; i < y.size(); ++i) y[i] = static_cast<double>(x(r, i));
                return y;
            };
            const tensor<double> raw_a = doubles(raw0), raw_b = doubles(raw1), a = doubles(v), b = doubles(w);
            const double* raw[] = {raw_a.data(), raw_b.data()};
            tensor<double> numbers({q.shape()[1]}), expected({D}),
                scratch({std::max(M::scratch(D), fprnn::mixing::prepare_scratch<M>(D)) + 1});
            fprnn::mixing::prepare<M, plain, double>(D, raw, numbers.data(), scratch.data());
            M::template mix<plain, double>(D, numbers.data(), a.data(), b.data(), expected.data(), scratch.data());
            for (index i = 0; i < D; ++i)
                if (!(std::abs(static_cast<double>(out(r, i)) - expected[i]) < 1e-4)) return false;
        }
        return true;
    }
};

template <class M>
bool begin(benchmark::State& state, data<M>& d) {
    d.apply();
    const bool right = d.right();
    if (!right) state.SkipWithError("wrong result");
    return right;
}
std::string shape_of(index rows, index D) { return "[" + std::to_string(rows) + "," + std::to_string(D) + "] "; }

/// Mixers of R directions: bytes that have to be moved, of triad beyond the first cache, and flops of sgemm
/// within it.
template <class M, bool Back>
void of_directions(benchmark::State& state) {
    constexpr int R = M::rank;
    const index rows = state.range(1), D = state.range(2);
    data<M> d(rows, D, static_cast<int>(state.range(0)));
    if (!begin(state, d)) return;
    const std::string shape = shape_of(rows, D) + "R = " + std::to_string(R) + ": ";
    const auto run = [&] { Back ? d.vjp() : d.apply(); };
    const double numbers = static_cast<double>(rows * D);
    const double bytes = 4 * (Back ? 3 * R + 7 : R + 3) * numbers;
    const std::string moved = Back ? "(3 R + 7) 4 bytes a channel (Q, v, w, out's in; three cotangents in and out)"
                                   : "(R + 3) 4 bytes a channel (Q, v, w in; out)";
    if (rows > data<M>::block)
        return bench::against(state, bench::triad(d.backend, rows * D), bytes, shape + moved, run);
    d.repeats = static_cast<int>(1e7 / numbers);
    if (bytes > 32 * 1024)
        bench::against(state, bench::triad(d.backend, static_cast<index>(bytes / 12), d.repeats), d.repeats * bytes,
                       shape + "in the second cache, " + moved, run);
    else
        bench::against(state, bench::sgemm(d.backend, 1), d.repeats * (Back ? 12 * R : 4 * R) * numbers,
                       shape + "in the first cache, " + (Back ? "12 R" : "4 R") + " flops a channel", run);
}

enum class part { apply, vjp, prepare, prepare_back };

/// 2 (a + b) flops a channel for each product of X with both factors, of which mix has one and mix_back and
/// mix_back_q have three; two products of matrices [m,m] for each factor to prepare it, four and a half to go
/// back.
template <part Part>
void kronecker(benchmark::State& state) {
    using M = fprnn::kronecker_mixer;
    const index rows = state.range(1), D = state.range(2);
    data<M> d(rows, D, static_cast<int>(state.range(0)));
    if (!begin(state, d)) return;
    const auto [a, b] = fprnn::kronecker_sizes::of(D);
    const double product = 2.0 * static_cast<double>(rows * D * (a + b));
    const double cubes = 2.0 * static_cast<double>(rows * (a * a * a + b * b * b));
    const auto best = bench::sgemm(d.backend);
    d.repeats = rows <= data<M>::block ? 100 : 1;  // in the second cache
    const double all = d.repeats * product;
    switch (Part) {
        case part::apply:
            return bench::against(state, best, all, shape_of(rows, D) + "2 (a + b) flops a channel",
                                  [&] { d.apply(); });
        case part::vjp:
            return bench::against(state, best, 3 * all, shape_of(rows, D) + "6 (a + b) flops a channel",
                                  [&] { d.vjp(); });
        case part::prepare:
            return bench::against(state, best, 2 * cubes, shape_of(rows, D) + "4 (a^3 + b^3) flops a token",
                                  [&] { d.prepare(); });
        case part::prepare_back:
            return bench::against(state, best, 4 * cubes, shape_of(rows, D) + "8 (a^3 + b^3) flops a token",
                                  [&] { d.prepare_back(); });
    }
}

#define FPRNN_MEASURE(...) __VA_ARGS__->UseManualTime()->Unit(benchmark::kMillisecond)

template <int R>
void householder_apply(benchmark::State& state) {
    of_directions<fprnn::householder_mixer<R>, false>(state);
}
template <int R>
void householder_vjp(benchmark::State& state) {
    of_directions<fprnn::householder_mixer<R>, true>(state);
}
template <int R>
void dplr_apply(benchmark::State& state) {
    of_directions<fprnn::dplr_mixer<R>, false>(state);
}
template <int R>
void dplr_vjp(benchmark::State& state) {
    of_directions<fprnn::dplr_mixer<R>, true>(state);
}
void kronecker_apply(benchmark::State& state) { kronecker<part::apply>(state); }
void kronecker_vjp(benchmark::State& state) { kronecker<part::vjp>(state); }
void kronecker_prepare(benchmark::State& state) { kronecker<part::prepare>(state); }
void kronecker_prepare_back(benchmark::State& state) { kronecker<part::prepare_back>(state); }

FPRNN_MEASURE(BENCHMARK_TEMPLATE(householder_apply, 1)
                  ->Args({2, 16384, 512})
                  ->Args({1, 16384, 512})
                  ->Args({1, 64, 256})
                  ->Args({1, 4, 256}));
FPRNN_MEASURE(BENCHMARK_TEMPLATE(householder_apply, 2)
                  ->Args({2, 16384, 512})
                  ->Args({1, 16384, 512})
                  ->Args({1, 64, 256})
                  ->Args({1, 4, 256}));
FPRNN_MEASURE(BENCHMARK_TEMPLATE(householder_apply, 4)
                  ->Args({2, 16384, 512})
                  ->Args({1, 16384, 512})
                  ->Args({1, 64, 256})
                  ->Args({1, 4, 256}));
FPRNN_MEASURE(BENCHMARK_TEMPLATE(householder_vjp, 1)->Args({2, 16384, 512})->Args({1, 16384, 512}));
FPRNN_MEASURE(BENCHMARK_TEMPLATE(householder_vjp, 4)->Args({2, 16384, 512})->Args({1, 16384, 512}));
FPRNN_MEASURE(BENCHMARK_TEMPLATE(dplr_apply, 1)->Args({2, 16384, 512})->Args({1, 16384, 512}));
FPRNN_MEASURE(BENCHMARK_TEMPLATE(dplr_apply, 4)
                  ->Args({2, 16384, 512})
                  ->Args({1, 16384, 512})
                  ->Args({1, 64, 256})
                  ->Args({1, 4, 256}));
FPRNN_MEASURE(BENCHMARK_TEMPLATE(dplr_vjp, 4)->Args({2, 16384, 512})->Args({1, 16384, 512}));
FPRNN_MEASURE(
    BENCHMARK(kronecker_apply)->Args({1, 4096, 64})->Args({1, 64, 256})->Args({1, 64, 512})->Args({1, 16384, 512}));
FPRNN_MEASURE(
    BENCHMARK(kronecker_vjp)->Args({1, 4096, 64})->Args({1, 64, 256})->Args({1, 64, 512})->Args({1, 16384, 512}));
FPRNN_MEASURE(BENCHMARK(kronecker_prepare)->Args({1, 4096, 64})->Args({1, 4096, 512}));
FPRNN_MEASURE(BENCHMARK(kronecker_prepare_back)->Args({1, 4096, 64})->Args({1, 4096, 512}));

}  // namespace
