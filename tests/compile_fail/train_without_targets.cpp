// expect: train: sample must be callable as sample(fprnn::view<std::int32_t> tokens, fprnn::view<std::int32_t> targets
#include <fprnn/fprnn.hpp>

void zeros(fprnn::view<std::int32_t> tokens, std::uint64_t) { std::fill(tokens.begin(), tokens.end(), 0); }
void run() {
    const fprnn::models::sequence_model model(fprnn::models::lstm(), {.vocabulary = 2, .classes = 2});
    auto theta = model.init<float>(fprnn::seed{0});
    fprnn::train(model, theta, {.steps = 10}, zeros, [](const fprnn::training_step&) { return true; });
}
