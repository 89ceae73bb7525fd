// Where CUDA's headers are: iterations of many tokens that are started as graphs, over a runtime and kernels
// of the host.
#if __has_include(<cuda_runtime_api.h>)

#include "host_backend.hpp"
#include "layer_check.hpp"
#include "same_outcome.hpp"

#include <ops/checks.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace {

using fprnn::index;
using fprnn::tensor;
namespace cuda = fprnn::cuda;

TEST_CASE("cuda graph: what is written down happens when it is started, as often as it is, in memory of its own") {
    const host::guarded_devices guard;
    const cuda::device gpu;
    cuda::tensor<double> x(gpu, {3});
    x.clear();
    {
        cuda::detail::executable_graph add_two;
        add_two.become(gpu, cuda::detail::written_down(gpu, [&] {
                           auto two = cuda::tensor<double>(gpu, {3});
                           gpu.fill(3, two.data(), 2.0);
                           gpu.row<double>(fprnn::body::add<double>{3, two.data(), x.data()});
                       }));
        CHECK(cuda::copy_to_host(x)[1] == 0);
        add_two.start(gpu);
        add_two.start(gpu);
    }
    CHECK(cuda::copy_to_host(x)[1] == 4);
}

TEST_CASE("cuda graph: what is thrown while it is written down comes out, and the stream goes on") {
    const host::guarded_devices guard;
    const cuda::device gpu;
    cuda::tensor<double> x(gpu, {3});
    x.clear();
    CHECK_THROWS_WITH_AS(cuda::detail::written_down(gpu, [&] { throw std::runtime_error("so it is"); }), "so it is",
                         std::runtime_error);
    // The host cannot wait for what does not happen yet.
    CHECK_THROWS_WITH_AS(cuda::detail::written_down(gpu, [&] { (void)gpu.any(3, std::as_const(x).data()); }),
                         "cudaStreamSynchronize(GPU 0): its words (itsName)", cuda::error);
    gpu.fill(3, x.data(), 1.0);
    CHECK(cuda::copy_to_host(x)[2] == 1);
}

struct add_one {
    index channels;
    double* x;

    template <class Team>
    void row(index, index) const {
        Team::each(channels, [&](auto lane) { lane.store(x, lane.load(x) + 1); });
    }
};

/// A layer on 8 tokens of 5 sequences.
struct solved {
    fprnn::layer<decltype(fprnn::models::fp_mamba<2>())> layer;
    fprnn::dims size{.d_in = 4, .d_inner = 6, .d_state = 3};
    fprnn::layer_parameters<double> theta = fprnn::init<double>(layer, size, fprnn::seed{4});

    explicit solved(index length)
        : layer(fprnn::models::fp_mamba<2>(), {.length = length, .tolerance = 1e-12, .ell_max = 200},
                fprnn::implicit{.tolerance = 1e-12}) {}

    layers::outcome on(const cuda::device& gpu, std::uint64_t numbers = 1, index tokens = 8, index B = 5) const {
        return layers::differentiate(layer, theta, gpu::random<double>({B, tokens, 4}, numbers),
                                     gpu::random<double>({B, layer.carry_width(size)}, numbers + 1, 0.3),
                                     gpu::random<double>({B, tokens, 4}, numbers + 2), gpu);
    }
};

TEST_CASE("cuda graph: iterations that the host does not look at change nothing, and there are few that it does") {
    const host::guarded_devices guard;
    const solved problem(3);  // the last chunk is of two
    const auto count = [&](bool graphs, int& looks, int& calls) {
        fake::state.calls_of.clear();
        const int before = host::launches;
        auto out = problem.on(cuda::device(0, {.graphs = graphs}));
        looks = fake::state.calls_of["cudaStreamSynchronize"];
        calls = host::launches - before;
        for (const char* name :
             {"cudaGraphLaunch", "cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiate",
              "cudaGraphExecUpdate", "cublasDgemm", "cudaMemcpyAsync", "cudaMemsetAsync", "cudaMallocFromPoolAsync"})
            calls += fake::state.calls_of[name];
        return out;
    };
    int looks, calls, all_looks, all_calls;
    const auto got = count(true, looks, calls), expected = count(false, all_looks, all_calls);
    check_same(got, expected);
    MESSAGE("looks of the host ", looks, " instead of ", all_looks, ", calls ", calls, " instead of ", all_calls);
    CHECK(looks == all_looks);
    const auto longest = [](const fprnn::convergence& c) {
        return *std::max_element(c.total_iterations.begin(), c.total_iterations.end());
    };
    CHECK(looks < (longest(got.forward) + longest(got.back)) / 2);
    CHECK(calls < all_calls / 4);
}

