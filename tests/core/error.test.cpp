#include <fprnn/core/error.hpp>

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

}  // namespace
