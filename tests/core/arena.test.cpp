#include <fprnn/core/arena.hpp>

#include <doctest/doctest.h>

#include <array>

namespace {

using pool = fprnn::scratch_pool<double>;

TEST_CASE("scratch_pool: leases that are repeated find the memory of the first time") {
    pool p;
    const auto round = [&] {
        std::array<const double*, 3> places{};
        pool::lease small(p, 10);
        places[0] = small.data();
        {
            pool::lease large(p, 1000);
            places[1] = large.data();
        }
        pool::lease middle(p, 100);
        places[2] = middle.data();
        return places;
    };
    round();
    const auto second = round();
    CHECK(second[1] == second[2]);  // the only one left that fits
    CHECK(round() == second);
}

TEST_CASE("scratch_pool: what is not leased can be freed, and what is leased stays") {
    pool p;
    {
        pool::lease first(p, 10);
        first.data()[9] = 7;
        p.clear();
        CHECK(first.data()[9] == 7);
        pool::lease second(p, 10);
        CHECK(second.data() != first.data());
    }
    p.clear();
    const pool::lease again(p, 5);
}

}  // namespace
