#pragma once

#include <fprnn/backend/reference.hpp>
#include <fprnn/ops/rows.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace fprnn {

/// Mean of (y − target)² over the numbers that count.
struct mean_square_result {
    double loss = 0;                ///< 0 when no number counts
    index numbers = 0;              ///< that count
    std::vector<double> sequences;  ///< [B], of each sequence the sum of squares
};

namespace detail {

/// mean_square of views in the host's memory.
template <class T, class Backend>
void mean_square(view<const T> y, view<const T> targets, view<T> y_bar, Backend& backend, mean_square_result& result) {
    static_assert(host_memory_backend<Backend, T>, "mean_square: of a backend that works in the host's memory");
    require_rank("mean_square", "outputs", y.shape(), 3, "[B,T,n]");
    require_same("mean_square", "outputs", y.shape(), "targets", targets.shape());
    require_optional("mean_square", "outputs_bar", y_bar, y.shape());
    const index B = y.shape()[0], n = y.shape()[1] * y.shape()[2];
    result.loss = 0;
    result.numbers = std::count_if(targets.begin(), targets.end(), [](T t) { return !math::is_nan(t); });
    result.sequences.assign(static_cast<std::size_t>(B), 0);
    const T scale = result.numbers ? T(2) / static_cast<T>(result.numbers) : T(0);
    backend.for_each(B, [&](index b) {
        double& squares = result.sequences[static_cast<std::size_t>(b)];
        for (index i = b * n; i < (b + 1) * n; ++i) {
            const T difference = math::is_nan(targets[i]) ? T(0) : y[i] - targets[i];
            squares += static_cast<double>(difference) * static_cast<double>(difference);
            if (y_bar.data()) y_bar[i] = scale * difference;
        }
    });
    for (const double s : result.sequences) result.loss += s;
    if (result.numbers) result.loss /= static_cast<double>(result.numbers);
}

}  // namespace detail

/// Mean square of outputs − targets, both [B,T,n]; a target of NaN is not counted: the mask. `outputs_bar`
/// [B,T,n], when given, is overwritten with the gradient 2 (outputs − targets) / numbers. An output that is
/// not finite and counts gives a loss that is not. Errors: shapes. Overwrites `result` in the memory that it
/// has, or returns it.
template <array_like A, backend_of<A> Backend>
void mean_square(const A& outputs, view<const element<A>> targets, writes<A> outputs_bar, Backend& backend,
                 mean_square_result& result) {
    detail::mean_square(detail::read(outputs), targets, detail::write(outputs_bar), backend, result);
}
template <array_like A, backend_of<A> Backend = reference>
mean_square_result mean_square(const A& outputs, view<const element<A>> targets, writes<A> outputs_bar = {},
                               Backend backend = {}) {
    mean_square_result result;
    mean_square(outputs, targets, outputs_bar, backend, result);
    return result;
}

}  // namespace fprnn
