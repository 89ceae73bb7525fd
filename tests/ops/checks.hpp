#pragma once

#include <fprnn/backend/eigen.hpp>
#include <fprnn/core/random.hpp>
#include <fprnn/tape/gradcheck.hpp>

#include <doctest/doctest.h>
#include <larger.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <vector>

/// What the tests of operations and mixers share.
namespace checks {

using fprnn::index;
using fprnn::shape;
using fprnn::tensor;

/// Gradients must agree with difference quotients to this, every entry (issue: "What must hold").
inline constexpr double gradient_tolerance = 1e-7;

/// Normal numbers around `mean`, one stream for every name.
template <class T>
tensor<T> random(shape s, std::uint64_t stream, double deviation = 1, double mean = 0) {
    const fprnn::random_stream numbers({7}, stream);
    tensor<T> x(s);
    for (index i = 0; i < x.size(); ++i) x[i] = static_cast<T>(mean + deviation * numbers.normal(i));
    return x;
}
/// The same, or complex numbers of two of them.
template <class T>
tensor<T> numbers(shape s, std::uint64_t stream) {
    return random<T>(s, stream);
}
template <>
inline tensor<std::complex<double>> numbers<std::complex<double>>(shape s, std::uint64_t stream) {
    const auto re = random<double>(s, stream), im = random<double>(s, stream + 1000);
    tensor<std::complex<double>> x(s);
    for (index i = 0; i < x.size(); ++i) x[i] = {re[i], im[i]};
    return x;
}

/// [B,T,D] for B in {1,3}, T in {1,5}, D in {1,3,17}.
inline std::vector<shape> odd_sizes() {
    std::vector<shape> all;
    for (index B : {1, 3})
        for (index T : {1, 5})
            for (index D : {1, 3, 17}) all.push_back({B, T, D});
    return all;
}

template <class A, class B>
double dot(const A& a, const B& b) {
    REQUIRE(a.size() == b.size());
    double sum = 0;
    for (index i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return sum;
}

/// The largest |a − b| in units of the type's ε times the largest |scale|, of sums that of their terms'
/// absolute values.
template <class T>
double ulps(const tensor<T>& a, const tensor<T>& b, const tensor<T>& scale) {
    REQUIRE(a.shape() == b.shape());
    REQUIRE(b.shape() == scale.shape());
    double difference = 0, largest = 0;
    for (index i = 0; i < a.size(); ++i) {
        difference = fprnn::testing::larger(difference, static_cast<double>(std::abs(a[i] - b[i])));
        largest = fprnn::testing::larger(largest, static_cast<double>(std::abs(scale[i])));
        REQUIRE(std::abs(a[i]) <= std::numeric_limits<double>::max());
    }
    using real = decltype(std::abs(T{}));
    return difference == 0 ? 0 : difference / largest / static_cast<double>(std::numeric_limits<real>::epsilon());
}
template <class T>
double ulps(const tensor<T>& a, const tensor<T>& b) {
    return ulps(a, b, b);
}

template <class T>
bool same_bits(const T* a, const T* b, index n) {
    return std::memcmp(a, b, static_cast<std::size_t>(n) * sizeof(T)) == 0;
}
template <class T>
bool same_bits(const tensor<T>& a, const tensor<T>& b) {
    return a.shape() == b.shape() && (a.empty() || same_bits(a.data(), b.data(), a.size()));
}

/// `of(x)` for x [B,T,D]: slice b of the result belongs to slice b of x, and has the same bits wherever the
/// slice stands. Slices are tokens ([.., D]) or sequences ([T, D]) of x, laid out as a batch.
template <class T, class F>
void equal_slices_give_equal_bits(const tensor<T>& x, index slices, F&& of) {
    const tensor<T> y = of(x);
    const index size = x.size() / slices, out = y.size() / slices;
    for (index n : {1, 2, 3, 15, 16, 17, 40}) {
        shape s = x.shape()[0] == slices ? shape{n, x.shape()[1], x.shape()[2]} : shape{1, n, x.shape()[2]};
        tensor<T> other(s);
        for (index i = 0; i < n; ++i)
            std::copy_n(x.data() + (5 * i + 3) % slices * size, size, other.data() + i * size);
        const tensor<T> z = of(other);
        bool same = true;
        for (index i = 0; i < n; ++i)
            same = same && same_bits(z.data() + i * out, y.data() + (5 * i + 3) % slices * out, out);
        CHECK_MESSAGE(same, n << " slices of " << x.shape().to_string());
    }
}

/// of(backend) has the same bits for 1 to 8 threads.
template <class F>
void threads_give_equal_bits(F&& of) {
    const auto one = of(fprnn::eigen(1));
    for (int threads = 2; threads <= 8; ++threads) {
        const auto many = of(fprnn::eigen(threads));
        CHECK_MESSAGE(same_bits(many, one), threads << " threads");
    }
}

/// `more` is `once` added to arrays that held 10.
inline void check_added_to_ten(const tensor<double>& more, const tensor<double>& once) {
    REQUIRE(more.shape() == once.shape());
    for (index i = 0; i < more.size(); ++i) CHECK(std::abs(more[i] - 10 - once[i]) <= 1e-13);
}

inline void check_gradients(const fprnn::gradcheck_result& r) {
    CHECK_MESSAGE(r.error <= gradient_tolerance, r.to_string());
}

}  // namespace checks
