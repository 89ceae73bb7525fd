#pragma once

#include <fprnn/mixers/row_algebra.hpp>

#include <cstddef>

/// Products of small matrices by the team of one token, for mixers whose factors are dense.
namespace fprnn::mixing {

/// A matrix whose numbers are read one by one: at(r, l) = data[r·row + l·column].
template <class T>
struct scalars {
    const T* data;
    index row, column;

    FPRNN_BOTH T operator()(index r, index l) const { return data[r * row + l * column]; }
};

/// Row r of x m for r in [0, rows): store(lane, r, Σ_l x(r, l) m[l,:]). m is [inner, columns], contiguous,
/// columns ≤ D. What other threads have written of x or m needs a wait before it.
template <class Team, class T, class Store>
FPRNN_BOTH void multiply(index rows, index inner, index columns, const scalars<T>& x, const T* m, const Store& store) {
    Team::each(columns, [&](auto lane) {
        using math::multiply_add;
        using V = decltype(lane.load(m));
        constexpr index block = 8;  // rows that share what is loaded of m, and independent sums
        index r = 0;
        for (; r + block <= rows; r += block) {
            small_array<V, static_cast<std::size_t>(block)> sum;
            for (auto& s : sum.values) s = V(T(0));
            for (index l = 0; l < inner; ++l) {
                const V row = lane.load(m + l * columns);
                for (index k = 0; k < block; ++k)
                    sum[static_cast<std::size_t>(k)] =
                        multiply_add(V(x(r + k, l)), row, sum[static_cast<std::size_t>(k)]);
            }
            for (index k = 0; k < block; ++k) store(lane, r + k, sum[static_cast<std::size_t>(k)]);
        }
        for (; r < rows; ++r) {
            V even(T(0)), odd(T(0));
            index l = 0;
            for (; l + 2 <= inner; l += 2) {
                even = multiply_add(V(x(r, l)), lane.load(m + l * columns), even);
                odd = multiply_add(V(x(r, l + 1)), lane.load(m + (l + 1) * columns), odd);
            }
            if (l < inner) even = multiply_add(V(x(r, l)), lane.load(m + l * columns), even);
            store(lane, r, even + odd);
        }
    });
}

/// to [columns, rows] = the transpose of from [rows, columns].
template <class Team, class T>
FPRNN_BOTH void transpose(index rows, index columns, const T* from, T* to) {
    Team::once([&] {
        for (index c = 0; c < columns; ++c)
            for (index r = 0; r < rows; ++r) to[c * rows + r] = from[r * columns + c];
    });
}

}  // namespace fprnn::mixing
