#include "operations/combination.hpp"

namespace {

TEST_CASE("combinations: neither λ nor Q sees y_{t-1}, b and c do or do not: all run and have the right gradient") {
    using fprnn::testing::check_combination;
    check_combination<false, false, false, false>();
    check_combination<false, false, false, true>();
    check_combination<false, false, true, false>();
    check_combination<false, false, true, true>();
}

}  // namespace
