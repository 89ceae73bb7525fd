// Where CUDA's headers are: programs of rows, executed by threads of the host.
#if __has_include(<cuda_runtime_api.h>)

#include "host_backend.hpp"
#include "layer_check.hpp"

#include <stdexcept>
#include <vector>

namespace {

using fprnn::index;
using fprnn::tensor;
namespace cuda = fprnn::cuda;

/// x[r] += by, for a number of times that is r's own.
struct count_down {
    double by;
    double *x, *left, *running;

    template <class Team>
    void row(index r, index) const {
        Team::once([&] {
            x[r] += by;
            left[r] -= 1;
            running[r] = left[r] > 0 ? 1 : 0;
        });
    }
};
/// A body of `Bytes` bytes.
template <int Bytes>
struct long_body {
    double* x;
    char rest[static_cast<std::size_t>(Bytes) - sizeof(double*)];

    template <class Team>
    void row(index r, index) const {
        Team::once([&] { x[r] += 1; });
    }
};
struct to_worker {
    fprnn::receiver<double> sum;

    template <class Team>
    void row(index r, index worker) const {
        Team::each(2, [&](auto lane) { lane.add(sum.at(r, worker), static_cast<double>(r + 1)); });
    }
};
struct long_row {
    index channels;
    double* x;

    template <class Team>
    void row(index, index) const {
        Team::each(channels, [&](auto lane) { lane.store(x, 2 * lane.load(x)); });
    }
};

/// n rows with as many rounds to go as their number says, of which row 0 has none.
struct rows_to_count {
    index n;
    cuda::tensor<double> x, left, running;

