#include "cpu_blocks.hpp"

#ifdef EXPERIMENT_CUDA
#include "../gpu.hpp"
#endif

#include <cstdio>

namespace experiment {

void require_there([[maybe_unused]] const machine& m) {
#ifdef EXPERIMENT_CUDA
    if (m.cuda) require_gpu(m.gpu);
#endif
}

namespace {
blocks_on<fp::eigen> make_blocks(const architecture& a, fp::chunked schedule, const fp::adjoint& adjoint) {
    using kind = architecture::block;
    switch (a.kind) {
        case kind::fp_mamba:
            if (a.gate != architecture::gating::outside) return make_fp_mamba_gated(a, schedule, adjoint);
            if (!(a.sees_y == architecture::dependence{})) return make_fp_mamba_dependent(a, schedule, adjoint);
            return (a.convolution ? make_fp_mamba_convolved : make_fp_mamba)(a, schedule, adjoint);
        case kind::fp_mamba2: return make_fp_mamba2(a, schedule, adjoint);
        case kind::fp_rnn:
            return (a.sees_y == architecture::dependence{} ? make_fp_rnn : make_fp_rnn_independent)(a, schedule,
                                                                                                    adjoint);
        case kind::mamba:
        case kind::published_mamba:
        case kind::mamba2: return make_mamba(a, schedule, adjoint);
        case kind::delta_product:
        case kind::deltanet:
        case kind::gated_deltanet:
        case kind::gated_delta_product: return make_delta_rule(a, schedule, adjoint);
        case kind::mlstm:
        case kind::slstm: return make_xlstm(a, schedule, adjoint);
        case kind::lstm: return make_lstm(a, schedule, adjoint);
        case kind::transformer: return make_transformer(a, schedule, adjoint);
    }
    return nullptr;
}
}  // namespace

std::unique_ptr<network> make_network(const architecture& a, fp::chunked schedule, fp::adjoint adjoint,
                                      const machine& on) {
#ifdef EXPERIMENT_CUDA
    if (on.cuda) return make_network_on_gpu(a, schedule, adjoint, on);
#endif
    const fp::eigen backend(on.threads);
    const int threads = backend.threads();
    if (threads < on.threads)
        std::fprintf(stderr, "experiment: the system started only %d of --threads %d; the numbers are the same\n",
                     threads, on.threads);
    return std::make_unique<network_on<fp::eigen>>(make_blocks(a, schedule, adjoint), backend,
                                                   std::to_string(threads) + (threads == 1 ? " thread" : " threads"));
}

}  // namespace experiment
