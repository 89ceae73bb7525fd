#include <fprnn/core/error.hpp>

#include <doctest/doctest.h>

namespace {

TEST_CASE("require: the message is made only when it is needed, and says which operation refuses") {
    int made = 0;
    const auto message = [&] {
        ++made;
        return "x must be positive";
    };
    CHECK_NOTHROW(fprnn::require(true, "operation", message));
    CHECK(made == 0);
    CHECK_THROWS_WITH_AS(fprnn::require(false, "operation", message), "operation: x must be positive",
                         fprnn::argument_error);
    CHECK(made == 1);
}

}  // namespace
