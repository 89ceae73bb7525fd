#include <fprnn/core/flush_denormals.hpp>

#include <doctest/doctest.h>

#include <cfenv>
#include <limits>
#include <stdexcept>
#include <thread>

namespace {

using fprnn::flush_denormals;

/// A tenth of the smallest normal number, computed now.
template <class T>
T tenth_of_smallest() {
    volatile T smallest = std::numeric_limits<T>::min(), tenth = T(0.1);
    return smallest * tenth;
}
/// Twice a denormal operand.
template <class T>
T twice_a_denormal() {
    volatile T denormal = std::numeric_limits<T>::denorm_min(), two = 2;
    return denormal * two;
}

TEST_CASE_TEMPLATE("flush_denormals: while it lives, results and operands count as zero, in this thread alone", T,
                   float, double) {
    if constexpr (!flush_denormals::supported) return;
    REQUIRE(tenth_of_smallest<T>() > 0);
    REQUIRE(twice_a_denormal<T>() > 0);
    {
        const flush_denormals outer;
        CHECK(tenth_of_smallest<T>() == 0);
        CHECK(twice_a_denormal<T>() == 0);
        { const flush_denormals inner; }
        CHECK(tenth_of_smallest<T>() == 0);
    }
    CHECK(tenth_of_smallest<T>() > 0);
    CHECK(twice_a_denormal<T>() > 0);
    try {
        const flush_denormals quick;
        throw std::runtime_error("");
    } catch (const std::runtime_error&) {
    }
    CHECK(tenth_of_smallest<T>() > 0);

    {
        const std::jthread other([] {
            const flush_denormals quick;
            CHECK(tenth_of_smallest<T>() == 0);
        });
    }
    CHECK(tenth_of_smallest<T>() > 0);
}

TEST_CASE("flush_denormals: exceptions that the processor has noted stay noted") {
    std::feclearexcept(FE_ALL_EXCEPT);
    {
        const flush_denormals quick;
        volatile float large = std::numeric_limits<float>::max(), product = large * large;
        (void)product;
    }
    CHECK(std::fetestexcept(FE_OVERFLOW) != 0);
    std::feclearexcept(FE_ALL_EXCEPT);
}

}  // namespace
