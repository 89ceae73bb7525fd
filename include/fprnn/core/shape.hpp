#pragma once

#include <fprnn/core/error.hpp>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>

namespace fprnn {

/// Extents, strides and offsets are 64-bit and signed everywhere.
using index = std::int64_t;

/// a·b, or an argument_error when it does not fit 64 bits.
inline index checked_product(index a, index b, std::string_view operation = "size") {
    require(a >= 0 && b >= 0, operation,
            [&] { return "extents must not be negative, got " + std::to_string(a) + " and " + std::to_string(b); });
    require(b == 0 || a <= std::numeric_limits<index>::max() / b, operation,
            [&] { return std::to_string(a) + " x " + std::to_string(b) + " does not fit 64 bits"; });
    return a * b;
}

/// a + b, or an argument_error when it does not fit 64 bits.
inline index checked_sum(index a, index b, std::string_view operation = "size") {
    require(a >= 0 && b >= 0, operation,
            [&] { return "extents must not be negative, got " + std::to_string(a) + " and " + std::to_string(b); });
    require(a <= std::numeric_limits<index>::max() - b, operation,
            [&] { return std::to_string(a) + " + " + std::to_string(b) + " does not fit 64 bits"; });
    return a + b;
}

/// Up to four extents, the last one contiguous. Prints as "[4,8,16]".
class shape {
public:
    static constexpr int max_rank = 4;

    shape() = default;
    shape(std::initializer_list<index> extents) {
        require(extents.size() <= max_rank, "shape",
                [&] { return "at most 4 extents, got " + std::to_string(extents.size()); });
        for (index e : extents) extents_[static_cast<std::size_t>(rank_++)] = e;
        (void)count();
    }

    int rank() const { return rank_; }
    index operator[](int axis) const { return extents_[static_cast<std::size_t>(axis)]; }
    index back() const { return rank_ == 0 ? 1 : (*this)[rank_ - 1]; }

    /// Number of elements; throws when it does not fit 64 bits.
    index count() const {
        index n = 1;
        for (int i = 0; i < rank_; ++i) n = checked_product(n, (*this)[i], "shape");
        return n;
    }

    std::string to_string() const {
        std::string text = "[";
        for (int i = 0; i < rank_; ++i) {
            if (i > 0) text += ',';
            text += std::to_string((*this)[i]);
        }
        return text + ']';
    }

    friend bool operator==(const shape&, const shape&) = default;

private:
    std::array<index, max_rank> extents_{};
    int rank_ = 0;
};

}  // namespace fprnn
