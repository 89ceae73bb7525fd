#include <fprnn/cuda/team_row.hpp>

#include <cuda/host_team.hpp>
#include <cuda/row_bodies.hpp>
#include <ops/checks.hpp>

/// The kernel bodies of the library, of which a thread block executes a row, by threads of the host: what
/// they write is what one thread writes, whatever the number of threads and of channels. ThreadSanitizer sees
/// them, too.
namespace {

using fprnn::index;
using fprnn::shape;
using fprnn::tensor;

template <class T, int Items = 0>
using row = fprnn::cuda::team_row<T, host::team, Items>;
static_assert(fprnn::team_of<row<double>, double> && fprnn::team_of<row<double, 4>, double>);

constexpr int teams[] = {1, 2, 5, 16};

template <class T>
std::vector<T*> pointers(std::vector<tensor<T>>& arrays) {
    std::vector<T*> x;
    for (auto& a : arrays) x.push_back(a.data());
    return x;
}

/// With Items of a row in registers of a thread, which are not enough for all rows.
template <class Body, class T, int Items = 0>
void check() {
    for (index D : {4, 5, 17, 64}) {
        std::vector<tensor<T>> arrays;
        for (index n : Body::sizes(D)) arrays.push_back(checks::random<T>(shape{n}, 10 + arrays.size()));
        auto alone = arrays;
        Body::template run<fprnn::serial_team<T>, T>(D, pointers(alone).data());
        for (int threads : teams) {
            if (Items > 0 && D > Items * threads) continue;
            auto together = arrays;
            const auto x = pointers(together);
            host::launch(1, threads, 0, [&](const host::team&) { Body::template run<row<T, Items>, T>(D, x.data()); });
            for (std::size_t i = 0; i < arrays.size(); ++i) {
                CAPTURE(D);
                CAPTURE(threads);
                CAPTURE(i);
                CHECK(checks::ulps(together[i], alone[i]) <= 6);
            }
        }
    }
}

TEST_CASE_TEMPLATE("rows: bodies write the same on any number of threads", Body, FPRNN_ROW_BODIES) {
    check<Body, float>();
    check<Body, double>();
}
TEST_CASE_TEMPLATE("rows: bodies write the same where a row that they hold is in registers", Body,
                   FPRNN_HOLDING_BODIES) {
    check<Body, float, 17>();
    check<Body, double, 4>();
}

TEST_CASE("rows: what is done once all have come before, and see afterwards") {
    for (int threads : teams) {
        int number = 0;
        host::launch(1, threads, 0, [&](const host::team&) {
            for (int i = 0; i < 20; ++i) {
                const int before = number;
                row<double>::once([&] { number = before + 1; });
                CHECK(number == i + 1);
            }
        });
        CHECK(number == 20);
    }
}

}  // namespace