    rows_to_count(const cuda::device& gpu, index rows) : n(rows), x(gpu, {n}), left(gpu, {n}), running(gpu, {n}) {
        tensor<double> rounds({n}), more({n});
        for (index r = 0; r < n; ++r) rounds[r] = static_cast<double>(r), more[r] = r > 0 ? 1 : 0;
        gpu.put(n, rounds.data(), left.data());
        gpu.put(n, more.data(), running.data());
        x.clear();
    }
    count_down body(double by) { return {by, x.data(), left.data(), running.data()}; }
};

template <class Calls>
int launches_of(const Calls& calls) {
    const int before = host::launches;
    calls();
    return host::launches - before;
}

TEST_CASE("cuda programs: a row after the other goes through all calls, loops as often as it wants to, in one launch") {
    const host::guarded_devices guard;
    for (const int threads : {1, 3})
        for (const index n : {index(1), index(7), index(20)}) {
            host::threads = {.of_row = threads, .rows = threads, .of_grid = 1};
            const cuda::device gpu;
            rows_to_count rows(gpu, n);
            CHECK(launches_of([&] {
                      gpu.by_rows(n, [&] {
                          gpu.row<double>(long_row{n, rows.x.data()});
                          gpu.repeat_by_rows(n, rows.running.data(), [&] { gpu.rows<double>(n, rows.body(1)); });
                          gpu.row<double>(long_row{n, rows.x.data()});
                          gpu.fill(n, rows.left.data(), 5);
                          gpu.copy(n, rows.left.data(), rows.running.data());
                      });
                  }) == 1);
            const auto x = cuda::copy_to_host(rows.x), running = cuda::copy_to_host(rows.running);
            for (index r = 0; r < n; ++r) {
                CHECK(x[r] == 2 * static_cast<double>(r));
                CHECK(running[r] == 5);
            }
        }
}
TEST_CASE(
    "cuda programs: what is more than a kernel's arguments is several, also a loop, which the host then goes through") {
    const host::guarded_devices guard;
    constexpr index n = 5;
    constexpr int bytes = 1500;
    const cuda::device gpu;
    rows_to_count rows(gpu, n);
    const auto add = [&] { gpu.rows<double>(n, long_body<bytes>{rows.x.data(), {}}); };
    CHECK(launches_of([&] {
              gpu.by_rows(n, [&] {
                  for (int i = 0; i < 6; ++i) add();
              });
          }) == 3);
    for (const double x : cuda::copy_to_host(rows.x)) CHECK(x == 6);

    rows.x.clear();
    gpu.by_rows(n, [&] {
        add();
        gpu.repeat_by_rows(n, rows.running.data(), [&] {
            add(), add(), add();
            gpu.rows<double>(n, rows.body(100));
        });
        add();
    });
    // All rows go through the loop as often as the one that needs it most.
    for (const double x : cuda::copy_to_host(rows.x)) CHECK(x == 2 + 4 * 103);

    // More than is written down before it is started.
    rows.x.clear();
    gpu.by_rows(n, [&] {
        for (int i = 0; i < 100; ++i) add();
    });
    for (const double x : cuda::copy_to_host(rows.x)) CHECK(x == 100);
}
TEST_CASE("cuda programs: products, other numbers of rows and the host's looks come in between") {
    const host::guarded_devices guard;
    const cuda::device gpu;
    const index n = 4;
    rows_to_count rows(gpu, n);
    const auto add = [&](double by) { gpu.rows<double>(n, rows.body(by)); };
    cuda::tensor<double> product(gpu, {n}), pair(gpu, {2}), other(gpu, {2});
    pair.clear();
    other.clear();
    gpu.by_rows(n, [&] {
        add(1);
        gpu.multiply(fprnn::matrix<double>{product.data(), n, 1, 1},
                     fprnn::matrix<const double>{rows.x.data(), n, 1, 1},
                     fprnn::matrix<const double>{rows.x.data(), 1, 1, 1}, true);
        add(2);
        CHECK(gpu.seen(n, std::as_const(rows.x).data())[3] == 3);
        add(4);
        CHECK(gpu.any(n, std::as_const(rows.x).data()));
        const count_down two{1, pair.data(), other.data(), other.data()};
        add(8);
        gpu.rows<double>(2, two);
        add(16);
    });
    for (const double x : cuda::copy_to_host(rows.x)) CHECK(x == 31);
    for (const double x : cuda::copy_to_host(product)) CHECK(x == 1);
    for (const double x : cuda::copy_to_host(pair)) CHECK(x == 1);
    CHECK_THROWS_AS(
        gpu.by_rows(
            n, [&] { gpu.repeat_by_rows(n, rows.running.data(), [&] { gpu.seen(n, std::as_const(rows.x).data()); }); }),
        std::logic_error);
    add(1);  // and what was written down is forgotten
    for (const double x : cuda::copy_to_host(rows.x)) CHECK(x == 32);
}
TEST_CASE("cuda programs: sums over rows are added once, in the end") {
    const host::guarded_devices guard;
    for (const bool programs : {true, false}) {
        const cuda::device gpu(0, {.programs = programs});
        const index n = 19;  // more than there are workers
        cuda::tensor<double> to(gpu, {2}), also(gpu, {2});
        gpu.fill(2, to.data(), 0.5);
        also.clear();
        const int launches = launches_of([&] {
            gpu.by_rows(n, [&] {
                for (int i = 0; i < 3; ++i)
                    for (double* x : {to.data(), also.data(), static_cast<double*>(nullptr)}) {
                        cuda::device::row_sums<double> sums(gpu, n, 2, x);
                        if (x) gpu.rows<double>(n, to_worker{sums.into});
                        sums.finish();
                    }
            });
        });
        CHECK(launches == (programs ? 3 : 12));
        for (const double x : cuda::copy_to_host(to)) CHECK(x == 0.5 + 3 * 190);
        for (const double x : cuda::copy_to_host(also)) CHECK(x == 3 * 190);
    }
}

TEST_CASE("cuda programs: sums of many workers are added in groups") {
    struct {
        int multiprocessors;
        index n;
        int calls;
    } const cases[] = {{132, 1100, 2}, {132, 1000, 3}, {8, 64, 2}, {8, 63, 1}};
    for (const auto& of : cases)
        for (const bool programs : {true, false}) {
            const index n = of.n;
            CAPTURE(n);
            const host::guarded_devices guard;
            fake::state.multiprocessors = of.multiprocessors;
            const cuda::device gpu(0, {.programs = programs});
            cuda::tensor<double> to(gpu, {2});
            gpu.fill(2, to.data(), 0.5);
            const int launches = launches_of([&] {
                gpu.by_rows(n, [&] {
                    cuda::device::row_sums<double> sums(gpu, n, 2, to.data());
                    gpu.rows<double>(n, to_worker{sums.into});
                    sums.finish();
                });
            });
            CHECK(launches == 1 + of.calls);
            const double sum = 0.5 + static_cast<double>(n * (n + 1) / 2);
            for (const double x : cuda::copy_to_host(to)) CHECK(x == sum);
        }
}

TEST_CASE("cuda programs: sums over other rows are added at once, and calls that do not fit the rows are refused") {
    const host::guarded_devices guard;
    const cuda::device gpu;
    cuda::tensor<double> to(gpu, {3}), x(gpu, {8});
    to.clear();
    x.clear();
    gpu.by_rows(8, [&] {
        gpu.row<double>(long_row{8, x.data()});
        cuda::device::row_sums<double> sums(gpu, 5, 3, to.data());
        gpu.rows<double>(5, to_worker{sums.into});
        sums.finish();
        CHECK(gpu.seen(3, std::as_const(to).data())[1] == 15);
        CHECK_THROWS_AS(gpu.copy(7, std::as_const(x).data(), x.data()), std::logic_error);
        CHECK_THROWS_AS(gpu.fill(9, x.data(), 1), std::logic_error);
        CHECK_THROWS_AS(gpu.row<double>(long_row{12, x.data()}), std::logic_error);
        CHECK_THROWS_AS(gpu.by_rows(4, [] {}), std::logic_error);
        gpu.by_rows(8, [&] { gpu.fill(8, x.data(), 2); });
    });
    for (const double number : cuda::copy_to_host(x)) CHECK(number == 2);
}

struct add_float {
    double* x;