TEST_CASE(
    "cuda graph: a pass of tokens one by one is one, from the second time on, with the numbers that it has then") {
    const host::guarded_devices guard;
    const solved problem(1);
    const cuda::device plain(0, {.graphs = false}), gpu;
    const auto count = [&](std::uint64_t numbers, index tokens, index B) {
        const auto expected = problem.on(plain, numbers, tokens, B);
        auto& calls = fake::state.calls_of;
        calls.clear();
        check_same(problem.on(gpu, numbers, tokens, B), expected);
        return std::array{calls["cudaStreamBeginCapture"], calls["cudaGraphInstantiate"], calls["cudaGraphExecUpdate"],
                          calls["cudaGraphLaunch"]};
    };
    using of = std::array<int, 4>;
    CHECK(count(1, 8, 5) == of{1, 1, 0, 1});
    CHECK(count(2, 8, 5) == of{4, 3, 1, 4});  // there, again, and back; what the adjoint adds is one in every call
    CHECK(count(3, 8, 5) == of{4, 0, 4, 4});
    CHECK(count(4, 5, 5) == of{1, 0, 1, 1});
    CHECK(count(5, 8, 4) == of{1, 0, 1, 1});
    CHECK(count(6, 8, 5) == of{4, 0, 4, 4});
    CHECK(count(7, 5, 5) == of{4, 3, 1, 4});
    CHECK(count(8, 8, 4) == of{4, 3, 1, 4});
    CHECK(count(9, 3, 5) == of{1, 0, 1, 1});
    CHECK(count(10, 3, 5) == of{1, 0, 1, 1});  // less than a graph is worth
    gpu.trim();
    CHECK(fake::state.graphs == 0);
    CHECK(count(11, 8, 5) == of{4, 4, 0, 4});
}

TEST_CASE(
    "cuda graph: a pass in which the host looks, or takes memory, or gives it back, goes on as it would without") {
    const host::guarded_devices guard;
    const cuda::device gpu;
    cuda::tensor<double> x(gpu, {4});
    const auto pass = [&](index key, const std::function<void()>& between) {
        fake::state.calls_of.clear();
        x.clear();
        gpu.pass(8, std::span(&key, 1), [&] {
            gpu.by_rows(4, [&] {
                gpu.fill(4, x.data(), 1.0);
                between();
                gpu.row<double>(fprnn::body::add<double>{4, x.data(), x.data()});
            });
        });
        const auto calls =
            std::pair(fake::state.calls_of["cudaStreamBeginCapture"], fake::state.calls_of["cudaGraphLaunch"]);
        CHECK(cuda::copy_to_host(x)[3] == 2);
        return calls;
    };
    using of = std::pair<int, int>;
    const auto nothing = [] {};
    double seen = 0;
    const auto look = [&] { seen = gpu.seen(4, std::as_const(x).data())[2]; };
    CHECK(pass(1, nothing) == of(0, 0));
    CHECK(pass(1, nothing) == of(1, 1));
    CHECK(pass(1, look) == of(1, 1));
    CHECK(seen == 1);
    CHECK(pass(1, nothing) == of(0, 0));  // it would be looked at again

    std::optional<cuda::tensor<double>> taken;
    const auto take = [&] { taken.emplace(gpu, fprnn::shape{3}); };
    CHECK(pass(2, take) == of(0, 0));
    CHECK(pass(2, take) == of(1, 1));
    CHECK(pass(2, nothing) == of(1, 1));
    CHECK(fake::state.memory.count(taken->data()) == 1);
    const auto* data = taken->data();
    CHECK(pass(2, [&] { taken.reset(); }) == of(1, 1));
    CHECK(fake::state.memory.count(const_cast<double*>(data)) == 0);
    CHECK(pass(2, [&] {
              tensor<double> here({4});
              gpu.put(4, here.data(), x.data());
              gpu.fill(4, x.data(), 1.0);
          }) == of(1, 1));
}

