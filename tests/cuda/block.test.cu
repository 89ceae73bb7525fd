#include "gpu_main.hpp"

#include <fprnn/cuda/block.cuh>
#include <fprnn/cuda/launch.cuh>
#include <fprnn/cuda/tensor.hpp>

#include "team_check.hpp"

#include <algorithm>

/// A thread block is the team that kernels are written for.
namespace block_test {  // a kernel's stub cannot name what has no name

namespace cuda = fprnn::cuda;
using team_check::map;

template <int Threads>
__global__ void run(const map* x, map* out) {
    team_check::run(cuda::block<Threads>{}, x, out);
}

template <int Threads>
void check(const cuda::device& gpu) {
    const auto x = team_check::numbers(Threads);
    fprnn::tensor<map> in({Threads});
    std::copy(x.begin(), x.end(), in.data());
    const auto there = copy(gpu, in);
    cuda::tensor<map> out(gpu, {team_check::count(Threads)});
    cuda::launch(gpu, "run", run<Threads>, 1, {Threads, 0}, there.data(), out.data());
    const auto got = copy_to_host(out);
    team_check::check(Threads, x, {got.begin(), got.end()});
}

TEST_CASE("cuda block: reduces and scans in the order of its threads") {
    const cuda::device gpu;
    check<32>(gpu);
    check<64>(gpu);
    check<128>(gpu);
    check<256>(gpu);
}

}  // namespace block_test
