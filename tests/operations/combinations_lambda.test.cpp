#include "operations/combination.hpp"

namespace {

TEST_CASE("combinations: λ sees y_{t-1}, b and c do or do not: all run and have the right gradient") {
    using fprnn::testing::check_combination;
    check_combination<true, false, false, false>();
    check_combination<true, false, false, true>();
    check_combination<true, false, true, false>();
    check_combination<true, false, true, true>();
}

}  // namespace
