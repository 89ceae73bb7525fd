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

TEST_CASE("mixers: what a width does not allow is refused with both numbers") {
    CHECK_THROWS_WITH_AS(fprnn::dplr_mixer<4>::check(3), "dplr: R = 4 directions need d_inner >= 4, got 3",
                         fprnn::argument_error);
    CHECK_THROWS_WITH_AS(fprnn::block_diagonal_mixer<4>::check(10),
                         "block_diagonal: blocks of 4 need d_inner to be a multiple of 4, got 10",
                         fprnn::argument_error);
    CHECK_THROWS_WITH_AS(fprnn::selective_dense_mixer::check(257),
                         "selective_dense: d_inner must be at most 256, got 257", fprnn::argument_error);
    using product = fprnn::product_mixer<fprnn::householder_mixer<2>, fprnn::block_diagonal_mixer<4>>;
    CHECK_THROWS_WITH_AS(product::check(6), "block_diagonal: blocks of 4 need d_inner to be a multiple of 4, got 6",
                         fprnn::argument_error);
    constexpr index most = std::numeric_limits<index>::max();
    CHECK_THROWS_AS(fprnn::kronecker_mixer::check(most / 2), fprnn::argument_error);
    CHECK_THROWS_AS(fprnn::orthogonal_mixer::check(most / 2), fprnn::argument_error);
}

}  // namespace
