#include <fprnn/core/parallel.hpp>

#include <doctest/doctest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using fprnn::index;
using fprnn::thread_pool;

TEST_CASE("parallel: every index is visited exactly once, by any number of threads") {
    for (const int threads : {1, 2, 3, 8}) {
        thread_pool pool(threads);
        CHECK(pool.threads() == threads);
        for (const index n : {1, 2, 7, 1000}) {
            std::vector<int> visits(static_cast<std::size_t>(n));
            pool.for_each(n, [&](index i) { ++visits[static_cast<std::size_t>(i)]; });
            CHECK(std::all_of(visits.begin(), visits.end(), [](int v) { return v == 1; }));
        }
    }
}

TEST_CASE("parallel: threads that the system does not start are done without") {
    // Stacks larger than the address space: none can be started, whatever this user's limits are.
    pthread_attr_t before, huge;
    REQUIRE(::pthread_getattr_default_np(&before) == 0);
    REQUIRE(::pthread_attr_init(&huge) == 0);
    REQUIRE(::pthread_attr_setstacksize(&huge, std::size_t{1} << 60) == 0);
    REQUIRE(::pthread_setattr_default_np(&huge) == 0);
    {
        thread_pool pool(4);
        CHECK(pool.threads() == 1);
        int visits = 0;
        pool.for_each(100, [&](index, index thread) { visits += thread == 0; });
        CHECK(visits == 100);
    }
    REQUIRE(::pthread_setattr_default_np(&before) == 0);
    CHECK(thread_pool(4).threads() == 4);
    ::pthread_attr_destroy(&huge);
    ::pthread_attr_destroy(&before);
}

TEST_CASE("parallel: an empty range calls nothing") {
    for (const int threads : {1, 4}) {
        thread_pool pool(threads);
        std::atomic<int> calls{0};
        pool.for_each(0, [&](index) { ++calls; });
        pool.for_each(-3, [&](index) { ++calls; });
        CHECK(calls == 0);
    }
}

TEST_CASE("parallel: the same pool runs 10,000 loops, and what they wrote is seen by the caller") {
    thread_pool pool(4);
    std::vector<index> sums(5);
    for (int round = 0; round < 10000; ++round)
        pool.for_each(5, [&](index i) { sums[static_cast<std::size_t>(i)] += i + 1; });
    for (index i = 0; i < 5; ++i) CHECK(sums[static_cast<std::size_t>(i)] == 10000 * (i + 1));
}

TEST_CASE("parallel: pools that are made and destroyed without work end") {
    for (int round = 0; round < 200; ++round) {
        thread_pool pool(3);
        if (round % 2) pool.for_each(2, [](index) {});
    }
}

TEST_CASE("parallel: an exception reaches the caller and the pool goes on working") {
    for (const int threads : {1, 4}) {
        thread_pool pool(threads);
        for (int round = 0; round < 200; ++round) {
            std::atomic<index> calls{0};
            const auto loop = [&] {
                pool.for_each(100, [&](index i) {
                    ++calls;
                    if (i == 37) throw std::runtime_error("index 37");
                });
            };
            CHECK_THROWS_WITH_AS(loop(), "index 37", std::runtime_error);
            CHECK(calls >= 1);
            calls = 0;
            pool.for_each(10, [&](index) { ++calls; });
            CHECK(calls == 10);
        }
    }
}

TEST_CASE("parallel: when every index throws, exactly one exception is passed on") {
    thread_pool pool(4);
    for (int round = 0; round < 200; ++round) CHECK_THROWS_AS(pool.for_each(50, [](index i) { throw i; }), index);
}

TEST_CASE("parallel: after an exception the indices not yet begun are skipped") {
    thread_pool pool(2);
    std::atomic<index> calls{0};
    const auto loop = [&] {
        pool.for_each(100'000'000, [&](index) {
            ++calls;
            throw 1;
        });
    };
    CHECK_THROWS_AS(loop(), int);
    CHECK(calls <= 2);
}

TEST_CASE("parallel: work that writes to memory of its own gives the same bits for any number of threads") {
    const auto compute = [](int threads) {
        thread_pool pool(threads);
        std::vector<double> out(500);
        pool.for_each(500, [&](index i) {
            double sum = 0;
            for (index k = 1; k <= i; ++k) sum += std::sin(static_cast<double>(k)) / static_cast<double>(k);
            out[static_cast<std::size_t>(i)] = sum;
        });
        return out;
    };
    const auto alone = compute(1);
    CHECK(compute(2) == alone);
    CHECK(compute(5) == alone);
}

