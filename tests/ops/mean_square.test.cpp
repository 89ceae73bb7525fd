#include <fprnn/ops/mean_square.hpp>

#include <ops/checks.hpp>

#include <limits>

namespace {

using checks::random;
using fprnn::eigen;
using fprnn::index;
using fprnn::shape;
using fprnn::tensor;

constexpr double not_asked = std::numeric_limits<double>::quiet_NaN();

/// Every third number is not asked for, unless it is the only one.
tensor<double> targets_for(const shape& s) {
    auto targets = random<double>(s, 2, 3);
    for (index i = 1; i < targets.size(); i += 3) targets[i] = not_asked;
    return targets;
}

TEST_CASE("mean_square: the mean over the numbers that count, of each sequence the sum, and its gradient") {
    for (const shape& s : checks::odd_sizes()) {
        const auto y = random<double>(s, 1, 3);
        const auto targets = targets_for(s);
        std::vector<double> sums(static_cast<std::size_t>(s[0]), 0.0);
        index counted = 0;
        double total = 0;
        for (index i = 0; i < y.size(); ++i) {
            if (std::isnan(targets[i])) continue;
            const double square = (y[i] - targets[i]) * (y[i] - targets[i]);
            sums[static_cast<std::size_t>(i / (s[1] * s[2]))] += square;
            total += square;
            ++counted;
        }
        for (int threads : {0, 2}) {
            tensor<double> bar(s);
            std::fill(bar.begin(), bar.end(), 7.0);  // is overwritten
            const auto r = threads == 0 ? fprnn::mean_square(y, targets.view(), bar.view())
                                        : fprnn::mean_square(y, targets.view(), bar.view(), eigen(threads));
            CHECK(r.numbers == counted);
            CHECK(std::abs(r.loss - total / static_cast<double>(counted)) <= 1e-14 * (1 + total));
            for (std::size_t b = 0; b < sums.size(); ++b)
                CHECK(std::abs(r.sequences[b] - sums[b]) <= 1e-13 * (1 + sums[b]));
            for (index i = 0; i < y.size(); ++i) {
                const double slope =
                    std::isnan(targets[i]) ? 0 : 2 * (y[i] - targets[i]) / static_cast<double>(counted);
                CHECK(std::abs(bar[i] - slope) <= 1e-15 * (1 + std::abs(slope)));
            }
            CHECK(fprnn::mean_square(y, targets.view()).loss == r.loss);
        }
    }
}

TEST_CASE("mean_square: where no number counts the loss is 0, and one that is not finite is seen where it counts") {
    tensor<double> y({1, 2, 1}, {1, std::numeric_limits<double>::infinity()}), bar({1, 2, 1}, {5, 5});
    const tensor<double> none({1, 2, 1}, {not_asked, not_asked}), first({1, 2, 1}, {3, not_asked}),
        second({1, 2, 1}, {not_asked, 3});
    CHECK(fprnn::mean_square(y, none.view(), bar.view()).loss == 0);
    CHECK(bar[0] == 0);
    CHECK(bar[1] == 0);
    CHECK(fprnn::mean_square(y, first.view(), bar.view()).loss == 4);
    CHECK(bar[0] == -4);
    CHECK(bar[1] == 0);
    CHECK_FALSE(std::isfinite(fprnn::mean_square(y, second.view()).loss));
    const tensor<double> empty({0, 3, 2});
    CHECK(fprnn::mean_square(empty, empty.view()).loss == 0);
}

TEST_CASE("mean_square: other shapes are refused") {
    const tensor<double> y({2, 3, 4}), narrow({2, 3, 3}), flat({6, 4});
    tensor<double> bar({2, 3, 3});
    CHECK_THROWS_AS(fprnn::mean_square(y, narrow.view()), fprnn::argument_error);
    CHECK_THROWS_AS(fprnn::mean_square(flat, flat.view()), fprnn::argument_error);
    CHECK_THROWS_AS(fprnn::mean_square(y, y.view(), bar.view()), fprnn::argument_error);
}

}  // namespace
