#include <fprnn/train/schedule.hpp>

#include <doctest/doctest.h>

#include <limits>

namespace {

using fprnn::argument_error;
using fprnn::decay;
using fprnn::index;
using fprnn::learning_rate_schedule;

TEST_CASE("schedule: the warm-up rises in equal steps from peak/W to the peak") {
    for (const decay d : {decay::none, decay::linear, decay::cosine}) {
        const learning_rate_schedule rate{.peak = 0.5, .warmup_steps = 4, .total_steps = 20, .decay = d};
        CHECK(rate(0) == 0.125);
        CHECK(rate(1) == 0.25);
        CHECK(rate(2) == 0.375);
        CHECK(rate(3) == 0.5);
        CHECK(rate(4) == 0.5);
    }
}

TEST_CASE("schedule: the cosine passes its midpoint half way and ends at the final fraction") {
    const learning_rate_schedule rate{
        .peak = 2, .warmup_steps = 10, .total_steps = 110, .decay = decay::cosine, .final_fraction = 0.1};
    CHECK(rate(10) == doctest::Approx(2));
    CHECK(rate(35) == doctest::Approx(2 * (0.1 + 0.9 * (0.5 + 0.25 * 1.41421356237309505))));
    CHECK(rate(60) == doctest::Approx(2 * 0.55));
    CHECK(rate(110) == 2 * 0.1);
    CHECK(rate(100000) == 2 * 0.1);
}

TEST_CASE("schedule: the linear decay falls in equal steps") {
    const learning_rate_schedule rate{
        .peak = 1, .warmup_steps = 0, .total_steps = 8, .decay = decay::linear, .final_fraction = 0.5};
    for (index step = 0; step <= 8; ++step) CHECK(rate(step) == doctest::Approx(1 - static_cast<double>(step) / 16));
    CHECK(rate(9) == 0.5);
}

TEST_CASE("schedule: without decay the peak stays, whatever total and final fraction say") {
    const learning_rate_schedule rate{.peak = 0.25, .warmup_steps = 2, .decay = decay::none, .final_fraction = 0};
    CHECK(rate(0) == 0.125);
    CHECK(rate(1'000'000'000'000) == 0.25);
}

TEST_CASE("schedule: rates never rise after the warm-up and are positive before the end, as adamw asks for") {
    for (const decay d : {decay::linear, decay::cosine}) {
        const learning_rate_schedule rate{.peak = 3e-3, .warmup_steps = 200, .total_steps = 3000, .decay = d};
        index rising = 0, not_positive = 0;
        for (index step = 0; step < 3000; ++step) {
            not_positive += !(rate(step) > 0);
            rising += step >= 200 && rate(step + 1) > rate(step);
        }
        CHECK(rising == 0);
        CHECK(not_positive == 0);
        CHECK(rate(3000) == 0);
    }
}

TEST_CASE("schedule: the last of very many steps has a rate, too, and the largest number of steps can be asked for") {
    for (const decay d : {decay::linear, decay::cosine})
        for (const index total : {index{1} << 30, index{1} << 60, std::numeric_limits<index>::max()}) {
            const learning_rate_schedule rate{.peak = 1, .warmup_steps = 100, .total_steps = total, .decay = d};
            CHECK(rate(total - 1) > 0);
            CHECK(rate(total - 1) < 1e-8);
            CHECK(rate(100) == 1);
        }
}

TEST_CASE("schedule: a warm-up as long as the training is no division by zero") {
    const learning_rate_schedule rate{.peak = 1, .warmup_steps = 5, .total_steps = 5, .final_fraction = 0.5};
    CHECK(rate(4) == 1);
    CHECK(rate(5) == 0.5);
}

TEST_CASE("schedule: members and steps out of their range are refused by name") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto at = [](const learning_rate_schedule& rate, index step) { return rate(step); };
    const learning_rate_schedule good{.peak = 1, .total_steps = 5};
    CHECK(at(good, 0) == 1);
    CHECK_THROWS_WITH_AS(at(good, -1), "learning_rate_schedule: step must be at least 0, got -1", argument_error);
    CHECK_THROWS_WITH_AS(at({.peak = 0, .total_steps = 5}, 0),
                         "learning_rate_schedule: peak must be positive and finite, got 0", argument_error);
    CHECK_THROWS_AS(at({.peak = nan, .total_steps = 5}, 0), argument_error);
    CHECK_THROWS_WITH_AS(at({.warmup_steps = -2, .total_steps = 5}, 0),
                         "learning_rate_schedule: warmup_steps must be at least 0, got -2", argument_error);
    CHECK_THROWS_WITH_AS(at({.warmup_steps = 6, .total_steps = 5}, 0),
                         "learning_rate_schedule: total_steps must be at least warmup_steps, got 5 and 6",
                         argument_error);
    CHECK_THROWS_AS(at({.total_steps = 5, .final_fraction = 1.5}, 0), argument_error);
    CHECK_THROWS_AS(at({.total_steps = 5, .final_fraction = nan}, 0), argument_error);
}

}  // namespace