    template <class Team>
    void row(index r, index) const {
        Team::once([&] { x[r] += 1; });
    }
};

/// As bodies of several source files have kernels of their own, so have those of several types on the host.
TEST_CASE("cuda programs: calls of several kernels are several programs, and their loops are the host's") {
    const host::guarded_devices guard;
    const cuda::device gpu;
    const index n = 4;
    rows_to_count rows(gpu, n);
    const auto add = [&] { gpu.rows<float>(n, add_float{rows.x.data()}); };
    CHECK(launches_of([&] {
              gpu.by_rows(n, [&] {
                  add(), add();
                  gpu.rows<double>(n, rows.body(10));
                  add();
              });
          }) == 3);
    for (const double number : cuda::copy_to_host(rows.x)) CHECK(number == 13);
    gpu.by_rows(n, [&] {
        gpu.repeat_by_rows(n, std::as_const(rows.running).data(), [&] {
            add();
            gpu.rows<double>(n, rows.body(100));
        });
    });
    // Row 3 needs two rounds, each of two kernels, which all rows go through; the host looks after four.
    for (const double number : cuda::copy_to_host(rows.x)) CHECK(number == 13 + 4 * 101);
}

/// What the programs are for. One launch a call is the reference.
TEST_CASE("cuda programs: a layer's numbers are the same with and without, and a token takes few launches") {
    const host::guarded_devices guard;
    const fprnn::layer layer(fprnn::models::fp_mamba<2>(), {.length = 1, .tolerance = 1e-12, .ell_max = 200},
                             fprnn::implicit{.tolerance = 1e-13});
    const fprnn::dims size{.d_in = 4, .d_inner = 6, .d_state = 3};
    const auto theta = fprnn::init<double>(layer, size, fprnn::seed{4});
    const auto use = [&](index tokens, bool programs, int& launches) {
        const auto x = gpu::random<double>({5, tokens, 4}, 1), y_bar = gpu::random<double>({5, tokens, 4}, 3);
        const auto carry = gpu::random<double>({5, layer.carry_width(size)}, 2, 0.3);
        const int before = host::launches;
        auto out = layers::differentiate(layer, theta, x, carry, y_bar,
                                         cuda::device(0, {.programs = programs, .graphs = false}));
        launches = host::launches - before;
        return out;
    };
    int few, many, fewer;
    const auto expected = use(6, false, many), got = use(6, true, few);
    (void)use(3, true, fewer);
    CHECK(gpu::distance(got.value, expected.value) <= layers::most);
    CHECK(gpu::distance(got.carry, expected.carry) <= layers::most);
    CHECK(gpu::distance(got.x_bar, expected.x_bar) <= layers::most);
    CHECK(gpu::distance(got.theta_bar, expected.theta_bar) <= layers::most);
    CHECK(got.forward.iterations == expected.forward.iterations);
    CHECK((few - fewer) / 3 <= 8);
    CHECK(few < many / 10);
}

}  // namespace

#endif
