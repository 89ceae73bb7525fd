// Where CUDA's headers are. What device and tensor do with a runtime that fails; kernels are not part of it.
#if __has_include(<cuda_runtime_api.h>)

#include "fake_runtime.hpp"

#include <fprnn/cuda/tensor.hpp>

#include <ops/checks.hpp>

namespace {

using checks::random;
using checks::same_bits;
using fprnn::argument_error;
using fprnn::index;
using fprnn::shape;
using fprnn::tensor;
namespace cuda = fprnn::cuda;

/// Everything that the library takes from the runtime, and checks.
void use(int gpu) {
    const cuda::device d(gpu);
    const auto x = random<float>({2, 3}, 1);
    auto y = copy(d, x);
    const auto same = cuda::copy_to_host(y);
    y.clear();
    const auto zero = cuda::copy_to_host(y);
    d.trim();
    CHECK(same_bits(same, x));
    CHECK(same_bits(zero, tensor<float>({2, 3})));
}

bool nothing_is_left() {
    return fake::state.memory.empty() && fake::state.streams == 0 && fake::state.pools == 0 && fake::state.current == 0;
}

TEST_CASE("cuda device: whichever call fails, its name is in the error, all is given back, and the next use succeeds") {
    fake::state = {};
    use(1);
    const int calls = fake::state.calls;
    CHECK(calls > 10);
    for (int n = 0; n < calls; ++n) {
        fake::state = {};
        fake::state.failing = n;
        std::string message;
        try {
            use(1);
        } catch (const cuda::error& e) {
            message = e.what();
        }
        INFO("call ", n, ", ", fake::state.failed, ": ", message);
        // Those whose failure nobody can be told of: what comes last, when all else is done.
        const bool told = message.find(fake::state.failed) != std::string::npos &&
                          message.find(": its words (itsName)") != std::string::npos;
        const bool last = message.empty() && (fake::state.failed == "cudaSetDevice" || n == calls - 1);
        CHECK((told || last));
        if (told) CHECK(fake::state.last == cudaSuccess);
        CHECK(fake::state.memory.empty());
        CHECK(fake::state.streams == 0);
        CHECK(fake::state.pools == 0);
        use(0);
    }
}

TEST_CASE("cuda device: no GPU, none of that number, one that is too old") {
    fake::state = {};
    CHECK_THROWS_WITH_AS(cuda::device(2), "device: GPU 2 of 2 does not exist", argument_error);
    CHECK_THROWS_WITH_AS(cuda::device(-1), "device: GPU -1 of 2 does not exist", argument_error);
    fake::state.capability = 6;
    CHECK_THROWS_WITH_AS(cuda::device(), "device: GPU 0 has compute capability 6.1, 7.0 is needed", argument_error);
    fake::state.gpus = 0;
    CHECK_THROWS_WITH_AS(cuda::device(), "device: cudaGetDeviceCount: its words (itsName)", cuda::error);
    CHECK(nothing_is_left());
}

TEST_CASE(
    "cuda device: a tensor that has been moved from is empty and on no device, and what it replaces is given back") {
    fake::state = {};
    {
        const cuda::device d;
        auto x = copy(d, random<float>({2, 3}, 1)), y = copy(d, random<float>({4}, 2));
        y = std::move(x);
        CHECK(fake::state.memory.size() == 1);
        CHECK(y.shape() == shape{2, 3});
        const auto& moved = x;
        CHECK(moved.empty());
        CHECK(moved.data() == nullptr);
        CHECK_FALSE(moved.where());
        const cuda::tensor<float> z(std::move(y));
        CHECK(z.shape() == shape{2, 3});
        CHECK(fake::state.memory.size() == 1);
    }
    CHECK(nothing_is_left());
}

TEST_CASE("cuda device: memory that is not there is an error with its size, and what there was is as it was") {
    fake::state = {};
    {
        const cuda::device d;
        const auto x = random<float>({3, 5}, 1);
        const auto y = copy(d, x);
        try {
            const cuda::tensor<double> large(d, {1024, 1024, 1024});
            FAIL("8 GiB were given");
        } catch (const cuda::error& e) {
            CHECK(e.code() == cudaErrorMemoryAllocation);
            CHECK(std::string(e.what()) == "cudaMallocFromPoolAsync(8589934592 bytes, GPU 0): its words (itsName)");
        }
        CHECK_THROWS_AS(cuda::tensor<double>(d, {index(1) << 62}), argument_error);
        CHECK(same_bits(cuda::copy_to_host(y), x));
    }
    CHECK(nothing_is_left());
}

TEST_CASE("cuda tensor: it outlives its device, moves, and an empty one holds nothing") {
    fake::state = {};
    {
        const auto x = random<float>({3, 5}, 1);
        cuda::tensor<float> y;
        {
            const cuda::device d(1);
            y = copy(d, x);
            CHECK(y.where() == d);
            CHECK(y.where() != cuda::device(1));
        }
        CHECK(fake::state.current == 0);
        auto z = std::move(y);
        CHECK(same_bits(cuda::copy_to_host(z), x));
        cuda::tensor<float> none(*z.where(), {4, 0, 2});
        none.clear();
        CHECK(none.data() == nullptr);
        CHECK(cuda::copy_to_host(none).shape() == shape{4, 0, 2});
        CHECK(fake::state.memory.size() == 1);
    }
    CHECK(nothing_is_left());
}

TEST_CASE("cuda device: what is written behind memory of these tests is found when that is given back") {
    fake::state = {};
    fake::state.guarded = true;
    {
        const cuda::device d(0);
        const cuda::tensor<float> x(d, {3, 5}), y(d, {7});
        fake::enqueue([at = const_cast<float*>(x.data())] { at[14] = 1; });
    }
    CHECK(fake::state.overruns == 0);
    {
        const cuda::device d(0);
        const cuda::tensor<float> x(d, {3, 5}), y(d, {7});
        fake::enqueue([at = const_cast<float*>(x.data())] { at[15] = 1; });
    }
    CHECK(fake::state.overruns == 1);
    fake::state = {};
}

}  // namespace

#endif
