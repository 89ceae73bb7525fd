#include "cpu_blocks.hpp"

#ifdef EXPERIMENT_CUDA
#include "gpu.hpp"
#endif

#include <cstdio>

namespace experiment {

void require_there([[maybe_unused]] const machine& m) {
#ifdef EXPERIMENT_CUDA
    if (m.cuda) require_gpu(m.gpu);
#endif
}

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
    return std::make_unique<network_on<fp::eigen>>(make_blocks<fp::eigen>(a, schedule, adjoint), backend,
                                                   std::to_string(threads) + (threads == 1 ? " thread" : " threads"));
}

}  // namespace experiment
