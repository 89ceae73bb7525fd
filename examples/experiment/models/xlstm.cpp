#include "cpu_blocks.hpp"

#include <fprnn/models/swiglu.hpp>
#include <fprnn/models/xlstm.hpp>

experiment::blocks_on<fprnn::eigen> experiment::make_xlstm(const architecture& a, fp::chunked schedule,
                                                           fp::adjoint adjoint) {
    if (a.kind == architecture::block::mlstm)
        return make<fp::eigen>(fp::models::mlstm_block<4, architecture::mlstm_rows>(), a, schedule, adjoint);
    // --d-inner are the channels of its MLP.
    return make<fp::eigen>(fp::models::stack(fp::models::slstm_block(), fp::models::swiglu<fp::d_inner>()), a, schedule,
                           adjoint);
}
