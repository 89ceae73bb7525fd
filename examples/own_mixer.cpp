// A mixer of one's own (own_mixer/rotation.hpp): against its dense matrix, its gradients, and in a model that learns.
#include "own_mixer/rotation.hpp"

#include <fprnn/fprnn.hpp>

#include <algorithm>
#include <cstdio>

namespace fp = fprnn;

int main() {
    //! [dense]
    using mixer = rotation_mixer<2>;
    const double r[] = {0.3, -2}, *raw[] = {r}, *none = nullptr;
    const auto Q_ij = [&](int i, int j) {  // two blocks [cos a, −sin a; sin a, cos a]
        const double a = std::tanh(r[j / 2]) / 2;
        return i / 2 != j / 2 ? 0 : i == j ? std::cos(a) : i < j ? -std::sin(a) : std::sin(a);
    };
    double q[4], e[4][4] = {{1}, {0, 1}, {0, 0, 1}, {0, 0, 0, 1}}, column[4], difference = 0;
    mixer::prepare<fp::serial_team<double>>(4, raw, q);
    for (int j = 0; j < 4; ++j) {  // column j of Q is Q e_j
        mixer::mix<fp::serial_team<double>, double>(4, q, e[j], none, column, nullptr);
        for (int i = 0; i < 4; ++i) difference = std::max(difference, std::abs(column[i] - Q_ij(i, j)));
    }
    std::printf("Q differs from its dense matrix by %.1e\n", difference);
    //! [dense]

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
    // Ones and zeros in, after each whether the ones so far are odd: the word problem of the group of two elements.
    const fp::word_problem parity{.group = fp::finite_group("Z2")};
    fp::tensor<std::int32_t> tokens({2, 5}), targets({2, 5});
    parity(tokens, targets, 0);

    auto exact = model;
    exact.block.schedule.tolerance = 1e-13;
    exact.block.adjoint = fp::implicit{.tolerance = 1e-13};
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
    const bool right = difference < 1e-15 && worst.error < 1e-7 && test.accuracy.sequence > 0.99 &&
                       test.convergence->share_converged == 1;
    return right ? 0 : 1;
}
