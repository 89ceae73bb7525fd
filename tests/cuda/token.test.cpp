// Where CUDA's headers are: what one more token takes of calls, on cuda::device, whose kernels run on the
// host.
#if __has_include(<cuda_runtime_api.h>)

#include "host_backend.hpp"
#include "random.hpp"

#include <fprnn/fixed_point/layer.hpp>
#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>
#include <fprnn/models/lstm.hpp>

#include <cstdlib>
#include <limits>
#include <map>
#include <string>

namespace {

using fprnn::index;
namespace cuda = fprnn::cuda;
using calls = std::map<std::string, int>;

/// call(forward), where forward() calls a layer with so many tokens of three sequences.
template <class Layer, class Call>
void use(const Layer& layer, index tokens, const Call& call) {
    const cuda::device gpu;
    const auto theta = gpu.copy(fprnn::init<double>(layer, {.d_in = 4, .d_inner = 6, .d_state = 3}, fprnn::seed{4}));
    const auto x = gpu.copy(gpu::random<double>({3, tokens, 4}, 1));
    call([&] { (void)layer(theta, x, gpu); });
}

/// What is called by name, the time-th time.
template <class Layer>
calls calls_of(const Layer& layer, index tokens, int time) {
    use(layer, tokens, [&](const auto& forward) {
        for (int i = 0; i < time; ++i) {
            fake::state.calls_of.clear();
            forward();
        }
    });
    fake::state.calls_of.erase("cudaGetDevice");  // which costs nothing
    return fake::state.calls_of;
}

/// Kernels, products and copies of the graph that the second call makes: an error says so, when it cannot be
/// made.
template <class Layer>
int calls_of_graph(const Layer& layer, index tokens) {
    int n = 0;
    use(layer, tokens, [&](const auto& forward) {
        forward();
        fake::state.calls = 0;
        forward();
        n = fake::state.calls;
    });
    std::string message;
    while (fake::state.failed != "cudaGraphInstantiate")
        use(layer, tokens, [&](const auto& forward) {
            forward();
            REQUIRE(n > 0);
            fake::state.calls = 0, fake::state.failing = --n;
            try {
                forward();
            } catch (const cuda::error& e) {
                message = e.what();
            }
            fake::state.failing = std::numeric_limits<int>::max();
        });
    fake::state.failed.clear();
    REQUIRE(message.find("cudaGraphInstantiate(") == 0);
    return std::atoi(message.c_str() + message.find('(') + 1);
}

template <class Expression>
void check(const std::string& name, Expression expression) {
    INFO(name);
    const fprnn::layer layer(expression, {.length = 1, .tolerance = 1e-12, .ell_max = 200});
    constexpr index few = 8, many = 12;
    constexpr int more = many - few;
    for (const int time : {2, 3}) {
        CAPTURE(time);
        auto expected = calls_of(layer, few, time);
        expected["cublasDgemm"] += more;
        expected["cudaLaunchKernelEx"] += more;
        const auto got = calls_of(layer, many, time);
        CHECK(got.size() == expected.size());
        for (const auto& call : got) {
            CAPTURE(call.first);
            CHECK(call.second == expected[call.first]);
        }
        CHECK(got.at("cudaGraphLaunch") == 1);
    }
    CHECK(calls_of_graph(layer, many) - calls_of_graph(layer, few) == 2 * more);
}

/// No copies, no memory and no looks of the host come with it; both calls are in the graph that all tokens
/// are.
TEST_CASE("cuda token: from the second call on a token is one product and one kernel, whatever its iterations") {
    const host::guarded_devices guard;
    check("fp_rnn<1>", fprnn::models::fp_rnn<1>());
    check("fp_rnn<4>", fprnn::models::fp_rnn<4>());
    check("fp_mamba<1>", fprnn::models::fp_mamba<1>());
    check("fp_mamba<4>", fprnn::models::fp_mamba<4>());
    check("lstm", fprnn::models::lstm());
}

}  // namespace

#endif
