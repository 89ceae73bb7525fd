#include "world.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using fprnn::index;
using fprnn::testing::all_ranks;
using bytes = std::vector<std::byte>;

/// Another one for each rank and length.
bytes message_of(index rank, std::size_t n) {
    bytes b(n);
    for (std::size_t i = 0; i < n; ++i) b[i] = static_cast<std::byte>(static_cast<std::size_t>(rank) * 37 + i * i);
    return b;
}

// Of 7 bytes at most: longer ones are sent in parts.
TEST_CASE("world: messages arrive whole and in their order, in parts where they are long") {
    (void)all_ranks();
    fprnn::mpi::world all(MPI_COMM_WORLD, 7);
    const index size = all.size(), me = all.rank();
    for (const std::size_t n : {0, 1, 7, 8, 14, 100}) {
        CAPTURE(n);
        // To the next rank, but for the last.
        if (me + 1 < size) {
            all.send(message_of(me, n), me + 1);
            all.send(message_of(me + 100, n), me + 1);
        }
        if (me > 0) {
            bytes first(n), second(n);
            all.receive(first, me - 1);
            all.receive(second, me - 1);
            CHECK(first == message_of(me - 1, n));
            CHECK(second == message_of(me + 99, n));
        }
        bytes everywhere = me == 0 ? message_of(5, n) : bytes(n);
        all.broadcast(everywhere);
        CHECK(everywhere == message_of(5, n));
        const auto gathered = all.gather(message_of(me, n + static_cast<std::size_t>(me)));
        REQUIRE(gathered.size() == static_cast<std::size_t>(size));
        for (index r = 0; r < size; ++r)
            CHECK(gathered[static_cast<std::size_t>(r)] == message_of(r, n + static_cast<std::size_t>(r)));
    }
}

TEST_CASE("world: a second one uses MPI as it is, and its messages are its own") {
    fprnn::mpi::world& all = all_ranks();
    fprnn::mpi::world other;
    CHECK(other.size() == all.size());
    CHECK(other.rank() == all.rank());
    if (all.size() == 1) return;
    if (all.rank() == 0) {
        all.send(message_of(1, 3), 1);
        other.send(message_of(2, 3), 1);
    } else if (all.rank() == 1) {
        bytes one(3), two(3);
        other.receive(two, 0);
        all.receive(one, 0);
        CHECK(one == message_of(1, 3));
        CHECK(two == message_of(2, 3));
    }
}

TEST_CASE("world: what MPI refuses is an error that names the call") {
    fprnn::mpi::world& all = all_ranks();
    CHECK_THROWS_WITH_AS(all.send(message_of(0, 3), all.size()), doctest::Contains("fprnn::mpi::world: MPI_Send: "),
                         std::runtime_error);
    CHECK_THROWS_WITH_AS(fprnn::mpi::world(MPI_COMM_NULL),
                         "fprnn::mpi::world: expected a communicator, got MPI_COMM_NULL", std::runtime_error);
}

}  // namespace
