#pragma once

#include <fprnn/core/host_device.hpp>
#include <fprnn/cuda/team.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

/// What kernels need of a team, by whatever threads it is.
namespace team_check {

/// x ↦ a x + b of whole numbers: its composition is associative without roundings, and not commutative.
struct map {
    std::uint32_t a, b;

    friend bool operator==(const map&, const map&) = default;
};
struct later_after_earlier {
    FPRNN_BOTH map operator()(const map& earlier, const map& later) const {
        return {later.a * earlier.a, later.a * earlier.b + later.b};
    }
};

/// How often each of them, so that what the team keeps between calls is used again.
inline constexpr int times = 3;

/// Numbers that run() writes.
inline int count(int size) {
    int calls = 2;
    for (int n = 1; n <= size; n *= 2) ++calls;
    return times * calls * size;
}

/// Reduces x [size] twice and scans 1, 2, 4 … size of it, into one row of `out` after the other.
template <fprnn::cuda::team Team>
FPRNN_BOTH void run(const Team& team, const map* x, map* out) {
    const int size = team.size(), rank = team.rank();
    for (int time = 0; time < times; ++time) {
        for (int by : {time, time + 1}) {
            out[rank] = team.reduce(x[(rank + by) % size], later_after_earlier{});
            out += size;
        }
        for (int n = 1; n <= size; n *= 2) {
            out[rank] = team.scan(x[(rank + time) % size], later_after_earlier{}, n);
            out += size;
            team.barrier();
        }
    }
}

inline std::vector<map> numbers(int size) {
    std::vector<map> x;
    for (int i = 0; i < size; ++i)
        x.push_back({2u * static_cast<std::uint32_t>(i) + 3, 5u * static_cast<std::uint32_t>(i) + 1});
    return x;
}

/// What run() is to write.
inline void check(int size, const std::vector<map>& x, const std::vector<map>& out) {
    REQUIRE(out.size() == static_cast<std::size_t>(count(size)));
    const auto of = [&](int first, int last, int by) {
        const auto at = [&](int i) { return x[static_cast<std::size_t>((i + by) % size)]; };
        map all = at(first);
        for (int i = first + 1; i <= last; ++i) all = later_after_earlier{}(all, at(i));
        return all;
    };
    auto got = out.begin();
    for (int time = 0; time < times; ++time) {
        for (int by : {time, time + 1})
            for (int rank = 0; rank < size; ++rank) CHECK(*got++ == of(0, size - 1, by));
        for (int n = 1; n <= size; n *= 2)
            for (int rank = 0; rank < size; ++rank) CHECK(*got++ == of(rank - rank % n, rank, time));
    }
}

}  // namespace team_check
