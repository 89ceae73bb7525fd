#pragma once

#include <fprnn/core/math.hpp>
#include <fprnn/core/number_text.hpp>
#include <fprnn/core/tensor.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace fprnn {

/// An argument of the function under test and what is claimed to be its gradient. `value` is what the
/// function reads: its entries are moved one by one and put back.
struct gradcheck_input {
    std::string name;
    view<double> value;
    view<const double> gradient;
};

struct gradcheck_options {
    double step = 1e-3;   ///< h, times max(1, |x|)
    double floor = 1e-4;  ///< entries below floor · max(1, |f|, the input's largest entry) are measured against that
};

/// The entry where gradient and difference quotient differ most.
struct gradcheck_result {
    double error = 0;  ///< |fd − g| / max(|fd|, |g|, floor · …); ∞ where one of the two is not finite
    std::string name;
    index entry = -1;
    double gradient = 0;
    double difference = 0;  ///< fd
    index entries = 0;      ///< of all inputs, every one of them checked

    std::string to_string() const {
        const auto digits = [](double x) { return detail::number_text(x, std::chars_format::general, 12); };
        return "relative error " + digits(error) + " of " + std::to_string(entries) + " entries, worst at " + name +
               "[" + std::to_string(entry) + "]: gradient " + digits(gradient) + ", difference quotient " +
               digits(difference);
    }
};

/// Compares every entry of every gradient with the central difference of fourth order
///
///     fd = (f(x − 2h) − 8 f(x − h) + 8 f(x + h) − f(x + 2h)) / 12h
///
/// whose truncation h⁴ f⁽⁵⁾/30 and rounding 1.5 ε |f| / h are both near 1e-13 |f| for the default step, where
/// the usual (f(x + h) − f(x − h)) / 2h reaches 1e-11. Every entry counts relative to itself, except for
/// those that this noise hides: see `floor`, which supposes that f's terms are of order one.
/// f: takes nothing, reads the inputs' values and returns a number. Errors: a gradient whose shape is not its
/// value's, inputs that have no entry.
template <class F>
gradcheck_result gradcheck(F&& f, const std::vector<gradcheck_input>& inputs, gradcheck_options options = {}) {
    for (const gradcheck_input& in : inputs)
        require(in.value.shape() == in.gradient.shape(), "gradcheck", [&] {
            return in.name + " is " + in.value.shape().to_string() + " but its gradient is " +
                   in.gradient.shape().to_string();
        });
    gradcheck_result worst;
    const double magnitude = std::max(1.0, std::abs(static_cast<double>(f())));
    for (const gradcheck_input& in : inputs) {
        const index n = in.value.size();
        worst.entries += n;
        std::vector<double> differences;
        double largest = magnitude;
        for (index i = 0; i < n; ++i) {
            const double x = in.value[i];
            const struct put_back {  // also when f throws
                double& place;
                double was;
                ~put_back() { place = was; }
            } guard{in.value[i], x};
            const auto at = [&](double moved) {
                in.value[i] = moved;
                return static_cast<double>(f());
            };
            // Steps that are exact in binary: x ± h is x ± h.
            const double h = (x + options.step * std::max(1.0, std::abs(x))) - x;
            const double fd = (8 * (at(x + h) - at(x - h)) - (at(x + 2 * h) - at(x - 2 * h))) / (12 * h);
            differences.push_back(fd);
            largest = std::max({largest, std::abs(fd), std::abs(in.gradient[i])});
        }
        for (index i = 0; i < n; ++i) {
            const double fd = differences[static_cast<std::size_t>(i)], g = in.gradient[i];
            const double scale = std::max({std::abs(fd), std::abs(g), options.floor * largest});
            double error = fd == g ? 0 : std::abs(fd - g) / scale;
            if (!math::is_finite(fd) || !math::is_finite(g)) error = std::numeric_limits<double>::infinity();
            if (error > worst.error || worst.entry < 0) {
                worst.error = error;
                worst.name = in.name;
                worst.entry = i;
                worst.gradient = g;
                worst.difference = fd;
            }
        }
    }
    require(worst.entries > 0, "gradcheck", [] { return std::string("expected inputs with entries, got none"); });
    return worst;
}

}  // namespace fprnn
