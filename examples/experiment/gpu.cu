#include "gpu.hpp"
#include "gpu_blocks.hpp"

#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/lstm.hpp>

#include <string>
#include <utility>

namespace experiment {

using fp::cuda::device;

namespace {

/// FP-Mamba or FP-RNN, as the architecture says. Errors: a number of reflections that is not among R.
template <int... R>
blocks_on<device> make_one_of(std::integer_sequence<int, R...>, const architecture& a, fp::chunked schedule,
                              fp::adjoint adjoint) {
    blocks_on<device> result;
    ((a.reflections == R ? void(result = make_with_reflections<R>(a, schedule, adjoint)) : void()), ...);
    fp::require(result != nullptr, "--device cuda", [&] {
        return "--reflections must be one of" + (std::string() + ... + (" " + std::to_string(R))) +
               ", for which it was built (CMake's FPRNN_GPU_REFLECTIONS), got " + std::to_string(a.reflections);
    });
    return result;
}
blocks_on<device> make_mixed(const architecture& a, fp::chunked schedule, fp::adjoint adjoint) {
    return make_one_of(std::integer_sequence<int, EXPERIMENT_REFLECTIONS>{}, a, schedule, adjoint);
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

// The options refuse these two with --device cuda.
template <>
blocks_on<device> make_fp_mamba2(const architecture&, fp::chunked, fp::adjoint) {
    return nullptr;
}
template <>
blocks_on<device> make_delta_product(const architecture&, fp::chunked, fp::adjoint) {
    return nullptr;
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

}  // namespace experiment
