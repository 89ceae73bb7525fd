#include <fprnn/io/means.hpp>

#include <doctest/doctest.h>

#include <limits>

namespace {

using fprnn::running_means;

TEST_CASE("running_means: a short series is itself") {
    running_means m(4);
    for (int i = 1; i <= 4; ++i) m.add(i, 10 * i);
    CHECK(m.each() == 1);
    CHECK(m.x() == std::vector<double>{1, 2, 3, 4});
    CHECK(m.y() == std::vector<double>{10, 20, 30, 40});
}

TEST_CASE("running_means: a long one is at most so many means of as many neighbours, each at the last of them") {
    running_means m(4);
    for (int i = 1; i <= 5; ++i) m.add(i, 10 * i);
    CHECK(m.each() == 2);
    CHECK(m.x() == std::vector<double>{2, 4, 5});
    CHECK(m.y() == std::vector<double>{15, 35, 50});
    for (int n : {6, 7, 100, 4096, 100000}) {
        CAPTURE(n);
        running_means all(400);
        double sum = 0;
        for (int i = 1; i <= n; ++i) all.add(i, i % 7);
        const auto x = all.x(), y = all.y();
        CHECK(x.size() <= 400);
        CHECK(x.size() * all.each() < static_cast<std::size_t>(n) + all.each());
        CHECK(x.back() == n);
        // Weighted by what they are the means of, the means have the series' own mean.
        double before = 0, expected = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            sum += y[i] * (x[i] - before);
            before = x[i];
        }
        for (int i = 1; i <= n; ++i) expected += i % 7;
        CHECK(sum == doctest::Approx(expected).epsilon(1e-12));
    }
}

TEST_CASE("running_means: what is not finite is left out, and a mean of nothing is NaN") {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
    running_means m(2);
    for (const double y : {nan, 4.0, infinity, nan}) m.add(1, y);
    CHECK(m.y()[0] == 4);
    CHECK(std::isnan(m.y()[1]));
    CHECK(running_means(2).x().empty());
    CHECK_THROWS_WITH_AS(running_means(3), "running_means: most must be even and at least 2, got 3",
                         fprnn::argument_error);
}

}  // namespace
