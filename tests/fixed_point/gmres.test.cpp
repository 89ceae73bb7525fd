#include <fprnn/backend/eigen.hpp>
#include <fprnn/fixed_point/gmres.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace {

template <class Team>
void check_lengths() {
    for (const double scale : {1e-37, 1e-25, 1e-19, 1e-10, 1.0, 1e18, 1e19, 1e30, 1e37}) {
        CAPTURE(scale);
        std::vector<float> a;
        double squares = 0;
        for (int i = 0; i < 21; ++i) {
            a.push_back(static_cast<float>(scale * std::sin(i + 1.0)));
            squares += static_cast<double>(a.back()) * static_cast<double>(a.back());
        }
        const auto length = fprnn::kernel::length<Team>(21, static_cast<const float*>(a.data()));
        CHECK(std::abs(static_cast<double>(length) - std::sqrt(squares)) <= 1e-6 * std::sqrt(squares));
    }
}

TEST_CASE("gmres: a vector has its length also where squares of its numbers leave the range of float") {
    check_lengths<fprnn::pack_team<float>>();
    check_lengths<fprnn::serial_team<float>>();
    const float zeros[5] = {}, bad[] = {1, std::numeric_limits<float>::infinity(), 1e30f};
    CHECK(fprnn::kernel::length<fprnn::serial_team<float>>(5, zeros) == 0);
    CHECK_FALSE(std::isfinite(fprnn::kernel::length<fprnn::serial_team<float>>(3, bad)));
}

}  // namespace
