// expect: train: observe must be callable as observe(const fprnn::training_step&) and return whether to go on
#include <fprnn/fprnn.hpp>

void run(const fprnn::word_problem& data) {
    const fprnn::models::sequence_model model(fprnn::models::lstm(), {.vocabulary = 2, .classes = 2});
    auto theta = model.init<float>(fprnn::seed{0});
    fprnn::train(model, theta, {.steps = 10}, data, [](const fprnn::training_step&) {});
}
