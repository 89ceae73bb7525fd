#include <fprnn/tape/reusable.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace {

TEST_CASE("reusable: the object stays until another type is asked for") {
    fprnn::reusable place;
    CHECK(place.as<std::vector<int>>().empty());
    place.as<std::vector<int>>().assign(3, 7);
    CHECK(place.as<std::vector<int>>() == std::vector<int>(3, 7));
    CHECK(place.as<double>() == 0);
    CHECK(place.as<std::vector<int>>().empty());
}

}  // namespace
