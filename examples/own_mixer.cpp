// A mixer of one's own (own_mixer/rotation.hpp): against the laws of mixers and its definition, and in a
// model that learns.
#include "own_mixer/rotation.hpp"
#include "own_mixer/rotation_matrix.hpp"

#include <fprnn/fprnn.hpp>
#include <fprnn/mixers/check_mixer.hpp>

#include <cstdio>

namespace fp = fprnn;

int main() {
    //! [laws]
    const auto verdict = fp::check_mixer<rotation_mixer<4>>({.dense = rotation_matrix, .norm_at_most_one = true});
    std::printf("%s\n", verdict.to_string().c_str());
    //! [laws]

    //! [model]
    using namespace fp::symbols;
    auto x = fp::linear<"x">(fp::rms_norm<"norm">(in));
    auto Q = rotation<4, "Q">(cat(x, shift(prev)));
    auto lambda = sigmoid(fp::affine<"lambda">(x));
    auto h = fixed_point(scan(lambda, (1 - lambda) * (Q * x + (I - Q) * prev)));

    fp::models::sequence_model model(in + fp::linear<"out", fp::d_in>(h),
                                     {.vocabulary = 2, .classes = 2, .d_model = 8, .d_inner = 8});
    //! [model]

    //! [gradient]
    // Ones and zeros in, after each whether the ones so far are odd: the word problem of the group of two
    // elements.
    const fp::word_problem parity{.group = fp::finite_group("Z2")};
    fp::tensor<std::int32_t> tokens({2, 5}), targets({2, 5});
    parity(tokens, targets, 0);

    auto exact = model;
    exact.block().schedule.tolerance = 1e-13;
    exact.block().adjoint = fp::implicit{.tolerance = 1e-13};
    const auto start = exact.init<double>(fp::seed{0});
    fp::tape<double> tape(start);
    const auto gradient = tape.gradient(cross_entropy(tape, exact(tape, tokens), targets));
    const auto loss = [&](const auto& theta) { return fp::cross_entropy(exact.evaluate(theta, tokens), targets).loss; };
    const auto worst = fp::gradcheck(loss, start, gradient);
    std::printf("%s\n", worst.to_string().c_str());
    //! [gradient]

    //! [train]
    auto theta = model.init<float>(fp::seed{0});
    const fp::training_options options{
        .length = 8, .first_length = 2, .steps = 300, .optimiser = {.learning_rate = 0.01}};
    fp::train(model, theta, options, parity, [](const auto&) { return true; });
    auto unseen = parity;
    unseen.part = fp::word_problem::split::test;
    const auto test = fp::evaluate(model, theta, 32, 256, unseen);
    std::printf("T = 32: %.3f of the sequences without a mistake, %.0f iterations (median of the largest of each)\n",
                test.accuracy.sequence, test.convergence->median_iterations);
    //! [train]
    const bool right =
        verdict.ok() && worst.error < 1e-7 && test.accuracy.sequence > 0.99 && test.convergence->share_converged == 1;
    return right ? 0 : 1;
}
