#include "operations/combination.hpp"

namespace {

TEST_CASE("combinations: Q sees y_{t-1}, b and c do or do not: all run and have the right gradient") {
    using fprnn::testing::check_combination;
    check_combination<false, true, false, false>();
    check_combination<false, true, false, true>();
    check_combination<false, true, true, false>();
    check_combination<false, true, true, true>();
}

}  // namespace
