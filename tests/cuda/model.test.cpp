// Where CUDA's headers are: models on cuda::device, whose memory is out of the host's reach and whose kernels
// run on the host.
#if __has_include(<cuda_runtime_api.h>)

#include "host_backend.hpp"
#include "model_check.hpp"

#include <ops/checks.hpp>

#include <fprnn/models/fp_rnn.hpp>

namespace {

using fprnn::index;
using fprnn::tensor;
using fprnn::view;
namespace cuda = fprnn::cuda;

TEST_CASE("cuda model: training and evaluation are equivalent to the CPU's") {
    const host::guarded_devices guard;
    models::check_equivalent(3, 2e-15);  // 4.9e-16 measured
}

TEST_CASE("cuda model: it is trained by several threads and rows at a time, which share nothing but what they say") {
    const host::guarded_devices guard;
    host::threads = {.of_row = 5, .rows = 3, .of_grid = 4};
    models::check_equivalent(1, 4e-15, 1, 3);
}

// docs/decisions/0015-programs-of-rows.md; -s prints the numbers
TEST_CASE("cuda model: a step of training is a few hundred calls, with a kernel for each body some thousand") {
    const host::guarded_devices guard;
    const auto calls = [](index steps, const cuda::device_options& options) {
        fake::state.calls_of.clear();
        (void)models::train(steps, cuda::device(0, options), 1, 16);
        return fake::state.calls_of;
    };
    const auto of_step = [&](const cuda::device_options& options) {
        return [three = calls(3, options), two = calls(2, options)](const char* name) mutable {
            return three[name] - two[name];
        };
    };
    auto step = of_step({.graphs = false}), without = of_step({.programs = false, .graphs = false}),
         graphs = of_step({});
    CHECK(step("cudaLaunchKernelEx") == 110);
    CHECK(step("cublasDgemm") == 66);
    CHECK(step("cudaMemcpyAsync") + step("cudaMemsetAsync") == 50);
    CHECK(step("cudaMallocFromPoolAsync") == 22);
    CHECK(step("cudaStreamSynchronize") == 10);
    // The same kernels and products, of which four graphs consist: there, again, and two back.
    for (const char* name : {"cudaLaunchKernelEx", "cublasDgemm", "cudaStreamSynchronize"})
        CHECK(graphs(name) == step(name));
    CHECK(graphs("cudaMallocFromPoolAsync") == 20);
    CHECK(graphs("cudaGraphInstantiate") == 0);
    CHECK(graphs("cudaGraphExecUpdate") == 5);
    CHECK(graphs("cudaGraphLaunch") == 5);
    // These depend on how many tokens do not settle in R numbers.
    CHECK(without("cudaLaunchKernelEx") > 1000);
    CHECK(without("cublasDgemm") == 66);
    CHECK(without("cudaMemcpyAsync") + without("cudaMemsetAsync") > 500);
    CHECK(without("cudaMallocFromPoolAsync") == 67);
    CHECK(without("cudaStreamSynchronize") > 10);
}

TEST_CASE("cuda model: token by token it goes on where it was, with parameters that it is given once") {
    const host::guarded_devices guard;
    const fprnn::models::sequence_model model(
        fprnn::models::fp_mamba<2>(),
        {.vocabulary = 5, .classes = 4, .d_model = 5, .d_inner = 6, .d_state = 3, .layers = 2}, {.length = 1});
    const auto theta = model.init<double>(fprnn::seed{2});
    tensor<std::int32_t> tokens({3, 6});
    for (index i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>((3 * i * i + i) % 5);
    const auto expected = model.evaluate(theta, tokens.view());
    cuda::device gpu;
    const fprnn::parameters_on there(gpu, theta);
    const auto go_on = [&](const auto& parameters) {
        fake::state.calls_of.clear();
        fprnn::models::model_carry<double, cuda::tensor<double>> carry;
        for (index t = 0; t < 6; ++t) {
            tensor<std::int32_t> next({3, 1});
            for (index b = 0; b < 3; ++b) next[b] = tokens[b * 6 + t];
            const auto logits = cuda::copy_to_host(model.evaluate(parameters, next.view(), carry, nullptr, gpu));
            for (index b = 0; b < 3; ++b)
                for (index v = 0; v < 4; ++v) CHECK(std::abs(logits(b, 0, v) - expected(b, t, v)) <= 1e-13);
        }
        return fake::state.calls_of["cudaMemcpyAsync"];
    };
    CHECK(go_on(theta) == go_on(there) + 6);
}

TEST_CASE(
    "cuda model: parameters, a carry and values of another device are refused, also of another one of the same GPU") {
    const host::guarded_devices guard;
    const fprnn::models::sequence_model model(fprnn::models::fp_rnn<1>(),
                                              {.vocabulary = 3, .classes = 2, .d_model = 2, .d_inner = 2});
    const auto theta = model.init<double>(fprnn::seed{2});
    const tensor<std::int32_t> tokens({1, 1});
    cuda::device one{1}, other{1};
    const fprnn::parameters_on there(one, theta);
    using carries = fprnn::models::model_carry<double, cuda::tensor<double>>;
    carries carry;
    CHECK_THROWS_WITH_AS((void)model.evaluate(there, tokens.view(), carry, nullptr, other),
                         "sequence_model: theta is on GPU 1, of another device object, but the call names GPU 1",
                         fprnn::argument_error);
    CHECK(carry.blocks.empty());
    (void)model.evaluate(there, tokens.view(), carry, nullptr, one);
    CHECK_THROWS_WITH_AS((void)model.evaluate(theta, tokens.view(), carry, nullptr, other),
                         "sequence_model: carry is on GPU 1, of another device object, but the call names GPU 1",
                         fprnn::argument_error);
    CHECK(carry.blocks.size() == 1);
    (void)model.evaluate(there, tokens.view(), carry, nullptr, one);
    fprnn::tape<double, cuda::device> tape(theta, other);
    CHECK_THROWS_WITH_AS((void)tape.leaf(one.copy(tensor<double>({1}))),
                         "tape.leaf: value is on GPU 1, of another device object, but the call names GPU 1",
                         fprnn::argument_error);
}

TEST_CASE("cuda model: a table receives from its tokens in their order, from none, and from many") {
    const host::guarded_devices guard;
    host::threads = {.of_row = 3, .rows = 2, .of_grid = 2};
    for (const index tokens : {0, 1, 40}) {
        const index V = 7, D = 5;
        tensor<std::int32_t> of({2, tokens});
        for (index i = 0; i < of.size(); ++i) of[i] = static_cast<std::int32_t>(i * i % 6);  // never 2, 5 or 6
        const auto y_bar = gpu::random<float>({2, tokens, D}, 1);
        auto expected = gpu::random<float>({V, D}, 2);
        cuda::device gpu;
        auto got = gpu.copy(expected);
        const auto there = gpu.copy(y_bar);
        fprnn::embedding_back(of.view(), y_bar, expected.view());
        fprnn::embedding_back(of.view(), there, got, gpu);
        CHECK(checks::same_bits(cuda::copy_to_host(got), expected));
    }
}

TEST_CASE("cuda model: the loss leaves out what is not counted, on several threads at a time") {
    fake::state = {};
    fake::state.guarded = true;
    host::threads = {.of_row = 3, .rows = 2, .of_grid = 2};
    auto logits = gpu::random<double>({2, 3, 5}, 1);
    logits(0, 2, 1) = logits(0, 2, 4) = 9;  // the first of the largest is not the target,
    logits(1, 0, 2) = logits(1, 0, 3) = 9;  // and it is
    const tensor<std::int32_t> targets({2, 3}, {0, fprnn::ignored_target, 4, 2, 2, fprnn::ignored_target});
    tensor<double> expected_bar({2, 3, 5});
    const auto expected = fprnn::cross_entropy(logits, targets.view(), expected_bar.view());
    {
        cuda::device gpu;
        const auto x = gpu.copy(logits);
        cuda::tensor<double> bar(gpu, {2, 3, 5});
        fprnn::cross_entropy_result<double> got;
        fprnn::cross_entropy(x, targets.view(), bar, gpu, got);
        CHECK(got.loss == expected.loss);
        CHECK(got.tokens == 4);
        CHECK(got.answers == expected.answers);
        CHECK(got.answers[2] == fprnn::answer::wrong);
        CHECK(got.answers[3] == fprnn::answer::right);
        const auto here = cuda::copy_to_host(bar);
        for (index i = 0; i < here.size(); ++i) CHECK(std::abs(here[i] - expected_bar[i]) <= 1e-15);
    }
    host::threads = {};
    CHECK(fake::state.memory.empty());
    fake::state = {};
}

}  // namespace

#endif