TEST_CASE("cuda graph: a long pass is several, of which later ones take the places of the first") {
    const host::guarded_devices guard;
    const cuda::device gpu;
    cuda::tensor<double> x(gpu, {4});
    const auto pass = [&](index programs) {
        fake::state.calls_of.clear();
        x.clear();
        gpu.pass(8, std::span(&programs, 1), [&] {
            gpu.by_rows(4, [&] {
                for (index i = 0; i < programs; ++i) {
                    gpu.row<double>(add_one{4, x.data()});
                    (void)gpu.clear(nullptr, 0);  // begins another program
                }
            });
        });
        auto& calls = fake::state.calls_of;
        const std::array counts{calls["cudaStreamBeginCapture"], calls["cudaGraphInstantiate"],
                                calls["cudaGraphExecUpdate"]};
        CHECK(cuda::copy_to_host(x)[3] == static_cast<double>(programs));
        return counts;
    };
    using of = std::array<int, 3>;
    constexpr int n = cuda::detail::programs_of_a_graph, most = cuda::detail::graphs_of_a_pass;
    for (const auto& [programs, graphs] : {std::pair(n, 1), {n + 1, 2}, {3 * n + 5, 4}, {most * n, most}}) {
        CHECK(pass(programs) == of{0, 0, 0});
        CHECK(pass(programs) == of{graphs, graphs, 0});
        CHECK(pass(programs) == of{graphs, 0, graphs});
    }
    const index longest = (most + 2) * n + 7;
    CHECK(pass(longest) == of{0, 0, 0});
    CHECK(pass(longest) ==
          of{most + 3, most + 1, 2 + 1});  // the last, of 7, is another than what it takes the place of
    CHECK(pass(longest) == of{most + 3, 2, most + 3});
}

TEST_CASE("cuda graph: layers of one type and other widths are known apart") {
    const host::guarded_devices guard;
    const cuda::device gpu;
    const auto captures = [&](index D) {
        const fprnn::layer layer(fprnn::models::fp_rnn<1>(), fprnn::sequential());
        const auto theta = fprnn::init<double>(layer, {.d_in = 2, .d_inner = D}, fprnn::seed{4});
        fake::state.calls_of.clear();
        (void)layer(gpu.copy(theta), gpu.copy(gpu::random<double>({2, 5, 2}, 1)), gpu);
        return fake::state.calls_of["cudaStreamBeginCapture"];
    };
    CHECK(captures(3) == 0);
    CHECK(captures(300) == 0);
    CHECK(captures(3) == 1);
    CHECK(captures(300) == 1);
    CHECK(captures(3) == 1);
}

TEST_CASE("cuda graph: memory that graphs have is taken back from them where it does not suffice") {
    const host::guarded_devices guard;
    const cuda::device gpu;
    cuda::tensor<double> x(gpu, {4});
    for (int i = 0; i < 2; ++i) gpu.pass(8, {}, [&] { gpu.fill(4, x.data(), 1.0); });
    CHECK(fake::state.graphs == 1);
    fake::state.graphs_take_memory = true;
    const cuda::tensor<double> y(gpu, {4});
    CHECK(fake::state.graphs == 0);
}

TEST_CASE("cuda graph: where one begins and there is no memory, what nothing lies in is given back, once") {
    const host::guarded_devices guard;
    const cuda::device gpu;
    cuda::tensor<double> x(gpu, {3});
    x.clear();
    cuda::detail::executable_graph add;
    add.become(gpu, cuda::detail::written_down(gpu, [&] { gpu.row<double>(add_one{3, x.data()}); }));
    auto& calls = fake::state.calls_of;
    calls.clear();
    fake::state.without_memory = 1;
    add.start(gpu);
    CHECK(calls["cudaDeviceGraphMemTrim"] == 1);
    fake::state.without_memory = 2;
    try {
        add.start(gpu);
        FAIL("it was started");
    } catch (const cuda::error& e) {
        CHECK(e.code() == cudaErrorMemoryAllocation);
        CHECK(std::string(e.what()).find("cudaGraphLaunch(GPU 0)") == 0);
    }
    add.start(gpu);
    CHECK(cuda::copy_to_host(x)[1] == 2);
}

TEST_CASE("cuda graph: cuBLAS, too, has memory that nothing lies in, or says that it has none") {
    const host::guarded_devices guard;
    const cuda::device gpu;
    fake::state.without_memory = 2;
    try {
        (void)cuda::detail::blas::of(gpu);
        FAIL("there is a handle");
    } catch (const cuda::error& e) {
        CHECK(e.code() == cudaErrorMemoryAllocation);
        CHECK(std::string(e.what()).find("cublasCreate(GPU 0)") == 0);
    }
    fake::state.without_memory = 1;
    (void)cuda::detail::blas::of(gpu);
    CHECK(fake::handles == 1);
}

