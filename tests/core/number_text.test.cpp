#include "locales.hpp"

#include <fprnn/core/number_text.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>

namespace {

using fprnn::detail::number_text;

TEST_CASE("number_text: a message shows a number as it was given, however small or large") {
    for (const auto& [x, text] :
         {std::pair(0.0, "0"), {-0.5, "-0.5"}, {1.0, "1"}, {0.1, "0.1"}, {3e-9, "3e-09"}, {1e300, "1e+300"}})
        CHECK(number_text(x) == text);
    const double almost = 1 + std::numeric_limits<double>::epsilon();
    CHECK(std::stod(number_text(almost)) == almost);
    CHECK(std::stod(number_text(std::numeric_limits<double>::denorm_min() * 1e300)) > 0);
}

TEST_CASE("number_text: a NaN has no sign, an infinity has") {
    const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
    CHECK(number_text(nan) == "nan");
    CHECK(number_text(-nan) == "nan");
    CHECK(number_text(inf) == "inf");
    CHECK(number_text(-inf) == "-inf");
}

TEST_CASE("number_text: with a precision, the digits are those of printf, and no number is too large") {
    char expected[400];
    for (const double x :
         {0.0, -0.0, 1.0, -0.5, 1234567.25, 12345678.0, 0.0001234567, 1e-5, 1e300, -1e300, 5e-324, 0.99999})
        for (const int precision : {0, 1, 3, 4, 7, 12})
            for (const auto& [format, printed] : {std::pair(std::chars_format::general, "%.*g"),
                                                  {std::chars_format::fixed, "%.*f"},
                                                  {std::chars_format::scientific, "%.*e"}}) {
                std::snprintf(expected, sizeof expected, printed, precision, x);
                CHECK(number_text(x, format, precision) == expected);
            }
    CHECK(number_text(-std::numeric_limits<double>::quiet_NaN(), std::chars_format::fixed, 3) == "nan");
}

TEST_CASE("number_text: the same in locales with decimal commas") {
    fprnn::testing::with_decimal_commas([] {
        CHECK(number_text(1234567.25) == "1234567.25");
        CHECK(number_text(1234567.25, std::chars_format::fixed, 1) == "1234567.2");
    });
}

}  // namespace
