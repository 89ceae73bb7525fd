#include "operations/combination.hpp"

namespace {

TEST_CASE("combinations: λ and Q see y_{t-1}, b and c do or do not: all run and have the right gradient") {
    using fprnn::testing::check_combination;
    check_combination<true, true, false, false>();
    check_combination<true, true, false, true>();
    check_combination<true, true, true, false>();
    check_combination<true, true, true, true>();
}

}  // namespace