TEST_CASE("cuda graph: handles are made and destroyed when nobody captures") {
    const host::guarded_devices guard;
    const cuda::device gpu, other(0);
    std::atomic<int> handles = 0;
    std::jthread neighbour;
    (void)cuda::detail::written_down(gpu, [&] {
        neighbour = std::jthread([&] {
            (void)cuda::detail::blas::of(other);
            handles = fake::handles;
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        CHECK(handles == 0);
        // Nor within one's own capture.
        CHECK_THROWS_WITH_AS((void)cuda::detail::blas::of(gpu), "cublasCreate: its words (itsName)", cuda::error);
    });
    neighbour.join();
    CHECK(handles == 1);

    std::optional<cuda::device> third(std::in_place);
    (void)cuda::detail::blas::of(*third);
    std::atomic<bool> is_gone = false;
    {
        const std::shared_lock captures(cuda::detail::of_captures());
        neighbour = std::jthread([&] {
            third.reset();
            is_gone = true;
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        CHECK(!is_gone);
    }
    neighbour.join();
    CHECK(fake::handles == 1);
}

TEST_CASE("cuda graph: a handle is made though two threads capture all the time") {
    using clock = std::chrono::steady_clock;
    const host::guarded_devices guard;
    const cuda::device gpu;
    std::atomic<bool> stop = false;
    std::atomic<int> begun = 0;
    // Each until the other one has begun anew, so that there is always one, or for as long as no other can.
    const auto capture = [&] {
        while (!stop) {
            const std::shared_lock captures(cuda::detail::of_captures());
            const auto longest = clock::now() + std::chrono::milliseconds(50);
            for (const int mine = ++begun; begun == mine && !stop && clock::now() < longest;) std::this_thread::yield();
        }
    };
    std::jthread one(capture), two(capture);
    while (begun < 4) std::this_thread::yield();
    std::atomic<bool> is_made = false;
    std::jthread neighbour([&] {
        (void)cuda::detail::blas::of(gpu);
        is_made = true;
    });
    for (const auto longest = clock::now() + std::chrono::seconds(5); !is_made && clock::now() < longest;)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(is_made);
    stop = true;
}

TEST_CASE("cuda graph: an iteration that cannot be written down is called") {
    const host::guarded_devices guard;
    const solved problem(3);
    const auto expected = problem.on(cuda::device());
    fake::state.loads_while_capturing = false;
    check_same(problem.on(cuda::device()), expected);
}

TEST_CASE("cuda graph: a pass that cannot be captured is called, from then on") {
    const host::guarded_devices guard;
    const solved problem(1);
    const cuda::device gpu;
    const auto expected = problem.on(gpu);
    for (const bool loads : {false, false, true}) {
        fake::state.loads_while_capturing = loads;
        fake::state.calls_of.clear();
        check_same(problem.on(gpu), expected);
        CHECK(fake::state.calls_of["cudaGraphLaunch"] == (loads ? 1 : 0));  // what the adjoint adds
    }
    const auto work = [&](const cuda::device& on) {
        return problem.layer(problem.theta, gpu::random<double>({2, 8, 4}, 1), on).work;
    };
    const cuda::device other;
    const auto called = work(other);
    fake::state.captured = 0;
    fake::state.unloaded = 9;  // in the middle
    CHECK(work(other) == called);
    CHECK(fake::state.captured > 9);
}

TEST_CASE("cuda graph: whatever cannot be captured of a pass, it gives what it would have, the next one, too") {
    const host::guarded_devices guard;
    fake::state.guarded = false;  // there are many calls
    const solved problem(1);
    constexpr index tokens = 40;  // several graphs
    const auto expected = problem.on(cuda::device(), 1, tokens, 2);
    int n = 0;
    for (bool is_over = false; !is_over; n += 11) {
        CAPTURE(n);
        const cuda::device gpu;
        (void)problem.on(gpu, 2, tokens, 2);
        fake::state.captured = 0;
        fake::state.unloaded = n;
        fake::state.calls_of.clear();
        check_same(problem.on(gpu, 1, tokens, 2), expected);
        is_over = fake::state.captured <= n;
        if (is_over) CHECK(fake::state.calls_of["cudaGraphLaunch"] > 4);
        check_same(problem.on(gpu, 1, tokens, 2), expected);
    }
    CHECK(n > 100);
}

TEST_CASE("cuda graph: what a pass called before a capture failed happens once") {
    const host::guarded_devices guard;
    const cuda::device gpu;
    cuda::tensor<double> x(gpu, {4}), sum(gpu, {1});
    constexpr int programs = 3 * cuda::detail::programs_of_a_graph + 5;
    const auto pass = [&](index key) {
        x.clear();
        sum.clear();
        gpu.pass(8, std::span(&key, 1), [&] {
            gpu.by_rows(4, [&] {
                for (index i = 0; i < programs; ++i) {
                    gpu.row<double>(add_one{4, x.data()});
                    cuda::device::row_sums<double> all(gpu, 4, 1, sum.data());
                    gpu.rows<double>(4, fprnn::body::add_rows<double>{1, {x.data(), 1}, all.into});
                    all.finish();
                    gpu.clear(nullptr, 0);  // begins another program
                }
            });
        });
        CHECK(cuda::copy_to_host(x)[3] == programs);
        CHECK(cuda::copy_to_host(sum)[0] == 4 * programs * (programs + 1) / 2);
    };
    for (const int n : {0, 1, 40, 70, programs - 1, programs}) {
        CAPTURE(n);
        pass(n);
        pass(n);  // it knows what memory it needs
        fake::state.captured = 0;
        fake::state.unloaded = n;
        fake::state.calls_of.clear();
        pass(n);
        CHECK(fake::state.captured > n);
        CHECK(fake::state.calls_of["cudaGraphLaunch"] == n / cuda::detail::programs_of_a_graph);
        pass(n);
        CHECK(fake::state.calls_of["cudaGraphLaunch"] == n / cuda::detail::programs_of_a_graph);
    }
}

TEST_CASE("cuda graph: a pass that throws is not there, and the next one is") {
    const host::guarded_devices guard;
    const cuda::device gpu;
    cuda::tensor<double> x(gpu, {4});
    x.clear();
    bool fails = false;
    std::optional<cuda::tensor<double>> taken(std::in_place, gpu, fprnn::shape{3});
    const auto pass = [&] {
        gpu.pass(8, {}, [&] {
            gpu.fill(4, x.data(), 1.0);
            if (!fails) return;
            taken.reset();
            throw std::runtime_error("so it is");
        });
    };
    pass();
    pass();
    x.clear();
    fails = true;
    const auto allocations = fake::state.memory.size();
    CHECK_THROWS_WITH_AS(pass(), "so it is", std::runtime_error);
    CHECK(cuda::copy_to_host(x)[0] == 0);
    CHECK(fake::state.memory.size() == allocations - 1);  // what was given back is, all the same
    fails = false;
    pass();
    CHECK(cuda::copy_to_host(x)[0] == 1);
}

/// Its only products stand within the pass.
auto only_products_inside() {
    using namespace fprnn::symbols;
    return in +
           linear<"out", fprnn::d_in>(fprnn::fixed_point(tanh(fprnn::parameter<"B">() + linear<"S">(shift(prev)))));
}

TEST_CASE("cuda graph: a pass that had no memory for cuBLAS the first time is called again") {
    const host::guarded_devices guard;
    const fprnn::layer layer(only_products_inside(), fprnn::sequential());
    const auto theta = fprnn::init<double>(layer, {.d_in = 4, .d_inner = 4}, fprnn::seed{4});
    const auto x = gpu::random<double>({2, 5, 4}, 1);
    const auto expected = layer(theta, x, cuda::device()).value;
    const cuda::device gpu;
    fake::state.without_memory = 2;
    CHECK_THROWS_AS((void)layer(theta, x, gpu), cuda::error);
    for (int i = 0; i < 3; ++i) CHECK(checks::same_bits(layer(theta, x, gpu).value, expected));
    CHECK(fake::state.calls_of["cudaGraphLaunch"] > 0);
}

TEST_CASE("cuda graph: a captured pass may be the first that multiplies") {
    const host::guarded_devices guard;
    const cuda::device gpu;
    cuda::tensor<double> x(gpu, {1, 1}), y(gpu, {1, 1});
    bool multiplies = false;
    const auto pass = [&] {
        gpu.pass(8, {}, [&] {
            gpu.fill(1, x.data(), 3.0);
            if (multiplies) gpu.multiply<double>({y.data(), 1, 1, 1}, {x.data(), 1, 1, 1}, {x.data(), 1, 1, 1}, true);
        });
    };
    pass();
    multiplies = true;
    for (int i = 0; i < 3; ++i) {
        y.clear();
        fake::state.calls_of.clear();
        CHECK_NOTHROW(pass());
        CHECK(cuda::copy_to_host(y)[0] == 9);
        CHECK(fake::state.calls_of["cudaGraphLaunch"] == 1);
    }
}

TEST_CASE("cuda graph: those that take memory, of a library's own, too, are instantiated anew") {
    const host::guarded_devices guard;
    const cuda::device gpu;
    cuda::tensor<double> x(gpu, {1, 1}), y(gpu, {1, 1});
    gpu.fill(1, x.data(), 3.0);
    (void)cuda::detail::blas::of(gpu);
    auto& calls = fake::state.calls_of;
    calls.clear();
    cuda::detail::executable_graph product;
    int instantiated = 0;
    for (const bool takes : {false, true, true, false, false}) {
        CAPTURE(takes);
        fake::products_take_memory = takes;
        y.clear();
        CHECK_NOTHROW(product.become(
            gpu, cuda::detail::written_down(gpu, [&] {
                gpu.multiply<double>({y.data(), 1, 1, 1}, {x.data(), 1, 1, 1}, {x.data(), 1, 1, 1}, true);
            })));
        product.start(gpu);
        CHECK(cuda::copy_to_host(y)[0] == 9);
        instantiated = calls["cudaGraphInstantiate"];
    }
    CHECK(instantiated == 4);
    CHECK(calls["cudaGraphExecUpdate"] == 1);  // the last takes none, as the one before
}

TEST_CASE("cuda graph: those that have not been used for longest are forgotten") {
    const host::guarded_devices guard;
    const cuda::device gpu;
    cuda::tensor<double> x(gpu, {4});
    const auto pass = [&](index tokens) {
        fake::state.calls_of.clear();
        gpu.pass(tokens, std::span(&tokens, 1), [&] { gpu.fill(4, x.data(), 1.0); });
        return fake::state.calls_of["cudaGraphLaunch"];
    };
    const auto most = static_cast<index>(cuda::detail::known_graphs::most);
    for (index t = 0; t < most; ++t) CHECK(pass(100 + t) == 0);
    CHECK(pass(100) == 1);
    CHECK(pass(10) == 0);  // in the place of 101
    CHECK(pass(100) == 1);
    CHECK(pass(102) == 1);
    CHECK(pass(101) == 0);
}

TEST_CASE("cuda graph: whichever call fails, its name is in the error, and the device has its memory back") {
    const fprnn::layer layer(fprnn::models::fp_rnn<1>(), fprnn::parallel({.tolerance = 1e-12, .ell_max = 9}),
                             fprnn::implicit{.tolerance = 1e-12, .ell_max = 9});
    const auto theta = fprnn::init<double>(layer, {.d_in = 2, .d_inner = 3}, fprnn::seed{4});
    const auto x = gpu::random<double>({1, 2, 2}, 1), y_bar = gpu::random<double>({1, 2, 2}, 2);
    const auto use = [&] { layers::differentiate(layer, theta, x, fprnn::tensor<double>(), y_bar, cuda::device()); };
    fake::state = {};
    use();
    CHECK(fake::state.calls_of["cudaGraphLaunch"] > 2);
    CHECK(host::check_failures(use) > 100);
}

TEST_CASE(
    "cuda graph: whichever call fails in three passes, its name is in the error, and the device has its memory back") {
    const fprnn::layer layer(fprnn::models::fp_rnn<1>(), fprnn::sequential({.tolerance = 1e-12, .ell_max = 9}),
                             fprnn::implicit{.tolerance = 1e-12, .ell_max = 9});
    const auto theta = fprnn::init<double>(layer, {.d_in = 2, .d_inner = 3}, fprnn::seed{4});
    const auto x = gpu::random<double>({1, 4, 2}, 1), y_bar = gpu::random<double>({1, 4, 2}, 2);
    const auto use = [&] {
        const cuda::device gpu;
        for (int i = 0; i < 3; ++i) layers::differentiate(layer, theta, x, fprnn::tensor<double>(), y_bar, gpu);
    };
    fake::state = {};
    use();
    CHECK(fake::state.calls_of["cudaGraphExecUpdate"] == 3 + 2);
    CHECK(host::check_failures(use) > 100);
}

}  // namespace

#endif
