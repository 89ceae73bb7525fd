#include <fprnn/mixers/kronecker.hpp>

#include <ops/checks.hpp>

#include <Eigen/Eigenvalues>

namespace {

using fprnn::index;
using fprnn::kronecker_mixer;
using fprnn::kronecker_sizes;
using fprnn::tensor;

static_assert(fprnn::mixer<kronecker_mixer> && !fprnn::compact_mixer<kronecker_mixer>);

/// ‖I − Q‖₂ = ‖K¹‖₂ ‖K²‖₂, of the factors as they are stored, computed in long double.
template <class T>
long double complement_norm(index D, const T* const* raw) {
    tensor<T> q({kronecker_mixer::size(D)}), scratch({kronecker_mixer::prepare_scratch(D)});
    kronecker_mixer::prepare<fprnn::pack_team<T>, T>(D, raw, q.data(), scratch.data());
    const auto [a, b] = kronecker_sizes::of(D);
    using matrix = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;
    const auto norm = [](const T* K, index m) {
        matrix full(m, m);
        for (index i = 0; i < m; ++i)
            for (index j = 0; j < m; ++j) full(i, j) = (static_cast<long double>(K[i * m + j]) + K[j * m + i]) / 2;
        return Eigen::SelfAdjointEigenSolver<matrix>(full, Eigen::EigenvaluesOnly).eigenvalues().cwiseAbs().maxCoeff();
    };
    return norm(q.data(), a) * norm(q.data() + a * a, b);
}

TEST_CASE("kronecker: D is the product of its largest divisor not above the root, and the rest") {
    const auto is = [](index D, index a, index b) {
        const auto n = kronecker_sizes::of(D);
        CHECK(n.a == a);
        CHECK(n.b == b);
    };
    is(1, 1, 1), is(2, 1, 2), is(12, 3, 4), is(13, 1, 13), is(60, 6, 10), is(64, 8, 8), is(128, 8, 16),
        is(1024, 32, 32);
}

TEST_CASE_TEMPLATE("kronecker: the norm of I - Q is below 1 for 10,000 random and adversarial weights", T, float,
                   double) {
    const index widths[] = {1, 4, 6, 7, 12, 16};
    long double largest = 0, smallest = 1;
    for (index trial = 0; trial < 5000; ++trial) {
        const index D = widths[trial % 6];
        const auto sizes = kronecker_mixer::raw_sizes(D);
        const auto stream = static_cast<std::uint64_t>(2 * trial);
        auto k = checks::random<T>({sizes[0]}, stream), gates = checks::random<T>({sizes[1]}, stream + 1);
        const index kind = trial / 6 % 8;
        constexpr T huge = std::numeric_limits<T>::max();
        for (T& g : gates) g = kind < 2 ? g : T(kind % 2 == 0 ? 1e4 : 30);  // closed, open to the last bit, or random
        for (T& x : k) {
            if (kind == 2) x = T(1);                                                     // rank 1
            if (kind == 3) x *= huge / T(1e4);                                           // squares overflow
            if (kind == 4) x = std::ldexp(x, std::numeric_limits<T>::min_exponent / 2);  // and vanish
            if (kind == 5) x = x > 1 ? x : T(0);                                         // mostly zeros
            if (kind == 6) x = x < 0 ? -huge : huge;
            if (kind == 7) x = std::numeric_limits<T>::denorm_min();
        }
        const T* raw[] = {k.data(), gates.data()};
        const long double norm = complement_norm<T>(D, raw);
        largest = std::max(largest, norm);
        if (kind < 2) smallest = std::min(smallest, norm);
        CHECK(norm < 1);
    }
    CHECK(largest > 0.999L);  // weights that reach for it were among them
    CHECK(smallest > 0);
}

TEST_CASE("kronecker: the bound of the norm is at most the fourth root of the width too large") {
    for (const index m : {1, 2, 8, 16}) {
        const index D = m * m;
        const auto sizes = kronecker_mixer::raw_sizes(D);
        const auto k = checks::random<double>({sizes[0]}, 3);
        tensor<double> open({sizes[1]});
        for (double& g : open) g = 50;
        const double* raw[] = {k.data(), open.data()};
        CHECK(complement_norm<double>(D, raw) >= 1 / std::sqrt(static_cast<double>(m)) - 1e-12);
    }
}

TEST_CASE("kronecker: raw numbers of zero are the identity, with a finite gradient") {
    const index D = 6;
    const auto sizes = kronecker_mixer::raw_sizes(D);
    const tensor<double> k({sizes[0]}), gates({sizes[1]}), v = checks::random<double>({D}, 1);
    const double* raw[] = {k.data(), gates.data()};
    tensor<double> q({kronecker_mixer::size(D)}), out({D}), scratch({kronecker_mixer::prepare_scratch(D)});
    kronecker_mixer::prepare<fprnn::pack_team<double>, double>(D, raw, q.data(), scratch.data());
    kronecker_mixer::mix<fprnn::pack_team<double>, double>(D, q.data(), v.data(), nullptr, out.data(), scratch.data());
    CHECK(checks::same_bits(out, v));
    const auto q_bar = checks::random<double>(q.shape(), 2);
    tensor<double> k_bar(k.shape()), gates_bar(gates.shape());
    double* bars[] = {k_bar.data(), gates_bar.data()};
    kronecker_mixer::prepare_back<fprnn::pack_team<double>, double>(D, raw, q.data(), q_bar.data(), bars,
                                                                    scratch.data());
    for (const double x : k_bar) CHECK(std::isfinite(x));
    for (const double x : gates_bar) CHECK(std::isfinite(x));
}

TEST_CASE("kronecker: NaN in a raw number is NaN in the output") {
    const index D = 12;
    const auto sizes = kronecker_mixer::raw_sizes(D);
    const auto gates = checks::random<float>({sizes[1]}, 2), v = checks::random<float>({D}, 3);
    for (const float poison : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        auto k = checks::random<float>({sizes[0]}, 1);
        k[k.size() - 1] = poison;
        const float* raw[] = {k.data(), gates.data()};
        tensor<float> q({kronecker_mixer::size(D)}), out({D}), scratch({kronecker_mixer::prepare_scratch(D)});
        kronecker_mixer::prepare<fprnn::pack_team<float>, float>(D, raw, q.data(), scratch.data());
        kronecker_mixer::mix<fprnn::pack_team<float>, float>(D, q.data(), v.data(), nullptr, out.data(),
                                                             scratch.data());
        CHECK_FALSE(std::isfinite(out[0] + out[D - 1]));
    }
}

TEST_CASE("kronecker: more numbers than 64 bits can count are refused before anything is made of them") {
    CHECK_THROWS_AS(kronecker_mixer::check(std::numeric_limits<index>::max() / 2), fprnn::argument_error);
    kronecker_mixer::check(1 << 20);
}

}  // namespace
