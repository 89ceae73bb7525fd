#include <fprnn/expression/mixers.hpp>

#include <ops/checks.hpp>

namespace {

using fprnn::index;
using fprnn::tensor;

static_assert(fprnn::compact_mixer<fprnn::dplr_mixer<2>>);

TEST_CASE("dplr: one direction is one reflection") {
    const index D = 17;
    const auto u = checks::random<double>({D}, 1), a = checks::random<double>({1}, 2),
               v = checks::random<double>({D}, 3), w = checks::random<double>({D}, 4);
    const double* raw[] = {u.data(), a.data()};
    const auto apply = [&]<class M>(M) {
        tensor<double> q({M::size(D)}), out({D}), scratch({2 * D});
        M::template prepare<fprnn::pack_team<double>, double>(D, raw, q.data());
        M::template mix<fprnn::pack_team<double>, double>(D, q.data(), v.data(), w.data(), out.data(), scratch.data());
        return out;
    };
    CHECK(checks::ulps(apply(fprnn::dplr_mixer<1, 2>{}), apply(fprnn::householder_mixer<1, 2>{})) <= 4);
}

TEST_CASE("dplr: more directions than channels are refused, with both numbers") {
    CHECK_THROWS_WITH_AS(fprnn::dplr_mixer<4>::check(3), "dplr: R = 4 directions need d_inner >= 4, got 3",
                         fprnn::argument_error);
}

}  // namespace
