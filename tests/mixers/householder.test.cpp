#include <fprnn/mixers/householder.hpp>

#include <ops/checks.hpp>

namespace {

using checks::random;
using fprnn::index;
using fprnn::pack_team;
using fprnn::serial_team;
using fprnn::shape;
using fprnn::tensor;
template <int R, int Scale = 1>
using mixer = fprnn::householder_mixer<R, Scale>;

static_assert(fprnn::mixer<mixer<1>> && fprnn::mixer<mixer<4, 2>>);
static_assert(!fprnn::mixer<int>);

template <class M, class Team, class T>
tensor<T> prepared(index D, std::uint64_t stream, double alpha_mean = 0) {
    const index reflections = M::rank;
    const auto u = random<T>({reflections * D}, stream), a = random<T>({reflections}, stream + 1, 1, alpha_mean);
    const T* raw[] = {u.data(), a.data()};
    tensor<T> q({M::size(D)});
    M::template prepare<Team, T>(D, raw, q.data());
    return q;
}

TEST_CASE("householder: directions are unit vectors and α lies in (0, scale)") {
    for (index D : {1, 3, 17}) {
        const auto check = [&]<int Scale>(const tensor<double>& q, std::integral_constant<int, Scale>) {
            for (index i = 0; i < 3; ++i) {
                double squares = 0;
                for (index d = 0; d < D; ++d) squares += q[i * D + d] * q[i * D + d];
                CHECK(squares == doctest::Approx(1).epsilon(1e-14));
                CHECK(q[3 * D + i] > 0);
                CHECK(q[3 * D + i] < Scale);
            }
        };
        check(prepared<mixer<3>, serial_team<double>, double>(D, 1), std::integral_constant<int, 1>{});
        check(prepared<mixer<3, 2>, serial_team<double>, double>(D, 1), std::integral_constant<int, 2>{});
    }
}

TEST_CASE("householder: with α = 2 one reflection is its own inverse, with α = 1 it is a projection") {
    const index D = 17;
    const auto v = random<double>({D}, 5);
    const auto apply = [&]<class M>(M, const tensor<double>& q, const tensor<double>& x) {
        tensor<double> out(shape{D}), scratch({M::scratch(D)});
        M::template mix<serial_team<double>, double>(D, q.data(), x.data(), nullptr, out.data(), scratch.data());
        return out;
    };
    const auto reflection = prepared<mixer<1, 2>, serial_team<double>, double>(D, 1, 1000);
    CHECK(checks::ulps(apply(mixer<1, 2>{}, reflection, apply(mixer<1, 2>{}, reflection, v)), v) <= 4);
    const auto projection = prepared<mixer<1>, serial_team<double>, double>(D, 1, 1000);
    const auto once = apply(mixer<1>{}, projection, v);
    CHECK(checks::ulps(apply(mixer<1>{}, projection, once), once) <= 4);
}

TEST_CASE("householder: more reflections than channels are refused, with both numbers") {
    mixer<4>::check(4);
    CHECK_THROWS_WITH_AS(mixer<4>::check(3), "householder: R = 4 reflections need d_inner >= 4, got 3",
                         fprnn::argument_error);
}

TEST_CASE("householder: more numbers than 64 bits can count are refused before anything is made of them") {
    constexpr index most = std::numeric_limits<index>::max();
    mixer<4>::check(most / 6);
    for (const index D : {most / 6 + 1, most / 4, most})
        CHECK_THROWS_WITH_AS(
            mixer<4>::check(D),
            ("householder: R + 2 times d_inner: 6 x " + std::to_string(D) + " does not fit 64 bits").c_str(),
            fprnn::argument_error);
}

TEST_CASE("householder: the arithmetic itself holds for more reflections than channels") {
    const index D = 2;
    const auto q = prepared<mixer<4>, pack_team<float>, float>(D, 1);
    const auto v = random<float>({D}, 2);
    tensor<float> out(shape{D}), scratch({mixer<4>::scratch(D)});
    mixer<4>::mix<pack_team<float>, float>(D, q.data(), v.data(), nullptr, out.data(), scratch.data());
    CHECK(std::isfinite(out[0] + out[1]));
    CHECK(checks::dot(out, out) <= checks::dot(v, v));
}

TEST_CASE("householder: directions of zero are identities with a finite gradient") {
    const index D = 3;
    const tensor<double> u({2 * D}), a({2}), v = random<double>({D}, 1);
    const double* raw[] = {u.data(), a.data()};
    tensor<double> q({mixer<2>::size(D)}), out(shape{D}), scratch({mixer<2>::scratch(D)}), u_bar({2 * D}), a_bar({2});
    mixer<2>::prepare<pack_team<double>, double>(D, raw, q.data());
    mixer<2>::mix<pack_team<double>, double>(D, q.data(), v.data(), nullptr, out.data(), scratch.data());
    CHECK(checks::same_bits(out, v));
    double* bars[] = {u_bar.data(), a_bar.data()};
    mixer<2>::prepare_back<pack_team<double>, double>(D, raw, q.data(), q.data(), bars);
    for (double x : u_bar) CHECK(std::isfinite(x));
}

TEST_CASE_TEMPLATE("householder: packs are equivalent to one channel at a time", T, float, double) {
    for (index D : {1, 3, 17}) {
        using M = mixer<4, 2>;
        const auto v = random<T>({D}, 5), w = random<T>({D}, 6), g = random<T>({D}, 7);
        const auto run = [&]<class Team>(Team) {
            const auto q = prepared<M, Team, T>(D, 1);
            tensor<T> out(shape{D}), q_bar(q.shape()), scratch({M::scratch(D)});
            M::template mix<Team, T>(D, q.data(), v.data(), w.data(), out.data(), scratch.data());
            M::template mix_back_q<Team, T>(D, q.data(), v.data(), w.data(), g.data(), q_bar.data(), scratch.data());
            return std::vector{q, out, q_bar};
        };
        const auto packs = run(pack_team<T>{}), serial = run(serial_team<T>{});
        for (std::size_t i = 0; i < 3; ++i) CHECK(checks::ulps(packs[i], serial[i]) <= 4);
    }
}

}  // namespace
