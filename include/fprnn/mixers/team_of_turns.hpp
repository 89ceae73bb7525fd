#pragma once

#include <fprnn/backend/reference.hpp>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

namespace fprnn::detail {

/// The threads of a team, of which one works at a time, until it waits for the others: then the next one
/// does. So what a body forgets to wait for is missing in every run.
class turns {
public:
    /// body() on `size` threads, of which the first, or the last, begins. Returns whether all have waited
    /// equally often; what one of them throws is thrown on.
    template <class Body>
    static bool take(int size, bool backwards, const Body& body) {
        turns all(size, backwards);
        std::exception_ptr thrown;
        {
            std::vector<std::jthread> threads;
            try {
                for (int rank = 0; rank < size; ++rank)
                    threads.emplace_back([&, rank] {
                        here_ = {&all, rank};
                        if (!all.wait_for_turn(rank)) return;
                        try {
                            body();
                        } catch (...) {
                            thrown = std::current_exception();
                        }
                        all.pass_on(rank, true);
                    });
            } catch (...) {
                all.give_turn_to(never);
                throw;
            }
            all.give_turn_to(backwards ? size - 1 : 0);
        }
        if (thrown) std::rethrow_exception(thrown);
        return std::equal(all.waits_.begin() + 1, all.waits_.end(), all.waits_.begin());
    }

    static int rank() { return here_.rank; }
    /// Nobody goes on before all have come who have not ended.
    static void wait_for_all() {
        turns& all = *here_.all;
        ++all.waits_[static_cast<std::size_t>(here_.rank)];
        all.pass_on(here_.rank, false);
        all.wait_for_turn(here_.rank);
    }
    /// What each thread brings, on every thread: rank after rank.
    template <std::size_t K>
    static std::vector<small_array<double, K>> gather(const small_array<double, K>& mine) {
        turns& all = *here_.all;
        const auto r = static_cast<std::size_t>(here_.rank);
        auto& places = all.places_[all.waits_[r] % 2];  // two, for nobody is two calls ahead of another
        places[r].assign(mine.values, mine.values + K);
        wait_for_all();
        std::vector<small_array<double, K>> parts(places.size());
        for (std::size_t i = 0; i < parts.size(); ++i)
            std::copy_n(places[i].begin(), std::min(K, places[i].size()), parts[i].values);
        return parts;
    }

private:
    static constexpr int nobody = -1, never = -2;

    turns(int size, bool backwards)
        : waits_(static_cast<std::size_t>(size)),
          left_(waits_.size()),
          step_(backwards ? size - 1 : 1),
          places_{std::vector<std::vector<double>>(waits_.size()), std::vector<std::vector<double>>(waits_.size())} {}

    void give_turn_to(int rank) {
        const std::lock_guard lock(guard_);
        turn_ = rank;
        passed_.notify_all();
    }
    bool wait_for_turn(int rank) {
        std::unique_lock lock(guard_);
        passed_.wait(lock, [&] { return turn_ == rank || turn_ == never; });
        return turn_ == rank;
    }
    void pass_on(int rank, bool leaves) {
        left_[static_cast<std::size_t>(rank)] = leaves ? 1 : 0;
        int next = rank;
        do next = (next + step_) % static_cast<int>(waits_.size());
        while (next != rank && left_[static_cast<std::size_t>(next)]);
        give_turn_to(next);
    }

    struct place {
        turns* all;
        int rank;
    };
    static inline thread_local place here_{};

    std::vector<index> waits_;
    std::vector<char> left_;
    int step_, turn_ = nobody;
    std::vector<std::vector<double>> places_[2];  ///< numbers of each rank
    std::mutex guard_;
    std::condition_variable passed_;
};

/// A team of several threads, which take turns: a thread has the channels rank, rank + size, …
struct team_of_turns {
    static constexpr int size = 3;
    static inline thread_local bool backwards = false;  ///< the last rank begins
    static inline thread_local bool together = true;    ///< in all runs so far, all have come to each sum, max and once
    static inline thread_local index most = 0;          ///< channels that it was asked for in all runs so far

    template <class Body>
    static void run(const Body& body) {
        index asked_for = most;
        together = turns::take(size, backwards,
                               [&] {
                                   body();
                                   asked_for = std::max(asked_for, most);
                               }) &&
                   together;
        most = asked_for;
    }

    template <class Body>
    static void each(index channels, Body&& body) {
        most = std::max(most, channels);
        for (index i = turns::rank(); i < channels; i += size) body(scalar_lane<double>{i});
    }
    template <std::size_t K, class Body>
    static small_array<double, K> sum(index channels, Body&& body) {
        small_array<double, K> mine{}, total{};
        const auto add = [](small_array<double, K>& to, const small_array<double, K>& part) {
            for (std::size_t k = 0; k < K; ++k) to[k] += part[k];
        };
        each(channels, [&](auto lane) { add(mine, body(lane)); });
        for (const auto& part : turns::gather(mine)) add(total, part);
        return total;
    }
    template <class Body>
    static double max(index channels, Body&& body) {
        constexpr double infinity = std::numeric_limits<double>::infinity();
        small_array<double, 2> mine{{-infinity, 0}};  // and how many are not finite
        each(channels, [&](auto lane) {
            const double x = body(lane);
            mine = {{std::max(mine[0], x), mine[1] + (math::is_finite(x) ? 0 : 1)}};
        });
        small_array<double, 2> total{{-infinity, 0}};
        for (const auto& part : turns::gather(mine)) total = {{std::max(total[0], part[0]), total[1] + part[1]}};
        return total[1] == 0 ? total[0] : NAN;
    }
    template <class Body>
    static void once(Body&& body) {
        turns::wait_for_all();
        if (turns::rank() == 0) body();
        turns::wait_for_all();
    }
};

}  // namespace fprnn::detail
