// Where CUDA's headers are: a device goes on after whatever has failed on it, over a runtime and kernels of
// the host.
#if __has_include(<cuda_runtime_api.h>)

#include "host_backend.hpp"
#include "layer_check.hpp"
#include "same_outcome.hpp"

#include <ops/checks.hpp>

#include <fprnn/cuda/train.hpp>
#include <fprnn/models/sequence_model.hpp>
#include <fprnn/tasks/word_problem.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace {

using checks::same_bits;
using fprnn::index;
using fprnn::tensor;
namespace cuda = fprnn::cuda;

constexpr int never = std::numeric_limits<int>::max();
constexpr std::size_t enough = std::size_t(1) << 30;

/// Memory is within the host's reach here, because there are many calls.
class devices {
public:
    devices() { fake::state.guarded = false; }

private:
    host::guarded_devices all_;
};

/// FP-RNN<1> on two sequences, there and back.
struct problem {
    fprnn::layer<decltype(fprnn::models::fp_rnn<1>())> layer;
    fprnn::layer_parameters<double> theta = fprnn::init<double>(layer, {.d_in = 2, .d_inner = 3}, fprnn::seed{4});
    tensor<double> x, carry, y_bar;

    explicit problem(index C, index tokens = 4,
                     const fprnn::adjoint& method = fprnn::implicit{.tolerance = 1e-6, .ell_max = 7}, int ell_max = 7)
        : layer(fprnn::models::fp_rnn<1>(), {.length = C, .tolerance = 1e-6, .ell_max = ell_max}, method),
          x(gpu::random<double>({2, tokens, 2}, 1)),
          carry(gpu::random<double>({2, layer.carry_width(theta.widths)}, 2, 0.3)),
          y_bar(gpu::random<double>({2, tokens, 2}, 3)) {}
    layers::outcome on(const cuda::device& gpu) const {
        return layers::differentiate(layer, theta, x, carry, y_bar, gpu);
    }
};

/// Calls of use() that fail one after the other on one device, on which `undisturbed` goes on every time.
/// Returns how many there are.
template <class Use, class Undisturbed>
int check_failures_on(const cuda::device& gpu, const Use& use, const Undisturbed& undisturbed) {
    undisturbed();
    const std::size_t allocations = fake::state.memory.size();
    int failed = 0;
    for (int n = 0;; ++n) {
        gpu.trim();
        fake::state.calls = 0;
        fake::state.failing = n;
        fake::state.is_called_again = false;
        bool is_over = false;
        std::string message;
        try {
            use();
            is_over = fake::state.calls <= n;
        } catch (const cuda::error& e) {
            message = e.what();
        }
        fake::state.failing = never;
        if (is_over) return failed;
        CAPTURE(n);
        INFO(fake::state.failed, ": ", message);
        const bool is_named = message.find(fake::state.failed) != std::string::npos;
        CHECK((is_named || (message.empty() && fake::state.is_called_again)));
        ++failed;
        undisturbed();
        CHECK(fake::state.memory.size() == allocations);
    }
}

TEST_CASE("cuda failures: whichever call fails in three passes, the device goes on with the bits that it would have") {
    for (const index C : {index(1), fprnn::whole_sequence}) {  // graphs of a pass, and of an iteration
        CAPTURE(C);
        const devices guard;
        const problem p(C);
        const cuda::device gpu;
        const auto expected = p.on(gpu);
        fake::state.calls_of.clear();
        const auto use = [&] {
            for (int i = 0; i < 3; ++i) (void)p.on(gpu);
        };
        use();
        CHECK(fake::state.calls_of["cudaGraphLaunch"] >= 4);
        CHECK(check_failures_on(gpu, use, [&] { check_same(p.on(gpu), expected); }) > 300);
    }
}

/// Calls use(most), where most is of how many bytes an allocation may be: none, what failed before, and so on
/// until nothing fails. Every time the error says what failed, and after() follows with enough of everything.
/// Returns how often.
template <class Use, class After>
int check_out_of_memory(const Use& use, const After& after) {
    std::size_t most = 0;
    for (int times = 0;; ++times) {
        CAPTURE(most);
        std::size_t bytes = 0;
        try {
            use(most);
        } catch (const cuda::error& e) {
            CHECK(e.code() == cudaErrorMemoryAllocation);
            const std::string message = e.what(), call = "cudaMallocFromPoolAsync(";
            REQUIRE(message.find(call) == 0);
            bytes = std::stoul(message.substr(call.size()));
            CHECK(message == call + std::to_string(bytes) + " bytes, GPU 0): its words (itsName)");
        }
        fake::state.most = enough;
        if (bytes == 0) return times;
        REQUIRE(bytes > most);
        most = bytes;
        after();
    }
}

TEST_CASE("cuda failures: a layer that runs out of memory says of how much, and the device goes on") {
    for (const index C : {index(1), fprnn::whole_sequence}) {
        CAPTURE(C);
        const devices guard;
        const problem p(C);
        const cuda::device gpu;
        const auto expected = p.on(gpu);
        const auto parameters = gpu.copy(p.theta);
        const auto x = gpu.copy(p.x);
        const auto solve = [&](std::size_t most) {
            fake::state.most = most;
            (void)p.layer(parameters, x, gpu);
        };
        CHECK(check_out_of_memory(solve, [&] { check_same(p.on(gpu), expected); }) > 2);
    }
}

