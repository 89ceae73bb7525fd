#include "gpu.hpp"
#include "gpu_blocks.hpp"

#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/lstm.hpp>

namespace state_tracking {

using fp::cuda::device;

namespace {

/// Null when a.reflections are not among the compiled. Which of the two models it is the architecture says.
blocks_on<device> make_mixed(const architecture& a, fp::chunked schedule, fp::adjoint adjoint) {
    switch (a.reflections) {
        case 1: return make_with_reflections<1>(a, schedule, adjoint);
        case 2: return make_with_reflections<2>(a, schedule, adjoint);
        case 4: return make_with_reflections<4>(a, schedule, adjoint);
        case 8: return make_with_reflections<8>(a, schedule, adjoint);
        default: return nullptr;
    }
}

}  // namespace

template <>
blocks_on<device> make_fp_mamba(const architecture& a, fp::chunked schedule, fp::adjoint adjoint) {
    return make_mixed(a, schedule, adjoint);
}
template <>
blocks_on<device> make_fp_rnn(const architecture& a, fp::chunked schedule, fp::adjoint adjoint) {
    return make_mixed(a, schedule, adjoint);
}

template <>
blocks_on<device> make_mamba(const architecture& a, fp::chunked schedule, fp::adjoint adjoint) {
    return make<device>(fp::models::mamba(), a, schedule, adjoint);
}
template <>
blocks_on<device> make_lstm(const architecture& a, fp::chunked schedule, fp::adjoint adjoint) {
    return make<device>(fp::models::lstm(), a, schedule, adjoint);
}

std::unique_ptr<network> make_network_on_gpu(const architecture& a, fp::chunked schedule, fp::adjoint adjoint,
                                             const machine& on) {
    return std::make_unique<network_on<device>>(make_blocks<device>(a, schedule, adjoint),
                                                device(on.gpu, {.tf32 = on.tf32}),
                                                "GPU " + std::to_string(on.gpu) + (on.tf32 ? " with TF32" : ""));
}

void require_gpu(int gpu) { const device there(gpu); }

}  // namespace state_tracking
