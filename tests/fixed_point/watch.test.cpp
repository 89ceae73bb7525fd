#include <fprnn/fixed_point/watch.hpp>

#include <doctest/doctest.h>

#include <cmath>

namespace {

using fprnn::status;

/// How an iteration with these absolute steps of an iterate of size 1 ends.
template <class Steps>
status outcome(int ell_max, Steps&& step) {
    fprnn::engine::watch<double> w(1e-4, ell_max);
    for (int ell = 1; w.running(); ++ell) w.take({step(ell), step(ell), true});
    fprnn::engine::tally all;
    w.report(all, 1);
    return all.status;
}

TEST_CASE("watch: orbits of any period are diverged, whatever l_max") {
    for (const int ell_max : {24, 25, 99, 100, 1000})
        for (const int period : {1, 2, 3, 5}) {
            CAPTURE(ell_max);
            CAPTURE(period);
            CHECK(outcome(ell_max, [&](int ell) { return 0.1 + 0.5 * (ell % period); }) == status::diverged);
            // approached from a larger one
            CHECK(outcome(ell_max, [&](int ell) { return 0.1 + 0.5 * (ell % period) + std::exp(-ell); }) ==
                  status::diverged);
        }
}

TEST_CASE("watch: growth is diverged, shrinking is max_iterations, small is converged") {
    CHECK(outcome(40, [](int ell) { return std::pow(1.1, ell); }) == status::diverged);
    CHECK(outcome(40, [](int ell) { return std::pow(0.97, ell); }) == status::max_iterations);
    CHECK(outcome(40, [](int ell) { return std::pow(0.5, ell); }) == status::converged);
}

TEST_CASE("watch: too few iterations to tell are max_iterations") {
    for (const int ell_max : {1, 2}) CHECK(outcome(ell_max, [](int) { return 1.0; }) == status::max_iterations);
    CHECK(outcome(3, [](int) { return 1.0; }) == status::diverged);
}

}  // namespace
