#include <ops/checks.hpp>

#include <limits>

namespace {

using checks::random;
using fprnn::index;
using fprnn::pack_team;
using fprnn::serial_team;
using fprnn::shape;
using fprnn::small_array;
using fprnn::tensor;

static_assert(fprnn::backend_for<fprnn::reference, float> && fprnn::backend_for<fprnn::reference, double>);
static_assert(fprnn::backend_for<fprnn::eigen, float> && fprnn::backend_for<fprnn::eigen, double>);

#define FPRNN_TEAMS serial_team<float>, serial_team<double>, pack_team<float>, pack_team<double>

template <class Team>
struct number;
template <template <class> class Team, class T>
struct number<Team<T>> {
    using type = T;
};

TEST_CASE_TEMPLATE("team: each visits every channel once and writes nothing beyond the row", Team, FPRNN_TEAMS) {
    using T = typename number<Team>::type;
    for (index D = 0; D <= 40; ++D) {
        tensor<T> x(shape{D + 8});
        x.fill(-7);
        T* row = x.data() + 1;  // not aligned
        for (index i = 0; i < D; ++i) row[i] = static_cast<T>(i);
        Team::each(D, [&](auto lane) {
            lane.store(row, lane.load(row) * lane.load(row));
            lane.add(row, decltype(lane.load(row))(T(1)));
        });
        bool right = x[0] == -7;
        for (index i = 0; i < D; ++i) right = right && row[i] == static_cast<T>(i * i + 1);
        for (index i = D; i < D + 7; ++i) right = right && row[i] == -7;
        CHECK_MESSAGE(right, "D = " << D);
    }
}

TEST_CASE_TEMPLATE("team: once is a single time", Team, FPRNN_TEAMS) {
    int times = 0;
    Team::once([&] { ++times; });
    CHECK(times == 1);
}

TEST_CASE_TEMPLATE("team: sums are exact where integers are, whatever the tail", Team, FPRNN_TEAMS) {
    using T = typename number<Team>::type;
    for (index D = 0; D <= 40; ++D) {
        tensor<T> x(shape{D});
        double sum = 0, squares = 0;
        for (index i = 0; i < D; ++i) {
            x[i] = static_cast<T>(i + 1);
            sum += static_cast<double>(i + 1);
            squares += static_cast<double>((i + 1) * (i + 1));
        }
        const auto s = Team::template sum<3>(D, [&](auto lane) {
            using V = decltype(lane.load(x.data()));
            const V v = lane.load(x.data());
            return small_array<V, 3>{v, v * v, V(T(1))};  // the last one is not 0 in the empty places of a tail
        });
        CHECK(s[0] == static_cast<T>(sum));
        CHECK(s[1] == static_cast<T>(squares));
        CHECK(s[2] == static_cast<T>(D));
    }
}

TEST_CASE_TEMPLATE("team: max is the largest channel, wherever it stands, and −∞ of none", Team, FPRNN_TEAMS) {
    using T = typename number<Team>::type;
    CHECK(Team::max(0, [](auto lane) { return lane.load(static_cast<const T*>(nullptr)); }) ==
          -std::numeric_limits<T>::infinity());
    for (index D : {1, 2, 3, 4, 7, 8, 9, 17, 33})
        for (index at = 0; at < D; ++at)
            for (double largest : {5.0, -5.0, 0.0}) {  // −5: a tail's empty places must not win
                tensor<T> x(shape{D});
                x.fill(static_cast<T>(largest - 1));
                x[at] = static_cast<T>(largest);
                CHECK(Team::max(D, [&](auto lane) { return lane.load(x.data()); }) == static_cast<T>(largest));
            }
}

TEST_CASE_TEMPLATE("team: max is NaN when any channel is not finite", Team, FPRNN_TEAMS) {
    using T = typename number<Team>::type;
    const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
    for (index D : {1, 3, 4, 8, 9, 17, 33})
        for (index at = 0; at < D; ++at)
            for (T bad : {inf, -inf, nan}) {
                tensor<T> x(shape{D});
                x[at] = bad;
                CHECK(std::isnan(Team::max(D, [&](auto lane) { return lane.load(x.data()); })));
            }
    tensor<T> x({9});
    x.fill(std::numeric_limits<T>::max());
    CHECK(Team::max(9, [&](auto lane) { return lane.load(x.data()); }) == std::numeric_limits<T>::max());
}

TEST_CASE_TEMPLATE("team: equal rows give equal bits at any address", Team, FPRNN_TEAMS) {
    using T = typename number<Team>::type;
    for (index D : {1, 3, 17, 33}) {
        const auto x = random<T>({D}, 1);
        tensor<T> sums({16}), memory(shape{D + 16});
        for (index offset = 0; offset < 16; ++offset) {
            T* row = std::copy_n(x.data(), D, memory.data() + offset) - D;
            sums[offset] = Team::template sum<1>(D, [&](auto lane) {
                using fprnn::math::exp;
                return small_array{exp(lane.load(row)) * lane.load(row)};
            })[0];
        }
        for (index offset = 1; offset < 16; ++offset) CHECK(checks::same_bits(&sums[offset], &sums[0], 1));
    }
}

TEST_CASE_TEMPLATE("pack: its arithmetic is the number's", T, float, double) {
    using fprnn::pack;
    constexpr index n = pack<T>::size;
    const auto a = random<T>({n}, 1), b = random<T>({n}, 2);
    const auto same = [&](pack<T> p, auto&& formula, double ulps) {
        tensor<T> x({n}), y({n});
        p.store(x.data());
        for (index i = 0; i < n; ++i) y[i] = static_cast<T>(formula(a[i], b[i]));
        CHECK(checks::ulps(x, y) <= ulps);
    };
    const auto p = pack<T>::load(a.data()), q = pack<T>::load(b.data());
    same(
        p + q, [](T x, T y) { return x + y; }, 0);
    same(
        p - q, [](T x, T y) { return x - y; }, 0);
    same(
        p * q, [](T x, T y) { return x * y; }, 0);
    same(
        p / q, [](T x, T y) { return x / y; }, 0);
    same(
        -p, [](T x, T) { return -x; }, 0);
    same(
        abs(p), [](T x, T) { return std::abs(x); }, 0);
    same(
        ceil(p), [](T x, T) { return std::ceil(x); }, 0);
    same(
        sqrt(abs(p)), [](T x, T) { return std::sqrt(std::abs(x)); }, 1);
    same(
        maximum(p, q), [](T x, T y) { return std::max(x, y); }, 0);
    same(
        minimum(p, q), [](T x, T y) { return std::min(x, y); }, 0);
    same(
        exp(p), [](T x, T) { return std::exp(x); }, 1);
    same(
        log1p(abs(p)), [](T x, T) { return std::log1p(std::abs(x)); }, 1);
    tensor<T> sums({n});
    multiply_add(p, q, p).store(sums.data());
    for (index i = 0; i < n; ++i)  // rounded once or twice
        CHECK(std::abs(sums[i] - std::fma(a[i], b[i], a[i])) <=
              std::numeric_limits<T>::epsilon() * (std::abs(a[i] * b[i]) + std::abs(a[i])));
}

/// 2^x where a register of x has it, in its last channel too.
template <class T>
T power_of_two(T x) {
    using fprnn::pack;
    T numbers[static_cast<std::size_t>(pack<T>::size)];
    exp2(pack<T>(x)).store(numbers);
    return numbers[pack<T>::size - 1];
}

TEST_CASE("pack: 2^x is within 1.2 of a last place, down to the smallest normal number") {
    double worst = 0;
    for (int i = -126 * 4096; i < 127 * 4096; ++i) {
        const float x = static_cast<float>(i) / 4096.0f + 1e-5f * static_cast<float>(i % 7);
        const double exact = std::exp2(static_cast<double>(x));
        const double place = std::exp2(std::floor(static_cast<double>(x)) - 23);
        if (x > -126.0f && x < 127.5f)
            worst = fprnn::testing::larger(worst, std::abs(static_cast<double>(power_of_two(x)) - exact) / place);
    }
    // At all 65,536ths of an octave: 0.80 where the processor fuses products with sums, 1.13 where not.
    CHECK(worst < 1.2);
    CHECK(worst > 0.25);
    for (int n = -126; n <= 127; ++n) CHECK(power_of_two(static_cast<float>(n)) == std::ldexp(1.0f, n));
}

TEST_CASE_TEMPLATE("pack: 2^x of what is small, large or not a number", T, float, double) {
    constexpr T infinity = std::numeric_limits<T>::infinity();
    for (T x : {T(-5000), T(-1e30), std::numeric_limits<T>::lowest(), -infinity}) CHECK(power_of_two(x) <= 1e-300);
    for (T x : {T(5000), T(1e30), infinity}) CHECK(power_of_two(x) == infinity);
    CHECK(std::isnan(power_of_two(std::numeric_limits<T>::quiet_NaN())));
    CHECK(power_of_two(T(0)) == 1);
    CHECK(power_of_two(T(-0.0)) == 1);
    for (T x : {T(-126.5), T(-126.9), T(-127), T(-127.1), T(-149), T(-150)})
        CHECK(std::abs(power_of_two(x) - std::exp2(x)) <= std::numeric_limits<float>::min());
    // Doubles take e^(x ln 2), and round ln 2 (0.15 eps of it, times 0.69 |x|) and x ln 2 (half an eps,
    // likewise).
    const double of_x = std::is_same_v<T, double> ? 0.45 : 0;
    for (double x = -80; x < 80; x += 0.37) {
        const double exact = std::exp2(static_cast<double>(static_cast<T>(x)));
        CHECK(std::abs(static_cast<double>(power_of_two(static_cast<T>(x))) / exact - 1) <=
              (1 + of_x * std::abs(x)) * static_cast<double>(std::numeric_limits<T>::epsilon()));
    }
}

TEST_CASE_TEMPLATE("pack: conditions choose channel by channel", T, float, double) {
    using fprnn::pack;
    constexpr index n = pack<T>::size;
    tensor<T> a({n}), b({n}), less({n}), at_most({n}), both({n});
    for (index i = 0; i < n; ++i) a[i] = static_cast<T>(i % 3), b[i] = 1;
    a[n - 1] = std::numeric_limits<T>::quiet_NaN();
    const auto p = pack<T>::load(a.data()), q = pack<T>::load(b.data());
    const pack<T> yes(T(5)), no(T(-5));
    select(p < q, yes, no).store(less.data());
    select(p <= q, yes, no).store(at_most.data());
    select((p <= q) & (q <= p), yes, no).store(both.data());
    for (index i = 0; i < n; ++i) {
        CHECK(less[i] == (a[i] < b[i] ? 5 : -5));
        CHECK(at_most[i] == (a[i] <= b[i] ? 5 : -5));
        CHECK(both[i] == (a[i] == b[i] ? 5 : -5));
    }
    for (index i = 0; i < n; ++i) {
        b.fill(0);
        b[i] = 1;
        CHECK(any(pack<T>(T(0)) < pack<T>::load(b.data())));
    }
    CHECK_FALSE(any(q < q));
    CHECK_FALSE(any(p < p));
}

}  // namespace
