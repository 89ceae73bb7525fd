// The laws of layers on a GPU.
#include "gpu_main.hpp"

#include <fprnn/cuda/backend.cuh>

#include "laws_check.hpp"

namespace laws {

TEST_CASE("cuda laws: the adjoint is the gradient, whatever the schedule") {
    check_gradients(fprnn::models::fp_rnn<1>());
    check_gradients(fprnn::models::fp_mamba<2>());
}
TEST_CASE("cuda laws: schedules reach one fixed point, and one gradient") {
    check_schedules<double>(fprnn::models::fp_rnn<1>());
}
TEST_CASE("cuda laws: a sequence is what it is by itself, wherever it stands and whatever is beside it") {
    check_neighbours(fprnn::models::fp_rnn<1>());
    check_neighbours(fprnn::models::fp_mamba<2>());
}
TEST_CASE("cuda laws: calls that go on from each other give what one call does") {
    check_streaming<double>(fprnn::models::fp_rnn<1>());
    check_streaming<double>(fprnn::models::fp_mamba<2>(), 1, {1, 4, 8}, of_sizes<double>);
}

}  // namespace laws
