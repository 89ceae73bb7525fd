// A task of one's own, made as it is asked for, and the same from arrays: a memory of three bits that are
// written and read.
#include <fprnn/fprnn.hpp>

#include <algorithm>
#include <array>
#include <cstdio>

namespace fp = fprnn;

//! [sampler]
/// Token 2k + v writes the bit v into cell k; token 6 + k reads cell k, and then its bit is the target. Other
/// tokens have none.
struct memory {
    static constexpr fp::index cells = 3, vocabulary = 3 * cells, classes = 2;
    fp::seed seed{};

    /// Fills row b of tokens and targets, both [B,T], with sequence first + b.
    void operator()(fp::view<std::int32_t> tokens, fp::view<std::int32_t> targets, std::uint64_t first) const {
        for (fp::index b = 0; b < tokens.shape()[0]; ++b) {
            const fp::random_stream random(seed, first + static_cast<std::uint64_t>(b));  // of this sequence alone
            std::array<std::int32_t, cells> bits{};
            for (fp::index t = 0; t < tokens.shape()[1]; ++t) {
                const auto x = static_cast<std::int32_t>(random.below(t, vocabulary));
                const bool reads = x >= 2 * cells;
                tokens(b, t) = x;
                targets(b, t) = reads ? bits[static_cast<std::size_t>(x - 2 * cells)] : fp::ignored_target;
                if (!reads) bits[static_cast<std::size_t>(x / 2)] = x % 2;
            }
        }
    }
};
//! [sampler]

//! [stored]
/// Sequences that are there already, tokens and targets [N,T]: number s is row s mod N.
struct stored {
    fp::tensor<std::int32_t> all_tokens, all_targets;

    void operator()(fp::view<std::int32_t> tokens, fp::view<std::int32_t> targets, std::uint64_t first) const {
        const fp::index N = all_tokens.shape()[0], most = all_tokens.shape()[1], T = tokens.shape()[1];
        fp::require(T <= most, "stored",
                    [&] { return "sequences have " + std::to_string(most) + " tokens, got T = " + std::to_string(T); });
        for (fp::index b = 0; b < tokens.shape()[0]; ++b) {
            const auto s =
                static_cast<fp::index>((first + static_cast<std::uint64_t>(b)) % static_cast<std::uint64_t>(N));
            std::copy_n(&all_tokens(s, 0), T, &tokens(b, 0));
            std::copy_n(&all_targets(s, 0), T, &targets(b, 0));
        }
    }
};
//! [stored]

//! [real]
/// The sum of the numbers so far.
struct running_sum {
    static fp::index inputs() { return 1; }
    static fp::index outputs() { return 1; }

    void operator()(fp::view<float> x, fp::view<float> y, std::uint64_t first) const {  // both [B,T,1]
        for (fp::index b = 0; b < x.shape()[0]; ++b) {
            const fp::random_stream random(fp::seed{1}, first + static_cast<std::uint64_t>(b));
            float sum = 0;
            for (fp::index t = 0; t < x.shape()[1]; ++t) {
                x(b, t, 0) = static_cast<float>(0.3 * random.normal(t));
                y(b, t, 0) = sum += x(b, t, 0);
            }
        }
    }
};
//! [real]

int main() {
    //! [train]
    const fp::models::sequence_model model(
        fp::models::fp_mamba<2>(),
        {.vocabulary = memory::vocabulary, .classes = memory::classes, .d_model = 16, .d_inner = 16});
    auto theta = model.init<float>(fp::seed{0});
    const memory data{.seed = {1}}, unseen{.seed = {2}};
    fp::train(model, theta, {.length = 16, .steps = 1000, .optimiser = {.learning_rate = 0.01}}, data,
              [](const fp::training_step& step) {
                  if (step.step % 200 == 0)
                      std::printf("step %lld  loss %.4f\n", static_cast<long long>(step.step), step.loss);
                  return true;
              });
    //! [train]

    //! [evaluate]
    const auto made = fp::evaluate(model, theta, 64, 256, unseen);
    std::printf("T = 64: %.3f of the sequences without a mistake, %.3f of the tokens that are asked for\n",
                made.accuracy.sequence, made.accuracy.token);

    stored arrays{fp::tensor<std::int32_t>({256, 64}), fp::tensor<std::int32_t>({256, 64})};
    unseen(arrays.all_tokens, arrays.all_targets, 0);
    const auto read = fp::evaluate(model, theta, 64, 256, arrays);
    //! [evaluate]

    //! [sum]
    const fp::models::sequence_model adder(fp::models::lstm(),
                                           {.classes = 1, .d_model = 16, .d_inner = 16, .inputs = 1});
    auto weights = adder.init<float>(fp::seed{0});
    const auto before = fp::evaluate(adder, weights, 16, 256, running_sum{});
    fp::train(adder, weights, {.batch = 32, .length = 16, .steps = 200, .optimiser = {.learning_rate = 0.01}},
              running_sum{}, [](const fp::training_step&) { return true; });
    const auto after = fp::evaluate(adder, weights, 16, 256, running_sum{});
    std::printf("running sum: mean square %.4f, after training %.4f\n", before.loss, after.loss);
    //! [sum]
    if (after.loss > 0.2 * before.loss) return 1;
    return made.accuracy.sequence > 0.95 && read.answers == made.answers ? 0 : 1;
}
