#include "cpu_blocks.hpp"

#include <fprnn/models/transformer.hpp>

experiment::blocks_on<fprnn::eigen> experiment::make_transformer(const architecture& a, fp::chunked schedule,
                                                                 fp::adjoint adjoint) {
    architecture with_keys = a;
    with_keys.size.d_key = a.size.d_inner / a.size.heads;
    return make<fp::eigen>(fp::models::transformer(), with_keys, schedule, adjoint);
}
