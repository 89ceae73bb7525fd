#pragma once

#include <fprnn/core/shape.hpp>

namespace fprnn {

/// What one call did, counted where it is called: what a backend repeats by itself is counted once, however
/// often it happens.
struct work_counters {
    index matrix_products = 0;     ///< products with rows of the iteration
    index hoisted_products = 0;    ///< products over all tokens, outside of the iteration
    index mixer_applications = 0;  ///< Q v + (I − Q) w, per token and iteration
    index evaluations = 0;         ///< f, per token and iteration

    work_counters& operator+=(const work_counters& o) {
        matrix_products += o.matrix_products;
        hoisted_products += o.hoisted_products;
        mixer_applications += o.mixer_applications;
        evaluations += o.evaluations;
        return *this;
    }
    /// What a block of a call's rows did: all blocks are one product.
    void add_block(const work_counters& o, bool is_first) {
        if (is_first) matrix_products += o.matrix_products, hoisted_products += o.hoisted_products;
        mixer_applications += o.mixer_applications;
    }
    friend bool operator==(const work_counters&, const work_counters&) = default;
};

}  // namespace fprnn
