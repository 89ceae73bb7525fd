#include "cpu_blocks.hpp"

#include <fprnn/models/fp_mamba2.hpp>

experiment::blocks_on<fprnn::eigen> experiment::make_mamba(const architecture& a, fp::chunked schedule,
                                                           fp::adjoint adjoint) {
    switch (a.kind) {
        case architecture::block::mamba: return make<fp::eigen>(fp::models::mamba(), a, schedule, adjoint);
        case architecture::block::published_mamba:
            return make<fp::eigen>(fp::models::published_mamba(), a, schedule, adjoint);
        default: return make<fp::eigen>(fp::models::mamba2(), a, schedule, adjoint);
    }
}
