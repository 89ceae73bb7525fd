#pragma once

#include "fixed_point/tools.hpp"

#include <fprnn/backend/reference.hpp>
#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>

#include <doctest/doctest.h>

namespace fprnn::testing {

/// A block without the type of its expression.
struct block_plans {
    const plan<double, reference>& on_reference;
    const plan<double, eigen>& on_eigen;
};

/// Every entry of every gradient of a block, against central differences and, when it has a fixed point,
/// against the way back through every iteration; for every schedule, on both backends. For chunks of 2 also
/// truncated and neumann, with as many iterations or terms as the solve takes. `y_weight` scales the weight
/// of the norm in the loop: where the iteration has several fixed points, a smaller one makes it contract to
/// one.
void check_block_gradients(const block_plans& block, const dims& size, index B, index T, double shake_by,
                           double y_weight = 1);

template <class Root>
void check_block_gradients(Root, const dims& size, index B, index T, double shake_by, double y_weight = 1) {
    const block_plans block{plan_of<Root, double, reference>, plan_of<Root, double, eigen>};
    check_block_gradients(block, size, B, T, shake_by, y_weight);
}

}  // namespace fprnn::testing