TEST_CASE("cuda failures: what a layer's adjoint adds to is what it was, whichever of its calls fails") {
    // Tokens one by one, time that is cut into chunks, and iterates that are kept.
    for (const problem& p : {problem(1), problem(fprnn::whole_sequence, 64, fprnn::implicit{.ell_max = 2}, 2),
                             problem(2, 4, fprnn::unrolled{})}) {
        CAPTURE(p.layer.schedule.length);
        const devices guard;
        cuda::device gpu;
        const auto parameters = gpu.copy(p.theta);
        const auto x = gpu.copy(p.x), y_bar = gpu.copy(p.y_bar);
        const auto some_x = gpu::random<double>(p.x.shape(), 5), some_theta = gpu::random<double>({p.theta.size()}, 6);
        auto x_bar = gpu.copy(some_x), theta_bar = gpu.copy(some_theta);
        decltype(problem::layer)::record<double, cuda::device> kept;
        const auto solve = [&] {
            (void)p.layer.run<double>(p.theta.widths, parameters.data(), x.view(), {}, gpu, &kept);
        };
        solve();
        const auto back = [&] {
            p.layer.back<double>(kept, x.view(), y_bar.view(), x_bar.view(), theta_bar.data(), gpu);
        };
        const auto begin = [&] { x_bar = gpu.copy(some_x), theta_bar = gpu.copy(some_theta); };
        for (int i = 0; i < 3; ++i) begin(), back();  // a graph, where it is one
        const auto more_x = cuda::copy_to_host(x_bar), more_theta = cuda::copy_to_host(theta_bar);
        const auto check_goes_on = [&] {
            CHECK(same_bits(cuda::copy_to_host(x_bar), some_x));
            CHECK(same_bits(cuda::copy_to_host(theta_bar), some_theta));
            solve();  // an unrolled pass that was interrupted leaves other iterates in the record
            back();
            CHECK(same_bits(cuda::copy_to_host(x_bar), more_x));
            CHECK(same_bits(cuda::copy_to_host(theta_bar), more_theta));
            begin();
        };
        begin();
        const auto back_within = [&](std::size_t most) {
            fake::state.most = most;
            back();
        };
        CHECK(check_out_of_memory(back_within, check_goes_on) > 1);

        begin();
        int calls = 0;
        for (int n = 0;; ++n) {
            fake::state.calls = 0;
            fake::state.failing = n;
            fake::state.is_called_again = false;
            bool fails = false;
            try {
                back();
            } catch (const cuda::error&) {
                fails = true;
            }
            fake::state.failing = never;
            CAPTURE(n);
            INFO(fake::state.failed);
            if (!fails) {
                CHECK(same_bits(cuda::copy_to_host(x_bar), more_x));
                CHECK(same_bits(cuda::copy_to_host(theta_bar), more_theta));
                begin();
                if (fake::state.is_called_again) continue;
                break;
            }
            ++calls;
            check_goes_on();
        }
        CHECK(calls > 30);
    }
}

TEST_CASE("cuda failures: training that runs out of memory leaves the parameters, and the device trains on") {
    const devices guard;
    const cuda::device gpu;
    const fprnn::word_problem data{.group = fprnn::finite_group("S3"), .seed = {3}};
    const fprnn::models::sequence_model model(fprnn::models::fp_rnn<1>(),
                                              {.vocabulary = 6, .classes = 6, .d_model = 2, .d_inner = 3, .layers = 1},
                                              {.length = 1, .tolerance = 1e-6});
    const auto begun = model.init<double>({1});
    auto theta = begun;
    // From this step on allocations are limited; 0 is before the first.
    const auto train = [&](index step, std::size_t most) {
        theta = begun;
        index steps = 0;
        const auto limit = [&] {
            if (steps++ == step) fake::state.most = most;
        };
        limit();
        const auto sample = [&](fprnn::view<std::int32_t> tokens, fprnn::view<std::int32_t> targets,
                                std::uint64_t first) {
            limit();
            data(tokens, targets, first);
        };
        fprnn::train(
            model, theta, {.batch = 2, .length = 4, .steps = 3, .warmup_steps = 1}, sample,
            [](const fprnn::training_step&) { return true; }, gpu);
    };
    const auto is = [&](const fprnn::parameter_tree<double>& expected) {
        return std::equal(theta.begin(), theta.end(), expected.begin(), expected.end());
    };
    train(never, 0);
    const auto trained = theta;
    CHECK(!is(begun));
    for (const index step : {0, 1, 2, 3}) {
        CAPTURE(step);
        const auto check_goes_on = [&] {
            CHECK(is(begun));
            train(never, 0);
            CHECK(is(trained));
        };
        const int times = check_out_of_memory([&](std::size_t most) { train(step, most); }, check_goes_on);
        CHECK(times > 3);
    }
}

}  // namespace

#endif
