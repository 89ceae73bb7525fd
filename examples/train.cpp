// A state tracker from one include: FP-Mamba learns to multiply permutations on sequences of 16 and goes on
// to 128.
#include <fprnn/fprnn.hpp>

#include <cstdio>

namespace fp = fprnn;

int main() {
    //! [task]
    // Read elements x_0, x_1, … of a group, name x_0 x_1 ⋯ x_t after each.
    const fp::finite_group group("S3");
    const fp::word_problem data{.group = group, .seed = {1}};
    const fp::word_problem test{.group = group, .seed = {1}, .part = fp::word_problem::split::test};
    //! [task]

    //! [model]
    const fp::models::sequence_model model(fp::models::fp_mamba<4>(),
                                           {.vocabulary = group.order(), .classes = group.order()},
                                           fp::chunked{.length = 1, .tolerance = 1e-4}, fp::implicit{});
    auto theta = model.init<float>(fp::seed{0});
    //! [model]

    //! [train]
    const auto result = fp::train(
        model, theta, {.length = 16, .first_length = 2, .steps = 400}, data, [](const fp::training_step& step) {
            if (step.step % 100 == 0)
                std::printf("step %4lld  T = %2lld  loss %.4f\n", static_cast<long long>(step.step),
                            static_cast<long long>(step.length), step.loss);
            return true;
        });
    //! [train]

    //! [evaluate]
    for (const fp::index T : {16, 32, 64, 128}) {
        const auto e = fp::evaluate(model, theta, T, 256, test);
        std::printf("T = %3lld: %.3f of the sequences without a mistake, %.3f of the tokens converged\n",
                    static_cast<long long>(T), e.accuracy.sequence, e.convergence->share_converged);
    }
    //! [evaluate]
    return result.end == fp::training_end::steps ? 0 : 1;
}
