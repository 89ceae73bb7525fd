#pragma once

#include <fprnn/core/error.hpp>
#include <fprnn/core/math.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace fprnn {

/// A long series as a curve of at most `most` points, in memory of that size: each is the mean of `each()`
/// values that followed one another, at the x of the last of them. When there are too many, neighbours are
/// merged. Values that are not finite are left out of their mean.
class running_means {
public:
    explicit running_means(std::size_t most = 400) : most_(most) {
        require(most >= 2 && most % 2 == 0, "running_means",
                [&] { return "most must be even and at least 2, got " + std::to_string(most); });
    }

    void add(double x, double y) {
        if (groups_.empty() || groups_.back().rows == each_) {
            if (groups_.size() == most_) merge();
            groups_.push_back({});
        }
        group& g = groups_.back();
        g.x = x;
        ++g.rows;
        if (!math::is_finite(y)) return;
        g.sum += y;
        ++g.values;
    }

    /// Values that a point is the mean of; the last point may have fewer.
    std::size_t each() const { return each_; }

    std::vector<double> x() const {
        std::vector<double> all;
        all.reserve(groups_.size());
        for (const group& g : groups_) all.push_back(g.x);
        return all;
    }
    /// NaN where no value was finite.
    std::vector<double> y() const {
        std::vector<double> all;
        all.reserve(groups_.size());
        for (const group& g : groups_) all.push_back(g.sum / static_cast<double>(g.values));
        return all;
    }

private:
    struct group {
        double x = 0, sum = 0;
        std::size_t rows = 0, values = 0;
    };
    void merge() {
        for (std::size_t i = 0; i < most_; i += 2) {
            const group &a = groups_[i], &b = groups_[i + 1];
            groups_[i / 2] = {b.x, a.sum + b.sum, a.rows + b.rows, a.values + b.values};
        }
        groups_.resize(most_ / 2);
        each_ *= 2;
    }

    std::size_t most_, each_ = 1;
    std::vector<group> groups_;
};

}  // namespace fprnn
