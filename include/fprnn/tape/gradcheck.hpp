#pragma once

#include <fprnn/core/gradcheck.hpp>
#include <fprnn/tape/parameters.hpp>

#include <utility>
#include <vector>

namespace fprnn {

/// gradcheck for a function of named parameters, f(theta), and the gradient that a tape gave. Errors: other
/// names or shapes.
template <class F>
gradcheck_result gradcheck(F&& f, parameter_tree<double> theta, const parameter_tree<double>& gradient,
                           gradcheck_options options = {}) {
    std::vector<gradcheck_input> inputs;
    for (const auto& e : theta.entries()) inputs.push_back({e.name, theta[e.name], gradient[e.name]});
    require(gradient.size() == theta.size(), "gradcheck", [&] {
        return "gradient must be of the " + std::to_string(theta.size()) + " parameters, got " +
               std::to_string(gradient.size()) + " numbers";
    });
    return gradcheck([&] { return f(std::as_const(theta)); }, inputs, options);
}

}  // namespace fprnn
