#pragma once

#include <fprnn/core/tensor.hpp>

#include <cmath>
#include <vector>

//! [dense]
/// The definition as a matrix, for tests: blocks [cos a, −sin a; sin a, cos a].
inline fprnn::tensor<double> rotation_matrix(fprnn::index D, const std::vector<fprnn::tensor<double>>& raw) {
    fprnn::tensor<double> Q({D, D});
    for (fprnn::index d = 0; d < D; d += 2) {
        const double a = std::tanh(raw[0][d / 2]) / 2;
        Q(d, d) = Q(d + 1, d + 1) = std::cos(a);
        Q(d + 1, d) = std::sin(a);
        Q(d, d + 1) = -std::sin(a);
    }
    return Q;
}
//! [dense]
