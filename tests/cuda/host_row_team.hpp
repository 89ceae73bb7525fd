#pragma once

#include <fprnn/backend/reference.hpp>

#include <barrier>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

namespace host {

/// Threads of the host execute one row as the threads of cuda::row_block do: thread i owns the channels i, i + threads … of every
/// array of the row. What all see of one without a barrier, ThreadSanitizer reports.
template <class T>
class row_team {
public:
    /// body() on all threads of a team.
    template <class Body>
    static void run(int of_row, const Body& body) {
        run_all(1, of_row, [&](int) { body(); });
    }
    /// body(team) on all threads of several teams at a time.
    template <class Body>
    static void run_all(int teams, int of_row, const Body& body) {
        std::vector<std::unique_ptr<crew>> crews;
        std::vector<std::jthread> running;
        if (teams == 1 && of_row == 1) {
            crew alone(1);
            crew_ = &alone;
            rank_ = 0;
            return body(0);
        }
        for (int t = 0; t < teams; ++t) {
            crews.push_back(std::make_unique<crew>(of_row));
            for (int rank = 0; rank < of_row; ++rank)
                running.emplace_back([&body, t, rank, all = crews.back().get()] {
                    crew_ = all;
                    rank_ = rank;
                    body(t);
                });
        }
    }

    template <class Body>
    static void each(fprnn::index channels, Body&& body) {
        for (fprnn::index i = rank_; i < channels; i += crew_->threads) body(fprnn::scalar_lane<T>{i});
    }

    template <std::size_t K, class Body>
    static fprnn::small_array<T, K> sum(fprnn::index channels, Body&& body) {
        fprnn::small_array<T, K> mine{};
        each(channels, [&](auto lane) {
            const auto part = body(lane);
            for (std::size_t k = 0; k < K; ++k) mine[k] += part[k];
        });
        for (std::size_t k = 0; k < K; ++k) mine[k] = reduce(mine[k], [](T a, T b) { return a + b; });
        return mine;
    }

    template <class Body>
    static T max(fprnn::index channels, Body&& body) {
        T largest = -INFINITY, taint = 0;
        each(channels, [&](auto lane) {
            const T x = body(lane);
            largest = fprnn::math::maximum(largest, x);
            taint += x * T(0);
        });
        taint = reduce(taint, [](T a, T b) { return a + b; });
        largest = reduce(largest, fprnn::math::maximum<T>);
        return taint == T(0) ? largest : T(NAN);
    }

    template <class Body>
    static void once(Body&& body) {
        crew_->all.arrive_and_wait();
        if (rank_ == 0) body();
        crew_->all.arrive_and_wait();
    }

private:
    struct crew {
        explicit crew(int n) : threads(n), all(n), parts(static_cast<std::size_t>(n)) {}
        int threads;
        std::barrier<> all;
        std::vector<T> parts;
    };

    template <class Operation>
    static T reduce(T mine, Operation operation) {
        crew_->parts[static_cast<std::size_t>(rank_)] = mine;
        crew_->all.arrive_and_wait();
        T total = crew_->parts[0];
        for (std::size_t i = 1; i < crew_->parts.size(); ++i) total = operation(total, crew_->parts[i]);
        crew_->all.arrive_and_wait();
        return total;
    }

    static inline thread_local crew* crew_ = nullptr;
    static inline thread_local int rank_ = 0;
};
static_assert(fprnn::team_of<row_team<double>, double>);

}  // namespace host
