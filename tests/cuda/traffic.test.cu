// What kernels ask of memory, warp by warp, as the interpreter of PTX counts it: where memory is the bound,
// what they can reach.
#include "gpu_main.hpp"

#include <fprnn/cuda/backend.cuh>
#include <fprnn/fixed_point/layer.hpp>
#include <fprnn/models/fp_mamba.hpp>

#include "ptx/traffic.hpp"

#include <dlfcn.h>

#include <algorithm>

// Not in an anonymous namespace, for the types of kernels must have names that nvcc can spell.
namespace traffic {

using fprnn::index;
using fprnn::shape;
using gpu::random;
namespace cuda = fprnn::cuda;

using counter = ptx::traffic (*)();
/// The interpreter's, if it executes this.
counter find_counter() { return reinterpret_cast<counter>(dlsym(RTLD_DEFAULT, "ptx_traffic")); }

/// What `call` asks for on the device.
template <class Call>
ptx::traffic asked(const cuda::device& d, const Call& call) {
    const auto wait = [&] { cuda::check(cudaStreamSynchronize(d.stream()), "cudaStreamSynchronize"); };
    wait();
    const ptx::traffic before = find_counter()();
    call();
    wait();
    return find_counter()() - before;
}
/// Bytes, in arrays of `numbers` floats.
double arrays(const ptx::traffic& t, index numbers) {
    return static_cast<double>(t.read + t.written) / static_cast<double>(numbers * index(sizeof(float)));
}

template <int R>
double of_mixer(const cuda::device& d) {
    using mixer = fprnn::householder_mixer<R>;
    const index rows = 10, D = 2048, line = 16, width = (mixer::size(D) + line - 1) / line * line;
    const auto q = copy(d, random<float>({rows, width}, 1)), v = copy(d, random<float>({rows, D}, 2)),
               w = copy(d, random<float>({rows, D}, 3));
    cuda::tensor<float> out(d, {rows, D}), scratch(d, {d.workers(rows), mixer::scratch(D)});
    const fprnn::body::mix<mixer, float> mix{
        D, {q.data(), width}, {v.data(), D}, {w.data(), D}, {out.data(), D}, {scratch.data(), mixer::scratch(D)}};
    return arrays(asked(d, [&] { d.rows<float>(rows, mix); }), rows * D);
}

TEST_CASE("traffic: applying reflections reads U, v and w and writes the result, once each" *
          doctest::skip(!find_counter())) {
    const cuda::device d;
    CHECK(of_mixer<1>(d) <= 1.02 * 4);
    CHECK(of_mixer<2>(d) <= 1.02 * 5);
    CHECK(of_mixer<4>(d) <= 1.02 * 7 + 0.03);  // and six inner products of the directions, which every warp reads
}

TEST_CASE("traffic: a scan reads its arguments and writes its results once, beside the maps of chunks" *
          doctest::skip(!find_counter())) {
    const cuda::device d;
    const shape s{1, 2048, 64};
    const auto lambda = copy(d, random<float>(s, 1, 0.01, 0.9)), u = copy(d, random<float>(s, 2));
    auto h = cuda::scan(lambda, u);
    cuda::scan_cotangents<float> bars(d, s);
    const auto of = [&](const auto& call) { return arrays(asked(d, call), s.count()); };
    CHECK(of([&] { cuda::scan_into(h, lambda, u); }) <= 3.06);
    CHECK(of([&] { cuda::scan_back<fprnn::update::overwrite>(lambda, h, {}, u, {}, bars); }) <= 5.14);
    CHECK(of([&] { cuda::scan_back(lambda, h, {}, u, {}, bars); }) <= 7.14);
}

TEST_CASE("traffic: an iteration of FP-Mamba asks for 21 arrays beside products" * doctest::skip(!find_counter())) {
    const cuda::device d(0, {.graphs = false});
    const index D = 256, tokens = 64;
    const auto x = copy(d, random<float>({1, tokens, D}, 2));
    const auto iterations = [&](int ell_max) {
        const fprnn::layer layer(fprnn::models::fp_mamba<1>(),
                                 fprnn::parallel({.tolerance = 1e-30, .ell_max = ell_max}));
        const auto theta = d.copy(fprnn::init<float>(layer, {.d_in = D, .d_inner = D, .d_state = 16}, fprnn::seed{4}));
        return arrays(asked(d, [&] { (void)layer(theta, x, d); }), tokens * D);
    };
    CHECK((iterations(9) - iterations(5)) / 4 <= 21.0);
}

}  // namespace traffic
