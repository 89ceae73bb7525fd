#pragma once

#include "network.hpp"

namespace experiment {

// What gpu.cu has, where the program has it.

void require_gpu(int gpu);
std::unique_ptr<network> make_network_on_gpu(const architecture& a, fp::chunked schedule, fp::adjoint adjoint,
                                             const machine& on);

}  // namespace experiment
