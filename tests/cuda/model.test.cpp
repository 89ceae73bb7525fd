// Where CUDA's headers are: models on cuda::device, whose memory is out of the host's reach and whose kernels run on the host.
#if __has_include(<cuda_runtime_api.h>)

#include "host_backend.hpp"
#include "model_check.hpp"

#include <ops/checks.hpp>

namespace {

using fprnn::index;
using fprnn::tensor;
using fprnn::view;
namespace cuda = fprnn::cuda;

TEST_CASE("cuda model: training and evaluation are equivalent to the CPU's") {
    const host::guarded_devices guard;
    models::check_equivalent(3, 2e-15);  // 4.9e-16 measured
}

// docs/decisions/0015-programs-of-rows.md; -s prints the numbers
TEST_CASE("cuda model: a step of training is a few hundred calls, with a kernel for each body some thousand") {
    const host::guarded_devices guard;
    const auto calls = [](index steps, bool programs) {
        fake::state.calls_of.clear();
        (void)models::train(steps, cuda::device(0, {.programs = programs, .graphs = false}), 1, 16);
        return fake::state.calls_of;
    };
    const auto of_step = [&](bool programs) {
        return [three = calls(3, programs), two = calls(2, programs)](const char* name) {
            return three.at(name) - two.at(name);
        };
    };
    const auto step = of_step(true), without = of_step(false);
    CHECK(step("cudaLaunchKernelEx") == 125);
    CHECK(step("cublasDgemm") == 66);
    CHECK(step("cudaMemcpyAsync") + step("cudaMemsetAsync") == 49);
    CHECK(step("cudaMallocFromPoolAsync") == 22);
    CHECK(step("cudaStreamSynchronize") == 10);
    // These depend on how many tokens do not settle in R numbers.
    CHECK(without("cudaLaunchKernelEx") > 1000);
    CHECK(without("cublasDgemm") == 66);
    CHECK(without("cudaMemcpyAsync") + without("cudaMemsetAsync") > 500);
    CHECK(without("cudaMallocFromPoolAsync") == 67);
    CHECK(without("cudaStreamSynchronize") > 10);
}

TEST_CASE("cuda model: the loss leaves out what is not counted, on several threads at a time") {
    fake::state = {};
    fake::state.guarded = true;
    host::threads = {.of_row = 3, .rows = 2, .of_grid = 2};
    const auto logits = gpu::random<double>({2, 3, 5}, 1);
    const tensor<std::int32_t> targets({2, 3}, {0, fprnn::ignored_target, 4, 2, 2, fprnn::ignored_target});
    tensor<double> expected_bar({2, 3, 5});
    const auto expected = fprnn::cross_entropy(logits, targets.view(), expected_bar.view());
    {
        cuda::device gpu;
        const auto x = gpu.copy(logits);
        cuda::tensor<double> bar(gpu, {2, 3, 5});
        fprnn::cross_entropy_result<double> got;
        cross_entropy(x.view(), targets.view(), bar.view(), gpu, got);
        CHECK(got.loss == expected.loss);
        CHECK(got.tokens == 4);
        CHECK(got.answers == expected.answers);
        const auto here = cuda::copy_to_host(bar);
        for (index i = 0; i < here.size(); ++i) CHECK(std::abs(here[i] - expected_bar[i]) <= 1e-15);
    }
    host::threads = {};
    CHECK(fake::state.memory.empty());
    fake::state = {};
}

}  // namespace

#endif
