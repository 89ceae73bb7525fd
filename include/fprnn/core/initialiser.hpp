#pragma once

#include <fprnn/core/hash.hpp>
#include <fprnn/core/random.hpp>
#include <fprnn/core/tensor.hpp>

#include <cmath>
#include <string>
#include <string_view>

namespace fprnn {

/// How a parameter begins: a named rule with up to two numbers, a structural value so that types can carry
/// it.
struct initialiser {
    enum class rule {
        constant,       ///< a
        uniform,        ///< uniform on [a,b)
        normal,         ///< normal with mean 0 and deviation a
        fan_in,         ///< uniform on ±a/√(columns): the usual start of a linear map
        log_uniform,    ///< log u, u uniform on [a,b): the start of Mamba-2's decays
        log_row,        ///< log(n+1) in row n of [N,D]: the S4D-real start of Mamba's ω
        row_norm,       ///< ‖row n‖₂ of the parameter before, [n,k]: g of a weight-normalised map
        softplus_step,  ///< softplus⁻¹ of a step that is log-uniform on [a,b): Mamba's start of b_Δ
    };
    rule kind = rule::constant;
    double a = 0;
    double b = 0;

    friend constexpr bool operator==(const initialiser&, const initialiser&) = default;
};

/// Fills `values` by `init`, from stream hash(name) of seed s: a parameter's start depends on its name and
/// shape alone, and row_norm's on `before`, the parameter before it. Errors: row_norm of a parameter that is
/// not [n], or not behind one of [n,k].
template <class T>
void initialise(view<T> values, const initialiser& init, std::string_view name, seed s, view<const T> before = {}) {
    require(init.kind != initialiser::rule::row_norm ||
                (values.shape().rank() == 1 && before.shape().rank() == 2 && before.shape()[0] == values.size()),
            "initialise", [&] {
                return "'" + std::string(name) + "' " + values.shape().to_string() +
                       " starts at the lengths of rows: expected [n] behind a parameter [n,k], got " +
                       before.shape().to_string();
            });
    const random_stream random(s, detail::fnv1a(name));
    const auto columns = static_cast<double>(values.shape().back());
    for (index i = 0; i < values.size(); ++i) {
        const auto at = static_cast<std::uint64_t>(i);
        double x = init.a;
        switch (init.kind) {
            case initialiser::rule::constant: break;
            case initialiser::rule::uniform: x = init.a + (init.b - init.a) * random.uniform(at); break;
            case initialiser::rule::normal: x = init.a * random.normal(at); break;
            case initialiser::rule::fan_in: x = init.a / std::sqrt(columns) * (2 * random.uniform(at) - 1); break;
            case initialiser::rule::log_uniform: x = std::log(init.a + (init.b - init.a) * random.uniform(at)); break;
            case initialiser::rule::log_row: x = std::log(1.0 + std::floor(static_cast<double>(i) / columns)); break;
            case initialiser::rule::row_norm: {
                const index k = before.shape()[1];
                x = 0;
                for (const T* v = before.data() + i * k; v != before.data() + (i + 1) * k; ++v)
                    x = std::hypot(x, static_cast<double>(*v));
                break;
            }
            case initialiser::rule::softplus_step: {
                const double step = init.a * std::pow(init.b / init.a, random.uniform(at));
                x = step + std::log(-std::expm1(-step));
                break;
            }
        }
        values[i] = static_cast<T>(x);
    }
}

/// A parameter as an expression declares it.
struct parameter_spec {
    std::string name;
    shape extents;
    initialiser init;
    bool decay = true;  ///< belongs to the group that AdamW decays
};

}  // namespace fprnn
