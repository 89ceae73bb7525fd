// expect: mpi::all_at_once: attention has places in the whole sequence: use receive_carry and hand_on
#include <fprnn/models/transformer.hpp>
#include <fprnn/mpi/all_at_once.hpp>

void solve(fprnn::ranks& all, const fprnn::tensor<float>& x) {
    const fprnn::layer layer(fprnn::models::transformer());
    const auto theta = fprnn::init<float>(layer, {.d_in = 4});
    (void)fprnn::mpi::all_at_once(all, layer, theta, x);
}
