#pragma once

#include "fixed_point/tools.hpp"

/// What weight-normalised maps are, without the library: of plain loops.
namespace fprnn::testing {

inline double length_of_row(view<const double> v, index r) {
    double squares = 0;
    for (index i = 0; i < v.shape()[1]; ++i) squares += v(r, i) * v(r, i);
    return std::sqrt(squares);
}
/// W of the map `name`: W_r = g_r v_r / ‖v_r‖.
inline tensor<double> plain_weights(const parameter_tree<double>& theta, const std::string& name) {
    const auto v = theta[name], g = theta[name + ".scale"];
    tensor<double> W(v.shape());
    for (index r = 0; r < v.shape()[0]; ++r)
        for (index i = 0; i < v.shape()[1]; ++i) W(r, i) = g[r] * (v(r, i) / length_of_row(v, r));
    return W;
}
/// The parameters of the same expression with plain maps.
inline void put_plain_weights(const parameter_tree<double>& theta, parameter_tree<double>& plain) {
    for (const auto& p : plain.entries()) {
        if (!theta.contains(p.name + ".scale")) {
            std::copy(theta[p.name].begin(), theta[p.name].end(), plain[p.name].data());
            continue;
        }
        const auto W = plain_weights(theta, p.name);
        std::copy(W.begin(), W.end(), plain[p.name].data());
    }
}
/// The gradient with respect to theta, of that with respect to the plain parameters: ḡ_r = W̄_r · v̂_r and
/// v̄_r = (g_r / ‖v_r‖) (W̄_r − v̂_r (v̂_r · W̄_r)).
inline void send_to_directions(const parameter_tree<double>& theta, const parameter_tree<double>& plain_bar,
                               parameter_tree<double>& theta_bar) {
    for (const auto& p : plain_bar.entries()) {
        const auto W_bar = plain_bar[p.name];
        if (!theta.contains(p.name + ".scale")) {
            std::copy(W_bar.begin(), W_bar.end(), theta_bar[p.name].data());
            continue;
        }
        const auto v = theta[p.name], g = theta[p.name + ".scale"];
        for (index r = 0; r < v.shape()[0]; ++r) {
            const double length = length_of_row(v, r);
            double along = 0;
            for (index i = 0; i < v.shape()[1]; ++i) along += v(r, i) / length * W_bar(r, i);
            theta_bar[p.name + ".scale"][r] = along;
            for (index i = 0; i < v.shape()[1]; ++i)
                theta_bar[p.name](r, i) = g[r] / length * (W_bar(r, i) - v(r, i) / length * along);
        }
    }
}

}  // namespace fprnn::testing
