// A mixer as a linear map that is used alone, Q v: an associative memory that is written by the delta rule.
#include "delta_rule/projection.hpp"

#include <fprnn/fprnn.hpp>
#include <fprnn/mixers/check_mixer.hpp>

#include <array>
#include <cstdio>

namespace fp = fprnn;

/// Pairs of a name, 0 to 3, and a thing, 0 to 3, as the token 4 name + thing; the token 16 + name asks for
/// the thing that came with it last.
struct recall {
    fp::seed seed{};

    void operator()(fp::view<std::int32_t> tokens, fp::view<std::int32_t> targets, std::uint64_t first) const {
        for (fp::index b = 0; b < tokens.shape()[0]; ++b) {
            const fp::random_stream random(seed, first + static_cast<std::uint64_t>(b));
            std::array<std::int32_t, 4> things{};
            for (fp::index t = 0; t < tokens.shape()[1]; ++t) {
                const auto name = static_cast<std::int32_t>(t < 4 ? t : random.below(3 * t, 4));
                const bool asks = t >= 4 && random.below(3 * t + 1, 2) == 1;
                const auto i = static_cast<std::size_t>(name);
                if (!asks) things[i] = static_cast<std::int32_t>(random.below(3 * t + 2, 4));
                tokens(b, t) = asks ? 16 + name : 4 * name + things[i];
                targets(b, t) = asks ? things[i] : fp::ignored_target;
            }
        }
    }
};

int main() {
    const auto verdict = fp::check_mixer<projection_mixer<4>>({.several_threads = false});
    std::printf("%s\n", verdict.to_string().c_str());

    using namespace fp::symbols;
    auto u = fp::rms_norm<"norm">(in);
    auto x = fp::linear<"x">(u);
    //! [convolution]
    // v_t = w_0 ⊙ x_t + w_1 ⊙ x_{t−1} + w_2 ⊙ x_{t−2}, with x_t = 0 before the first token
    auto v = fp::parameter<"w0">() * x + fp::parameter<"w1">() * shift(x) + fp::parameter<"w2">() * shift(shift(x));
    //! [convolution]

    //! [model]
    // S_t = S_{t−1} + (β_t ⊙ (V_t − S_{t−1})) k_t k_tᵀ, read along another direction as S_t r_t r_tᵀ
    auto K = projection<4>(normalise(fp::linear<"k", fp::fixed_width<4>>(u)));
    auto R = projection<4>(normalise(fp::linear<"r", fp::fixed_width<4>>(u)));
    auto beta = sigmoid(fp::affine<"beta">(u));
    auto S = fixed_point(shift(prev) + K * (beta * (v - shift(prev))));

    const fp::models::sequence_model model(in + fp::linear<"out", fp::d_in>(R * S),
                                           {.vocabulary = 20, .classes = 4, .d_model = 16, .d_inner = 16});
    //! [model]

    auto theta = model.init<float>(fp::seed{0});
    const fp::training_options options{.length = 16, .steps = 400, .optimiser = {.learning_rate = 0.02}};
    fp::train(model, theta, options, recall{.seed = {1}}, [](const fp::training_step& step) {
        if (step.step % 100 == 0) std::printf("step %lld  loss %.3f\n", static_cast<long long>(step.step), step.loss);
        return true;
    });
    const auto test = fp::evaluate(model, theta, 64, 256, recall{.seed = {2}});
    std::printf("T = 64: %.3f of the answers are right\n", test.accuracy.token);
    return verdict.ok() && test.accuracy.token > 0.95 ? 0 : 1;
}
