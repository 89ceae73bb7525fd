#include <fprnn/ops/scan.hpp>

#include <ops/checks.hpp>

namespace {

using checks::numbers;
using checks::random;
using fprnn::argument_error;
using fprnn::direction;
using fprnn::eigen;
using fprnn::index;
using fprnn::scan_cotangents;
using fprnn::shape;
using fprnn::tensor;
using fprnn::view;
using complex = std::complex<double>;

constexpr direction both[] = {direction::forward, direction::reversed};

/// h_t = (Π_{s ≤ t} λ_s) h_{−1} + Σ_{s ≤ t} (Π_{s < r ≤ t} λ_r) u_s: the recurrence written out.
template <class T>
tensor<T> written_out(const tensor<T>& lambda, const tensor<T>& u, const tensor<T>& carry, direction d) {
    const index B = u.shape()[0], tokens = u.shape()[1], D = u.shape()[2];
    const auto token = [&](index t) { return d == direction::forward ? t : tokens - 1 - t; };
    tensor<T> h(u.shape());
    for (index b = 0; b < B; ++b)
        for (index t = 0; t < tokens; ++t)
            for (index i = 0; i < D; ++i) {
                T sum(0);
                for (index s = -1; s <= t; ++s) {
                    T term = s < 0 ? (carry.empty() ? T(0) : carry(b, i)) : u(b, token(s), i);
                    for (index r = s + 1; r <= t; ++r) term *= lambda(b, token(r), i);
                    sum += term;
                }
                h(b, token(t), i) = sum;
            }
    return h;
}

/// A complex tensor as real numbers.
view<double> parts(tensor<double>& x) { return x; }
view<double> parts(tensor<complex>& x) { return {reinterpret_cast<double*>(x.data()), {x.size(), 2}}; }

/// Re⟨a, b⟩
double real_dot(const tensor<double>& a, const tensor<double>& b) { return checks::dot(a, b); }
double real_dot(const tensor<complex>& a, const tensor<complex>& b) {
    double sum = 0;
    for (index i = 0; i < a.size(); ++i) sum += (std::conj(a[i]) * b[i]).real();
    return sum;
}

TEST_CASE_TEMPLATE("scan: it is the recurrence written out, in both directions, with and without a carry", T, double,
                   complex) {
    for (const shape& s : checks::odd_sizes())
        for (direction d : both) {
            const auto lambda = numbers<T>(s, 1), u = numbers<T>(s, 2), carry = numbers<T>({s[0], s[2]}, 3);
            CHECK(checks::ulps(fprnn::scan(lambda, u, carry, d), written_out(lambda, u, carry, d)) <= 4);
            CHECK(checks::ulps(fprnn::scan(lambda, u, {}, d), written_out(lambda, u, {}, d)) <= 4);
        }
}

TEST_CASE("scan: tensors and views of both kinds are accepted") {
    tensor<float> lambda({1, 2, 3}), u({1, 2, 3});
    u.fill(1);
    lambda.fill(2);
    const auto h = fprnn::scan(lambda, u);
    CHECK(h(0, 0, 2) == 1);
    CHECK(h(0, 1, 2) == 3);
    CHECK(checks::same_bits(fprnn::scan(lambda.view(), u.view()), h));
    CHECK(checks::same_bits(fprnn::scan(std::as_const(lambda).view(), u), h));
}

template <class T>
void check_gradient(const shape& s, direction d, bool with_carry) {
    auto lambda = numbers<T>(s, 1), u = numbers<T>(s, 2);
    auto carry = with_carry ? numbers<T>({s[0], s[2]}, 3) : tensor<T>();
    const auto h_bar = numbers<T>(s, 4), carry_bar = numbers<T>({s[0], s[2]}, 5);
    const auto loss = [&] {
        const auto h = fprnn::scan(lambda, u, carry, d);
        double sum = real_dot(h_bar, h);
        const index last = d == direction::forward ? s[1] - 1 : 0;
        for (index b = 0; b < s[0]; ++b) {
            tensor<T> end({s[2]}), bar({s[2]});
            std::copy_n(&h(b, last, 0), s[2], end.data());
            std::copy_n(&carry_bar(b, 0), s[2], bar.data());
            sum += real_dot(bar, end);
        }
        return sum;
    };
    scan_cotangents<T> bars(s);
    fprnn::scan_back(lambda, fprnn::scan(lambda, u, carry, d), carry, h_bar, carry_bar, bars, d);
    std::vector<fprnn::gradcheck_input> inputs{{"lambda", parts(lambda), parts(bars.lambda)},
                                               {"u", parts(u), parts(bars.u)}};
    if (with_carry) inputs.push_back({"carry", parts(carry), parts(bars.carry)});
    checks::check_gradients(fprnn::gradcheck(loss, inputs));
}

TEST_CASE_TEMPLATE("scan: gradients agree with central differences, carry in and out included", T, double, complex) {
    for (const shape& s : checks::odd_sizes())
        for (direction d : both)
            for (bool with_carry : {false, true}) check_gradient<T>(s, d, with_carry);
}

TEST_CASE("scan: the reversed scan is the adjoint of the scan") {
    const shape s{2, 7, 5};
    const auto lambda = random<double>(s, 1), u = random<double>(s, 2), h_bar = random<double>(s, 3);
    // ū_t = ḣ_t + λ_{t+1} ū_{t+1}: a reversed scan whose decay is read one token later.
    tensor<double> next(s);
    for (index b = 0; b < 2; ++b)
        for (index t = 0; t + 1 < 7; ++t)
            for (index i = 0; i < 5; ++i) next(b, t, i) = lambda(b, t + 1, i);
    scan_cotangents<double> bars(s);
    const auto h = fprnn::scan(lambda, u);
    fprnn::scan_back(lambda, h, {}, h_bar, {}, bars);
    CHECK(checks::ulps(bars.u, fprnn::scan(next, h_bar, {}, direction::reversed)) <= 1);
    CHECK(checks::dot(h_bar, h) == doctest::Approx(checks::dot(bars.u, u)).epsilon(1e-14));
}

TEST_CASE("scan: a sequence scanned in two pieces with the carry between them has the same bits") {
    const auto lambda = random<float>({1, 9, 17}, 1), u = random<float>({1, 9, 17}, 2);
    const auto whole = fprnn::scan(lambda, u, {}, direction::forward, eigen(1));
    for (index cut : {1, 4, 8}) {
        const auto piece = [&](const tensor<float>& x, index from, index to) {
            return view<const float>(x.data() + from * 17, {1, to - from, 17});
        };
        const auto first = fprnn::scan(piece(lambda, 0, cut), piece(u, 0, cut), {}, direction::forward, eigen(1));
        const view<const float> carry(first.data() + (cut - 1) * 17, {1, 17});
        const auto second = fprnn::scan(piece(lambda, cut, 9), piece(u, cut, 9), carry, direction::forward, eigen(1));
        CHECK(checks::same_bits(first.data(), whole.data(), first.size()));
        CHECK(checks::same_bits(second.data(), whole.data() + cut * 17, second.size()));
    }
}

TEST_CASE("scan: the adjoint accumulates") {
    const shape s{2, 3, 5};
    const auto lambda = random<double>(s, 1), u = random<double>(s, 2), bar = random<double>(s, 3);
    const auto carry = random<double>({2, 5}, 4), h = fprnn::scan(lambda, u, carry);
    scan_cotangents<double> once(s), more(s);
    more.lambda.fill(10), more.u.fill(10), more.carry.fill(10);
    fprnn::scan_back(lambda, h, carry, bar, carry, once);
    fprnn::scan_back(lambda, h, carry, bar, carry, more);
    checks::check_added_to_ten(more.lambda, once.lambda);
    checks::check_added_to_ten(more.u, once.u);
    checks::check_added_to_ten(more.carry, once.carry);
}

TEST_CASE_TEMPLATE("scan: overwriting gives what accumulating into zeros gives, whatever was there", T, double,
                   complex) {
    for (const shape& s : checks::odd_sizes())
        for (direction d : both)
            for (bool with_carry : {false, true}) {
                const auto lambda = numbers<T>(s, 1), u = numbers<T>(s, 2), bar = numbers<T>(s, 3);
                const auto carry = with_carry ? numbers<T>({s[0], s[2]}, 4) : tensor<T>();
                const auto h = fprnn::scan(lambda, u, carry, d);
                scan_cotangents<T> zero(s), any(s);
                any.lambda.fill(T(7)), any.u.fill(T(7)), any.carry.fill(T(7));
                fprnn::scan_back(lambda, h, carry, bar, carry, zero, d);
                fprnn::scan_back<fprnn::update::overwrite>(lambda, h, carry, bar, carry, any, d);
                // Of a complex product the compiler fuses one half or the other, here so and there so.
                const auto same = [](const tensor<T>& a, const tensor<T>& b) {
                    return std::same_as<T, complex> ? checks::ulps(a, b) <= 4 : checks::same_bits(a, b);
                };
                CHECK(same(any.lambda, zero.lambda));
                CHECK(same(any.u, zero.u));
                CHECK(same(any.carry, zero.carry));
            }
}

TEST_CASE("scan: over existing memory, u's own too, it has the same bits") {
    const shape s{2, 7, 5};
    const auto lambda = random<double>(s, 1), u = random<double>(s, 2);
    for (direction d : both) {
        const auto h = fprnn::scan(lambda, u, {}, d);
        auto other = random<double>(s, 3), in_place = u;
        fprnn::scan_into(other, lambda, u, {}, d);
        fprnn::scan_into(in_place, lambda, in_place, {}, d);
        CHECK(checks::same_bits(other, h));
        CHECK(checks::same_bits(in_place, h));
    }
    tensor<double> small({2, 7, 4});
    CHECK_THROWS_WITH_AS(fprnn::scan_into(small, lambda, u), "scan: lambda is [2,7,5] but h is [2,7,4]",
                         argument_error);
}

TEST_CASE("scan: channels are worked on in blocks, which changes no bit") {
    const shape s{1, 5, 1100};
    const auto lambda = random<float>(s, 1), u = random<float>(s, 2), carry = random<float>({1, 1100}, 3);
    const auto h = fprnn::scan(lambda, u, carry, direction::forward, eigen(2));
    scan_cotangents<float> bars(s);
    fprnn::scan_back(lambda, h, carry, u, carry, bars, direction::forward, eigen(2));
    CHECK(checks::same_bits(h, fprnn::scan(lambda, u, carry, direction::forward, eigen(1))));
    for (const index i : {0, 511, 512, 1023, 1024, 1099}) {
        const auto column = [&](const tensor<float>& x) {
            tensor<float> one({1, x.size() / 1100, 1});
            for (index t = 0; t < one.size(); ++t) one[t] = x[t * 1100 + i];
            return one;
        };
        const tensor<float> start({1, 1}, {carry[i]});
        const auto own = fprnn::scan(column(lambda), column(u), start);
        scan_cotangents<float> own_bars({1, 5, 1});
        fprnn::scan_back(column(lambda), own, start, column(u), start, own_bars);
        CHECK(checks::same_bits(column(h), own));
        CHECK(checks::same_bits(column(bars.lambda), own_bars.lambda));
        CHECK(bars.carry[i] == own_bars.carry[0]);
    }
}

TEST_CASE_TEMPLATE("scan: packs are equivalent to the reference", T, float, double, complex) {
    for (const shape& s : checks::odd_sizes())
        for (direction d : both) {
            const auto lambda = numbers<T>(s, 1), u = numbers<T>(s, 2), carry = numbers<T>({s[0], s[2]}, 3);
            const auto h = fprnn::scan(lambda, u, carry, d);
            CHECK(checks::ulps(fprnn::scan(lambda, u, carry, d, eigen(2)), h) <= 1);
            scan_cotangents<T> a(s), b(s);
            fprnn::scan_back(lambda, h, carry, u, carry, a, d, eigen(2));
            fprnn::scan_back(lambda, h, carry, u, carry, b, d);
            CHECK(checks::ulps(a.lambda, b.lambda) <= 1);
            CHECK(checks::ulps(a.u, b.u) <= 1);
            CHECK(checks::ulps(a.carry, b.carry) <= 1);
        }
}

TEST_CASE_TEMPLATE("scan: a long channel by itself is the recurrence, by stretches of time", T, float, double) {
    for (index tokens : {1, 15, 64, 255, 256, 257, 1000})
        for (bool has_carry : {false, true}) {
            const shape s{3, tokens, 1};
            auto lambda = random<T>(s, 1);
            for (T& x : lambda) x = T(0.999) * std::sin(x);  // of both signs, the memory of a few tokens
            const auto u = random<T>(s, 2), carry = has_carry ? random<T>({3, 1}, 3) : tensor<T>();
            const auto h = fprnn::scan(lambda, u, carry), line = fprnn::scan(lambda, u, carry, {}, eigen(2));
            double apart = 0, largest = 0;
            for (index i = 0; i < h.size(); ++i) {
                apart =
                    fprnn::testing::larger(apart, std::abs(static_cast<double>(h[i]) - static_cast<double>(line[i])));
                largest = std::max(largest, std::abs(static_cast<double>(h[i])));
            }
            CAPTURE(tokens);
            CHECK(apart <= 4 * static_cast<double>(std::numeric_limits<T>::epsilon()) * largest);
            auto in_place = u;
            fprnn::scan_into(in_place, lambda, in_place, carry, direction::forward, eigen(1));
            CHECK(checks::same_bits(in_place.data(), line.data(), line.size()));
            if (has_carry) continue;
            for (index b = 0; b < 3; ++b) lambda(b, 0, 0) = std::numeric_limits<T>::quiet_NaN();
            CHECK(checks::same_bits(fprnn::scan(lambda, u, {}, direction::forward, eigen(1)).data(), line.data(),
                                    line.size()));
        }
}

TEST_CASE_TEMPLATE("scan: a sequence's bits depend neither on its neighbours nor on the threads", T, float, double) {
    for (index D : {1, 3, 17}) {
        const auto x = random<T>({7, 5, D}, 1);
        checks::equal_slices_give_equal_bits(
            x, 7, [](const auto& v) { return fprnn::scan(v, v, {}, direction::forward, eigen(2)); });
        checks::equal_slices_give_equal_bits(x, 7, [](const auto& v) {
            scan_cotangents<T> bars(v.shape());
            fprnn::scan_back(v, v, {}, v, {}, bars, direction::forward, eigen(2));
            return bars.lambda;
        });
        checks::threads_give_equal_bits([&](eigen e) { return fprnn::scan(x, x, {}, direction::forward, e); });
    }
}

TEST_CASE("scan: without tokens the carry's cotangent passes through; without sequences or channels nothing happens") {
    for (direction d : both) {
        const shape s{2, 0, 3};
        const tensor<double> none(s);
        const auto carry = random<double>({2, 3}, 1);
        CHECK(fprnn::scan(none, none, carry, d).shape() == s);
        scan_cotangents<double> bars(s);
        fprnn::scan_back(none, none, carry, none, carry, bars, d);
        CHECK(checks::same_bits(bars.carry, carry));
        for (const shape& empty : {shape{0, 5, 3}, shape{2, 5, 0}}) {
            const tensor<double> x(empty);
            CHECK(fprnn::scan(x, x, {}, d, eigen(2)).shape() == empty);
            scan_cotangents<double> b(empty);
            fprnn::scan_back(x, x, {}, x, {}, b, d, eigen(2));
        }
    }
}

TEST_CASE("scan: shapes that do not match are named") {
    const tensor<float> a({4, 8, 16}), short_channels({4, 8, 15}), flat({4, 16}), carry({4, 15});
    CHECK_THROWS_WITH_AS(fprnn::scan(a, short_channels), "scan: lambda is [4,8,16] but u is [4,8,15]", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::scan(flat, flat), "scan: lambda must be [B,T,D], got [4,16]", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::scan(a, a, carry), "scan: carry must be [4,16], got [4,15]", argument_error);
    // One without numbers is left out where it has no shape, and wrong otherwise.
    CHECK_NOTHROW(fprnn::scan(a, a, tensor<float>()));
    CHECK_THROWS_WITH_AS(fprnn::scan(a, a, tensor<float>({0, 16})), "scan: carry must be [4,16], got [0,16]",
                         argument_error);

    scan_cotangents<float> bars({4, 8, 16}), wrong({4, 8, 15});
    CHECK_THROWS_WITH_AS(fprnn::scan_back(flat, a, {}, a, {}, bars), "scan_back: lambda must be [B,T,D], got [4,16]",
                         argument_error);
    CHECK_THROWS_WITH_AS(fprnn::scan_back(a, short_channels, {}, a, {}, bars),
                         "scan_back: lambda is [4,8,16] but h is [4,8,15]", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::scan_back(a, a, {}, short_channels, {}, bars),
                         "scan_back: lambda is [4,8,16] but h_bar is [4,8,15]", argument_error);
    CHECK_THROWS_WITH_AS(fprnn::scan_back(a, a, carry, a, {}, bars), "scan_back: carry must be [4,16], got [4,15]",
                         argument_error);
    CHECK_THROWS_WITH_AS(fprnn::scan_back(a, a, {}, a, carry, bars), "scan_back: carry_bar must be [4,16], got [4,15]",
                         argument_error);
    CHECK_THROWS_WITH_AS(fprnn::scan_back(a, a, {}, a, {}, wrong),
                         "scan_back: lambda is [4,8,16] but into.lambda is [4,8,15]", argument_error);
    wrong.lambda = bars.lambda;
    CHECK_THROWS_WITH_AS(fprnn::scan_back(a, a, {}, a, {}, wrong),
                         "scan_back: lambda is [4,8,16] but into.u is [4,8,15]", argument_error);
    wrong.u = bars.u;
    CHECK_THROWS_WITH_AS(fprnn::scan_back(a, a, {}, a, {}, wrong), "scan_back: into.carry must be [4,16], got [4,15]",
                         argument_error);
}

}  // namespace
