#include <fprnn/backend/eigen.hpp>
#include <fprnn/mixers/block_diagonal.hpp>

#include <ops/checks.hpp>

namespace {

using fprnn::index;
using fprnn::tensor;
using team = fprnn::pack_team<double>;

using mixer = fprnn::block_diagonal_mixer<4>;

TEST_CASE("block_diagonal: channels of different blocks are not mixed") {
    const index D = 12;
    const auto k = checks::random<double>({mixer::raw_sizes(D)[0]}, 1), gates = checks::random<double>({3}, 2);
    const double* raw[] = {k.data(), gates.data()};
    tensor<double> q({mixer::size(D)}), e({D}), out({D}), scratch({mixer::scratch(D)}),
        in_prepare({mixer::prepare_scratch(D)});
    mixer::prepare<team, double>(D, raw, q.data(), in_prepare.data());
    e[5] = 1;
    mixer::mix<team, double>(D, q.data(), e.data(), nullptr, out.data(), scratch.data());
    for (index i = 0; i < D; ++i) CHECK((out[i] != 0) == (i >= 4 && i < 8));
}

TEST_CASE("block_diagonal: a width that is no multiple of the blocks is refused, with both numbers") {
    CHECK_THROWS_WITH_AS(mixer::check(10), "block_diagonal: blocks of 4 need d_inner to be a multiple of 4, got 10",
                         fprnn::argument_error);
}

}  // namespace
