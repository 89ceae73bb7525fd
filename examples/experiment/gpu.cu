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

/// The options refuse other blocks with --device cuda.
blocks_on<device> make_blocks(const architecture& a, fp::chunked schedule, fp::adjoint adjoint) {
    switch (a.kind) {
        case architecture::block::fp_mamba:
        case architecture::block::fp_rnn: return make_mixed(a, schedule, adjoint);
        case architecture::block::mamba: return make<device>(fp::models::mamba(), a, schedule, adjoint);
        case architecture::block::lstm: return make<device>(fp::models::lstm(), a, schedule, adjoint);
        default: return nullptr;
    }
}

}  // namespace

std::unique_ptr<network> make_network_on_gpu(const architecture& a, fp::chunked schedule, fp::adjoint adjoint,
                                             const machine& on) {
    return std::make_unique<network_on<device>>(make_blocks(a, schedule, adjoint), device(on.gpu, {.tf32 = on.tf32}),
                                                "GPU " + std::to_string(on.gpu) + (on.tf32 ? " with TF32" : ""));
}

void require_gpu(int gpu) { const device there(gpu); }

}  // namespace experiment