TEST_CASE("parallel: a body may be const and need not be copyable") {
    struct body {
        std::atomic<index>* sum;
        body(std::atomic<index>* s) : sum(s) {}
        body(const body&) = delete;
        void operator()(index i) const { *sum += i; }
    };
    std::atomic<index> sum{0};
    const body add(&sum);
    thread_pool pool(3);
    pool.for_each(101, add);
    CHECK(sum == 5050);
}

TEST_CASE("parallel: fewer than one thread is refused") {
    CHECK_THROWS_WITH_AS(thread_pool(0), "thread_pool: threads must be at least 1, got 0", fprnn::argument_error);
    CHECK_THROWS_AS(thread_pool(-1), fprnn::argument_error);
}

TEST_CASE("thread_pool: a loop inside of a loop runs, and loops of several callers do") {
    fprnn::thread_pool pool(3);
    std::vector<int> seen(64);
    pool.for_each(8, [&](fprnn::index i) {
        pool.for_each(8, [&](fprnn::index j) { ++seen[static_cast<std::size_t>(8 * i + j)]; });
    });
    CHECK(seen == std::vector<int>(64, 1));

    std::vector<std::vector<int>> of_caller(4, std::vector<int>(100));
    {
        std::vector<std::jthread> callers;
        for (auto& mine : of_caller)
            callers.emplace_back([&pool, &mine] {
                for (int round = 0; round < 50; ++round)
                    pool.for_each(100, [&](fprnn::index i) { ++mine[static_cast<std::size_t>(i)]; });
            });
    }
    for (const auto& mine : of_caller) CHECK(mine == std::vector<int>(100, 50));
}

TEST_CASE("parallel: threads are numbered, fewer than threads and indices, and each number is one thread at a time") {
    for (const int threads : {1, 2, 5}) {
        thread_pool pool(threads);
        for (const index n : {1, 3, 100}) {
            const auto numbers = static_cast<std::size_t>(std::min<index>(n, threads));
            std::vector<std::atomic<int>> at_work(numbers);
            std::vector<int> visits(static_cast<std::size_t>(n));
            std::atomic<bool> good{true};
            for (int round = 0; round < 50; ++round)
                pool.for_each(n, [&](index i, index thread) {
                    if (thread < 0 || static_cast<std::size_t>(thread) >= numbers) {
                        good = false;
                        return;
                    }
                    auto& mine = at_work[static_cast<std::size_t>(thread)];
                    if (++mine != 1) good = false;
                    ++visits[static_cast<std::size_t>(i)];
                    --mine;
                });
            CHECK(good);
            CHECK(visits == std::vector<int>(static_cast<std::size_t>(n), 50));
        }
        pool.for_each(4, [&](index, index) { pool.for_each(3, [&](index, index inner) { CHECK(inner == 0); }); });
    }
}

/// The exit status of body() in a forked child, which is killed if it hangs; -1 then.
template <class Body>
int in_child(const Body& body) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        std::exit(body());  // not _exit: what is static is destroyed
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

index sum_by(thread_pool& pool) {
    std::vector<index> squares(100);
    pool.for_each(100, [&](index i) { squares[static_cast<std::size_t>(i)] = i * i; });
    return std::accumulate(squares.begin(), squares.end(), index{0});
}

TEST_CASE("thread_pool: a forked child exits, computes with threads of its own and forks again") {
    static thread_pool pool(3);
    CHECK(sum_by(pool) == 328350);
    CHECK(in_child([] { return 7; }) == 7);
    CHECK(in_child([] {
              std::atomic<int> together = 0;
              pool.for_each(3, [&](index) {
                  ++together;
                  while (together < 3) std::this_thread::yield();  // ends where there are three
              });
              return sum_by(pool) == 328350 && pool.threads() == 3 ? 5 : 1;
          }) == 5);
    CHECK(in_child([] {
              return sum_by(pool) == 328350 ? in_child([] { return sum_by(pool) == 328350 ? 3 : 1; }) : 1;
          }) == 3);
    CHECK(in_child([] {
              thread_pool local(2);
              return in_child([&] {
                  thread_pool& from_the_parent = local;
                  return sum_by(from_the_parent) == 328350 ? 0 : 1;
              });
          }) == 0);
    CHECK(sum_by(pool) == 328350);
}

}  // namespace
