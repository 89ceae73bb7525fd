#include <cuda/host_team.hpp>
#include <cuda/team_check.hpp>

/// The host's team, on which kernels' bodies are tested, is the team that they are written for.
TEST_CASE("cuda team: threads of the host reduce and scan in the order of their ranks") {
    for (int size : {1, 2, 8, 32}) {
        const auto x = team_check::numbers(size);
        std::vector<team_check::map> out(static_cast<std::size_t>(team_check::count(size)));
        host::launch(1, size, 0, [&](const host::team& team) { team_check::run(team, x.data(), out.data()); });
        team_check::check(size, x, out);
    }
}

TEST_CASE("cuda team: several teams at a time are strangers") {
    constexpr int teams = 3, size = 4;
    std::vector<int> sums(teams);
    host::launch(teams, size, 8, [&](const host::team& team) {
        auto* const shared = static_cast<int*>(team.shared());
        if (team.rank() == 0) *shared = team.block();
        team.barrier();
        const int sum = team.reduce(*shared, fprnn::cuda::detail::addition{});
        if (team.rank() == 0) sums[static_cast<std::size_t>(team.block())] = sum;
    });
    CHECK(sums == std::vector{0, size, 2 * size});
}
