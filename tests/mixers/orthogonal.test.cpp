#include <fprnn/backend/eigen.hpp>
#include <fprnn/mixers/orthogonal.hpp>

#include <ops/checks.hpp>

namespace {

using fprnn::index;
using fprnn::tensor;
using team = fprnn::pack_team<double>;

using mixer = fprnn::orthogonal_mixer;

TEST_CASE("orthogonal: Q keeps lengths, and its transpose is its inverse") {
    for (const index D : {1, 5, 17}) {
        const auto v = checks::random<double>({D * D}, 1), x = checks::random<double>({D}, 2);
        const double* raw[] = {v.data()};
        tensor<double> q({mixer::size(D)}), out({D}), back({D}), scratch({mixer::scratch(D)});
        mixer::prepare<team, double>(D, raw, q.data());
        mixer::mix<team, double>(D, q.data(), x.data(), nullptr, out.data(), scratch.data());
        CHECK(checks::dot(out, out) == doctest::Approx(checks::dot(x, x)).epsilon(1e-14));
        mixer::mix_back<team, double>(D, q.data(), out.data(), back.data(), nullptr, scratch.data());
        for (index i = 0; i < D; ++i) CHECK(back[i] == doctest::Approx(x[i]).epsilon(1e-13));
    }
}

TEST_CASE("orthogonal: more numbers than 64 bits can count are refused") {
    CHECK_THROWS_AS(mixer::check(std::numeric_limits<index>::max() / 2), fprnn::argument_error);
}

}  // namespace
