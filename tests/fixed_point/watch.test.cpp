#include <fprnn/backend/reference.hpp>
#include <fprnn/fixed_point/watch.hpp>

#include <doctest/doctest.h>
#include <ops/checks.hpp>

#include <limits>
#include <vector>

namespace {

using fprnn::index;
using fprnn::shape;
using fprnn::tensor;
namespace body = fprnn::body;
namespace engine = fprnn::engine;
using team = fprnn::serial_team<float>;

constexpr index sequences = 3, tokens = 4, channels = 5, stride = sequences * channels;
constexpr float infinity = std::numeric_limits<float>::infinity();

/// The watches of a chunk, and the rows that it steps from.
struct chunk {
    std::vector<engine::watch<float>> one;
    std::vector<float> running = std::vector<float>(sequences, 1);
    std::vector<engine::tally> tallies = std::vector<engine::tally>(sequences);
    tensor<float> from;

    chunk(const tensor<float>& from_, double tolerance, int ell_max)
        : one(sequences, engine::watch<float>(engine::iteration_rule{tolerance, ell_max})), from(from_) {}
    engine::watches<float> watches() { return {one.data(), running.data(), tallies.data()}; }
};

/// Steps of a chunk, in one body and in three, of which the first and the last have a row for each token:
/// they leave the same bits.
void check_same(const tensor<float>& from, const std::vector<tensor<float>>& to, double tolerance, bool arrives) {
    const auto ell_max = static_cast<int>(to.size());
    chunk whole(from, tolerance, ell_max), parts(from, tolerance, ell_max);
    std::vector<float> memory(static_cast<std::size_t>(engine::token_steps<float>::size(sequences, tokens)), NAN);
    const engine::token_steps<float> steps(memory.data(), sequences, tokens, sequences);
    for (const tensor<float>& next : to) {
        for (index s = 0; s < sequences; ++s)
            body::advance<float>{channels, tokens, stride, next.data(), whole.from.data(), arrives, whole.watches()}
                .row<team>(s, 0);
        const auto of = parts.watches();
        for (index r = 0; r < sequences * tokens; ++r)
            body::measure_steps<float>{channels, next.data(), parts.from.data(), of, steps}.row<team>(r, 0);
        for (index s = 0; s < sequences; ++s) body::take_steps<float>{arrives, of, steps}.row<team>(s, 0);
        for (index r = 0; r < sequences * tokens; ++r)
            body::go_to_steps<float>{channels, next.data(), parts.from.data(), steps}.row<team>(r, 0);
        CHECK(checks::same_bits(parts.from, whole.from));
        CHECK(parts.running == whole.running);
    }
    for (std::size_t s = 0; s < sequences; ++s) {
        CAPTURE(s);
        for (chunk* c : {&whole, &parts}) c->one[s].report(c->tallies[s], 1);
        CHECK(parts.tallies[s].status == whole.tallies[s].status);
        CHECK(parts.tallies[s].iterations == whole.tallies[s].iterations);
        CHECK(parts.tallies[s].residual == whole.tallies[s].residual);
    }
}

TEST_CASE("watch: a step of a chunk is the same in one body and in three, which have a row for each token") {
    const shape s{tokens, sequences, channels};
    const auto from = checks::random<float>(s, 1);
    std::vector<tensor<float>> to;
    for (const unsigned k : {2u, 3u, 4u}) to.push_back(checks::random<float>(s, k));
    for (const bool arrives : {false, true}) {
        check_same(from, to, 1e-3, arrives);
        // A sequence that settles, one that becomes infinite and one that is no number, at other tokens and
        // steps.
        auto special = to;
        for (index t = 0; t < tokens; ++t)
            for (index i = 0; i < channels; ++i) special[1](t, 0, i) = special[0](t, 0, i);
        special[1](2, 1, 3) = infinity;
        special[0](3, 2, 4) = NAN;
        check_same(from, special, 1e-3, arrives);
        // A relative step that is too large for a number, where the absolute one is not.
        auto vanishing = to;
        auto far = from;
        for (index i = 0; i < channels; ++i) far(1, 1, i) = 1e31f, vanishing[0](1, 1, i) = 0;
        check_same(far, {vanishing[0]}, 1e-3, arrives);
    }
}

}  // namespace
