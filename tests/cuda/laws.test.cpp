// Where CUDA's headers are: the laws of layers on cuda::device, whose kernels run on the host.
#if __has_include(<cuda_runtime_api.h>)

#include "host_backend.hpp"
#include "mixer_laws_check.hpp"

namespace {

/// Memory is within the host's reach here, because there is much to compute.
class devices {
public:
    devices() { fake::state.guarded = false; }

private:
    host::guarded_devices all_;
};

TEST_CASE("cuda laws: the adjoint is the gradient, whatever the schedule") {
    const devices gpu;
    laws::check_gradients(fprnn::models::fp_rnn<1>());
    laws::check_gradients(fprnn::models::fp_mamba<2>());
}
TEST_CASE_TEMPLATE("cuda laws: schedules reach one fixed point, and one gradient", T, float, double) {
    const devices gpu;
    laws::check_schedules<T>(fprnn::models::fp_rnn<1>());
}
TEST_CASE("cuda laws: a sequence is what it is by itself, wherever it stands and whatever is beside it") {
    const devices gpu;
    laws::check_neighbours(fprnn::models::fp_rnn<1>());
    laws::check_neighbours(fprnn::models::fp_mamba<2>());
}
TEST_CASE_TEMPLATE("cuda laws: calls that go on from each other give what one call does", T, float, double) {
    const devices gpu;
    laws::check_streaming<T>(fprnn::models::fp_rnn<1>());
}
TEST_CASE("cuda laws: FP-Mamba's calls that go on from each other give what one call does") {
    const devices gpu;
    laws::check_streaming<double>(fprnn::models::fp_mamba<2>(), 1, {1, 4, 8}, laws::of_sizes<double>);
}
TEST_CASE("cuda laws: householder is a mixer where a layer is one") {
    const devices gpu;
    laws::check_mixer<2, 1>();
    laws::check_mixer<3, 2>();
}

}  // namespace

#endif
