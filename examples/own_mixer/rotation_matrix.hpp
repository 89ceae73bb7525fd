#pragma once

#include <fprnn/core/tensor.hpp>

#include <cmath>
#include <vector>

//! [dense]
/// The definition as a matrix, for tests: channels k and K + k are turned by [cos a, −sin a; sin a, cos a].
inline fprnn::tensor<double> rotation_matrix(fprnn::index D, const std::vector<fprnn::tensor<double>>& raw) {
    fprnn::tensor<double> Q({D, D});
    for (fprnn::index k = 0, K = D / 2; k < K; ++k) {
        const double a = 2 * std::atan(std::tanh(raw[0][k]) / 4);
        Q(k, k) = Q(K + k, K + k) = std::cos(a);
        Q(K + k, k) = std::sin(a);
        Q(k, K + k) = -std::sin(a);
    }
    return Q;
}
//! [dense]
