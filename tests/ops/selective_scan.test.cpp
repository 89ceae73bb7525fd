#include <fprnn/ops/selective_scan.hpp>

#include <ops/checks.hpp>

#include <array>

namespace {

using checks::random;
using fprnn::argument_error;
using fprnn::eigen;
using fprnn::index;
using fprnn::reference;
using fprnn::selective_scan_cotangents;
using fprnn::shape;
using fprnn::tensor;

template <class T>
struct arguments {
    tensor<T> delta, omega, b, c, u, H;

    /// Steps are positive and rates near 1, as softplus and ω ≈ 0 give them.
    arguments(const shape& s, index N)
        : delta(random<T>(s, 1, 0.3)),
          omega(random<T>({N, s[2]}, 2, 0.5)),
          b(random<T>({s[0], s[1], N}, 3)),
          c(random<T>({s[0], s[1], N}, 4)),
          u(random<T>(s, 5)),
          H(random<T>({s[0], N, s[2]}, 6)) {
        for (T& x : delta) x = std::abs(x);
    }
    template <class Backend = reference>
    auto value(Backend backend = {}) const {
        return fprnn::selective_scan(delta, omega, b, c, u, H, backend);
    }
    template <class Backend = reference>
    auto back(const tensor<T>& y_bar, const tensor<T>& H_bar, Backend backend = {}) const {
        selective_scan_cotangents<T> bars(u.shape(), omega.shape()[0]);
        fprnn::selective_scan_back(delta, omega, b, c, u, H, y_bar, H_bar, bars, backend);
        return bars;
    }
};

void check_recurrence(const shape& s, index N) {
    const arguments<double> a(s, N);
    const auto out = a.value();
    auto H = a.H;
    tensor<double> y(s);
    for (index i = 0; i < s[0]; ++i)
        for (index t = 0; t < s[1]; ++t)
            for (index d = 0; d < s[2]; ++d)
                for (index n = 0; n < N; ++n) {
                    double& h = H(i, n, d);
                    h = std::exp(-std::exp(a.omega(n, d)) * a.delta(i, t, d)) * h +
                        a.b(i, t, n) * a.delta(i, t, d) * a.u(i, t, d);
                    y(i, t, d) += a.c(i, t, n) * h;
                }
    CHECK(checks::ulps(out.y, y) <= 4);
    CHECK(checks::ulps(out.H, H) <= 4);
}

TEST_CASE("selective_scan: it is the recurrence, state by state") {
    for (const shape& s : checks::odd_sizes())
        for (index N : {1, 2, 5}) check_recurrence(s, N);
}

TEST_CASE("selective_scan: without a carry it begins at zero") {
    arguments<double> a({2, 5, 3}, 4);
    const auto without = fprnn::selective_scan(a.delta, a.omega, a.b, a.c, a.u);
    a.H.fill(0);
    CHECK(checks::same_bits(without.y, a.value().y));
    CHECK(checks::same_bits(without.H, a.value().H));
    selective_scan_cotangents<double> x(a.u.shape(), 4), y = x;
    const auto y_bar = random<double>(a.u.shape(), 7);
    const auto H_bar = tensor<double>({2, 4, 3});
    fprnn::selective_scan_back(a.delta, a.omega, a.b, a.c, a.u, {}, y_bar, {}, x);
    fprnn::selective_scan_back(a.delta, a.omega, a.b, a.c, a.u, a.H, y_bar, H_bar, y);
    CHECK(checks::same_bits(x.delta, y.delta));
    CHECK(checks::same_bits(x.H, y.H));
}

void check_gradient(const shape& s, index N) {
    arguments<double> a(s, N);
    const auto y_bar = random<double>(s, 7), H_bar = random<double>({s[0], N, s[2]}, 8);
    const auto bars = a.back(y_bar, H_bar);
    checks::check_gradients(fprnn::gradcheck(
        [&] {
            const auto out = a.value();
            return checks::dot(out.y, y_bar) + checks::dot(out.H, H_bar);
        },
        {{"delta", a.delta, bars.delta},
         {"omega", a.omega, bars.omega},
         {"b", a.b, bars.b},
         {"c", a.c, bars.c},
         {"u", a.u, bars.u},
         {"H", a.H, bars.H}}));
}

TEST_CASE("selective_scan: gradients of all six arguments agree with central differences") {
    for (const shape& s : checks::odd_sizes())
        for (index N : {1, 3}) check_gradient(s, N);
}

TEST_CASE("selective_scan: gradients hold across the blocks in which states are recomputed") {
    for (index tokens : {15, 16, 17, 33, 48}) check_gradient({1, tokens, 3}, 2);
}

TEST_CASE("selective_scan: channels are scanned in blocks, which nobody notices") {
    const index N = 33, D = 17;
    REQUIRE(fprnn::detail::channel_blocks<double>{N, D, 16}.count == 2);
    REQUIRE(fprnn::detail::channel_blocks<double>{N, D, 15}.count == 1);
    check_recurrence({2, 16, D}, N);
    const arguments<double> a({3, 17, D}, N);
    const auto whole = a.back(a.u, a.H);
    tensor<double> b_bar(a.b.shape()), c_bar(a.c.shape());  // summed over the parts
    for (const auto [first, channels] : {std::array<index, 2>{0, 16}, {16, 1}}) {
        arguments<double> part({3, 17, channels}, N);
        const auto cut = [&, f = first, n = channels](const tensor<double>& from, tensor<double>& to) {
            for (index r = 0; r < from.size() / D; ++r) std::copy_n(from.data() + r * D + f, n, to.data() + r * n);
        };
        cut(a.delta, part.delta), cut(a.u, part.u), cut(a.omega, part.omega), cut(a.H, part.H);
        part.b = a.b, part.c = a.c;
        const auto bars = part.back(part.u, part.H);
        auto expected = bars;
        cut(whole.delta, expected.delta), cut(whole.u, expected.u), cut(whole.omega, expected.omega),
            cut(whole.H, expected.H);
        CHECK(checks::ulps(bars.delta, expected.delta) <= 4);
        CHECK(checks::ulps(bars.u, expected.u) <= 4);
        CHECK(checks::ulps(bars.omega, expected.omega) <= 4);
        CHECK(checks::ulps(bars.H, expected.H) <= 4);
        for (index i = 0; i < b_bar.size(); ++i) b_bar[i] += bars.b[i], c_bar[i] += bars.c[i];
    }
    CHECK(checks::ulps(whole.b, b_bar) <= 4);
    CHECK(checks::ulps(whole.c, c_bar) <= 4);
    checks::threads_give_equal_bits([&](eigen e) { return a.value(e).y; });
    checks::threads_give_equal_bits([&](eigen e) { return a.value(e).H; });
    checks::threads_give_equal_bits([&](eigen e) { return a.back(a.u, a.H, e).b; });
    checks::threads_give_equal_bits([&](eigen e) { return a.back(a.u, a.H, e).omega; });
}

TEST_CASE_TEMPLATE("selective_scan: the iteration's adjoint is the whole adjoint's part for the input", Team,
                   fprnn::serial_team<double>, fprnn::pack_team<double>) {
    for (index D : {1, 3, 17}) {
        const arguments<double> a({1, 5, D}, 3);
        const auto y_bar = random<double>({1, 5, D}, 7), H_bar = random<double>({1, 3, D}, 8);
        const auto bars = a.back(y_bar, H_bar);
        tensor<double> A = a.omega, u_bar({1, 5, D}), running = H_bar;
        for (double& x : A) x = std::exp(x);
        fprnn::kernel::selective_scan_back_input<Team, double>({5, 3, D, D, 3}, A.data(), a.delta.data(), a.b.data(),
                                                               a.c.data(), y_bar.data(), running.data(), u_bar.data());
        CHECK(checks::ulps(u_bar, bars.u) <= 4);
        CHECK(checks::ulps(running, bars.H) <= 4);
    }
}

TEST_CASE_TEMPLATE("selective_scan: opening and closing tokens is scanning them, and so is advancing", Team,
                   fprnn::serial_team<double>, fprnn::pack_team<double>) {
    for (index D : {1, 3, 17}) {
        const arguments<double> a({1, 5, D}, 3);
        const auto out = a.value();
        tensor<double> A = a.omega, H = a.H, p(shape{D}), g(shape{D}), y({1, 5, D});
        for (double& x : A) x = std::exp(x);
        for (index t = 0; t < 5; ++t) {
            const auto *delta = &a.delta(0, t, 0), *b = &a.b(0, t, 0), *c = &a.c(0, t, 0), *u = &a.u(0, t, 0);
            fprnn::kernel::selective_scan_open<Team, double>(3, D, A.data(), delta, b, c, H.data(), p.data(), g.data());
            for (index d = 0; d < D; ++d) y(0, t, d) = p[d] + g[d] * u[d];
            fprnn::kernel::selective_scan_close<Team, double>(3, D, delta, b, u, H.data());
        }
        CHECK(checks::ulps(y, out.y) <= 4);
        CHECK(checks::ulps(H, out.H) <= 4);
        // The same with every input but the last one arriving while the next token is opened.
        tensor<double> H_later = a.H, y_later({1, 5, D});
        const auto input = [&](index t) {
            return fprnn::kernel::open_token<double>{&a.delta(0, t, 0), &a.b(0, t, 0), &a.u(0, t, 0)};
        };
        for (index t = 0; t < 5; ++t) {
            const auto before = input(std::max<index>(t, 1) - 1);
            fprnn::kernel::selective_scan_open<Team, double>(3, D, A.data(), &a.delta(0, t, 0), &a.b(0, t, 0),
                                                             &a.c(0, t, 0), H_later.data(), p.data(), g.data(),
                                                             t > 0 ? &before : nullptr);
            for (index d = 0; d < D; ++d) y_later(0, t, d) = p[d] + g[d] * a.u(0, t, d);
        }
        fprnn::kernel::selective_scan_close<Team, double>(3, D, input(4).delta, input(4).b, input(4).u, H_later.data());
        CHECK(checks::ulps(y_later, y) <= 4);
        CHECK(checks::ulps(H_later, H) <= 4);
        const auto advance = [&](const double* from, double* to) {
            fprnn::kernel::selective_scan_advance<Team, double>({5, 3, D, D, 3}, D, A.data(), a.delta.data(),
                                                                a.b.data(), a.u.data(), from, to);
        };
        auto in_place = a.H, elsewhere = tensor<double>(a.H.shape());
        advance(in_place.data(), in_place.data());
        advance(a.H.data(), elsewhere.data());
        CHECK(checks::ulps(in_place, out.H) <= 4);
        CHECK(checks::ulps(elsewhere, out.H) <= 4);
    }
}

/// Calls of a layer end with a token that is closed, and go on from there.
TEST_CASE("selective_scan: closing a token, or letting its input arrive with the next, gives the same bits") {
    using team = fprnn::pack_team<float>;
    for (index D : {1, 3, 8, 17, 64}) {
        CAPTURE(D);
        const index N = 4;
        const arguments<float> a({1, 2, D}, N);
        const auto open = [&](tensor<float>& H, tensor<float>& p, const fprnn::kernel::open_token<float>* before) {
            tensor<float> g(shape{D});
            fprnn::kernel::selective_scan_open<team, float>(N, D, a.omega.data(), &a.delta(0, 1, 0), &a.b(0, 1, 0),
                                                            &a.c(0, 1, 0), H.data(), p.data(), g.data(), before);
        };
        tensor<float> closed = a.H, arrives = a.H, p_closed(shape{D}), p_arrives(shape{D});
        fprnn::kernel::selective_scan_close<team, float>(N, D, a.delta.data(), a.b.data(), a.u.data(), closed.data());
        open(closed, p_closed, nullptr);
        const fprnn::kernel::open_token<float> before{a.delta.data(), a.b.data(), a.u.data()};
        open(arrives, p_arrives, &before);
        CHECK(checks::same_bits(closed, arrives));
        CHECK(checks::same_bits(p_closed, p_arrives));
    }
}

TEST_CASE("selective_scan: a sequence in two pieces with the state carried has the same bits") {
    const arguments<float> a({1, 9, 17}, 3);
    const auto whole = a.value(eigen(1));
    for (index cut : {1, 4, 8}) {
        const auto piece = [&](const tensor<float>& x, index from, index to) {
            const index n = x.shape()[2];
            return fprnn::view<const float>(x.data() + from * n, {1, to - from, n});
        };
        const auto run = [&](index from, index to, const tensor<float>& H) {
            return fprnn::selective_scan(piece(a.delta, from, to), a.omega, piece(a.b, from, to), piece(a.c, from, to),
                                         piece(a.u, from, to), H, eigen(1));
        };
        const auto first = run(0, cut, a.H), second = run(cut, 9, first.H);
        CHECK(checks::same_bits(first.y.data(), whole.y.data(), first.y.size()));
        CHECK(checks::same_bits(second.y.data(), whole.y.data() + cut * 17, second.y.size()));
        CHECK(checks::same_bits(second.H, whole.H));
    }
}

TEST_CASE("selective_scan: the adjoint accumulates") {
    const arguments<double> a({2, 3, 5}, 2);
    const auto y_bar = random<double>({2, 3, 5}, 7), H_bar = random<double>({2, 2, 5}, 8);
    const auto once = a.back(y_bar, H_bar);
    auto more = selective_scan_cotangents<double>({2, 3, 5}, 2);
    for (auto* x : {&more.delta, &more.omega, &more.b, &more.c, &more.u, &more.H}) x->fill(10);
    fprnn::selective_scan_back(a.delta, a.omega, a.b, a.c, a.u, a.H, y_bar, H_bar, more);
    checks::check_added_to_ten(more.delta, once.delta);
    checks::check_added_to_ten(more.omega, once.omega);
    checks::check_added_to_ten(more.b, once.b);
    checks::check_added_to_ten(more.c, once.c);
    checks::check_added_to_ten(more.u, once.u);
    checks::check_added_to_ten(more.H, once.H);
}

TEST_CASE_TEMPLATE("selective_scan: packs are equivalent to the reference", T, float, double) {
    // A token's state or cotangent takes an exponential of 1 ulp on either side, a product and a sum; how
    // they round depends on the machine's packs.
    const double token = 4;
    for (const shape& s : checks::odd_sizes()) {
        const arguments<T> a(s, 3);
        const auto x = a.value(eigen(2)), y = a.value();
        CHECK(checks::ulps(x.y, y.y) <= token * static_cast<double>(s[1]));
        CHECK(checks::ulps(x.H, y.H) <= token * static_cast<double>(s[1]));
        const auto y_bar = random<T>(s, 7), H_bar = random<T>({s[0], 3, s[2]}, 8);
        const auto p = a.back(y_bar, H_bar, eigen(2)), q = a.back(y_bar, H_bar);
        CHECK(checks::ulps(p.delta, q.delta) <= token * static_cast<double>(s[1]));
        CHECK(checks::ulps(p.omega, q.omega) <= token * static_cast<double>(s[1]));
        CHECK(checks::ulps(p.b, q.b) <= token * static_cast<double>(s[1]));
        CHECK(checks::ulps(p.c, q.c) <= token * static_cast<double>(s[1]));
        CHECK(checks::ulps(p.u, q.u) <= token * static_cast<double>(s[1]));
        CHECK(checks::ulps(p.H, q.H) <= token * static_cast<double>(s[1]));
    }
}

TEST_CASE_TEMPLATE("selective_scan: a sequence's bits depend neither on its neighbours nor on the threads", T, float,
                   double) {
    for (index D : {1, 3, 17}) {
        const auto x = random<T>({7, 5, D}, 1);
        const auto omega = random<T>({D, D}, 2, 0.1);
        checks::equal_slices_give_equal_bits(
            x, 7, [&](const auto& v) { return fprnn::selective_scan(v, omega, v, v, v, {}, eigen(2)).y; });
        checks::equal_slices_give_equal_bits(x, 7, [&](const auto& v) {
            selective_scan_cotangents<T> bars(v.shape(), D);
            fprnn::selective_scan_back(v, omega, v, v, v, {}, v, {}, bars, eigen(2));
            return bars.b;
        });
        const arguments<T> a({7, 5, D}, 3);
        checks::threads_give_equal_bits([&](eigen e) { return a.value(e).y; });
        checks::threads_give_equal_bits([&](eigen e) { return a.back(x, random<T>({7, 3, D}, 8), e).omega; });
    }
}

TEST_CASE("selective_scan: without tokens the state passes through; without sequences, channels or states nothing") {
    const arguments<double> a({2, 0, 3}, 4);
    CHECK(checks::same_bits(a.value().H, a.H));
    CHECK(checks::same_bits(a.back(a.u, a.H).H, a.H));
    for (const shape& s : {shape{0, 5, 3}, shape{2, 5, 0}}) {
        const arguments<double> none(s, 4);
        CHECK(none.value(eigen(2)).y.shape() == s);
        CHECK(none.back(none.u, none.H, eigen(2)).u.shape() == s);
    }
    const arguments<double> stateless({2, 5, 3}, 0);
    const auto out = stateless.value(eigen(2));
    CHECK(std::all_of(out.y.begin(), out.y.end(), [](double x) { return x == 0; }));
    CHECK(stateless.back(stateless.u, stateless.H).omega.empty());
}

TEST_CASE("selective_scan: shapes that do not match are named") {
    const arguments<float> a({4, 8, 16}, 2), other({4, 7, 15}, 3);
    const auto run = [](const auto& delta, const auto& omega, const auto& b, const auto& c, const auto& u,
                        const auto& H) { return fprnn::selective_scan(delta, omega, b, c, u, H); };
    CHECK_THROWS_WITH_AS(run(a.delta, a.omega, a.b, a.c, a.omega, a.H), "selective_scan: u must be [B,T,D], got [2,16]",
                         argument_error);
    CHECK_THROWS_WITH_AS(run(a.delta, a.u, a.b, a.c, a.u, a.H), "selective_scan: omega must be [N,D], got [4,8,16]",
                         argument_error);
    CHECK_THROWS_WITH_AS(run(other.delta, a.omega, a.b, a.c, a.u, a.H),
                         "selective_scan: delta is [4,7,15] but u is [4,8,16]", argument_error);
    CHECK_THROWS_WITH_AS(run(a.delta, other.omega, a.b, a.c, a.u, a.H),
                         "selective_scan: omega must be [3,16], got [3,15]", argument_error);
    CHECK_THROWS_WITH_AS(run(a.delta, a.omega, other.b, a.c, a.u, a.H),
                         "selective_scan: b must be [4,8,2], got [4,7,3]", argument_error);
    CHECK_THROWS_WITH_AS(run(a.delta, a.omega, a.b, other.c, a.u, a.H),
                         "selective_scan: c must be [4,8,2], got [4,7,3]", argument_error);
    CHECK_THROWS_WITH_AS(run(a.delta, a.omega, a.b, a.c, a.u, other.H),
                         "selective_scan: H must be [4,2,16], got [4,3,15]", argument_error);

    const auto back = [&](const auto& y_bar, const auto& H_bar, selective_scan_cotangents<float> into) {
        fprnn::selective_scan_back(a.delta, a.omega, a.b, a.c, a.u, a.H, y_bar, H_bar, into);
    };
    const selective_scan_cotangents<float> good({4, 8, 16}, 2), bad({4, 7, 15}, 3);
    auto into = good;
    CHECK_THROWS_WITH_AS(fprnn::selective_scan_back(a.delta, a.omega, other.b, a.c, a.u, a.H, a.u, a.H, into),
                         "selective_scan_back: b must be [4,8,2], got [4,7,3]", argument_error);
    CHECK_THROWS_WITH_AS(back(other.u, a.H, good), "selective_scan_back: u is [4,8,16] but y_bar is [4,7,15]",
                         argument_error);
    CHECK_THROWS_WITH_AS(back(a.u, other.H, good), "selective_scan_back: H_bar must be [4,2,16], got [4,3,15]",
                         argument_error);
    into = bad;
    CHECK_THROWS_WITH_AS(back(a.u, a.H, into), "selective_scan_back: u is [4,8,16] but into.delta is [4,7,15]",
                         argument_error);
    into.delta = good.delta;
    CHECK_THROWS_WITH_AS(back(a.u, a.H, into), "selective_scan_back: into.omega must be [2,16], got [3,15]",
                         argument_error);
    into.omega = good.omega;
    CHECK_THROWS_WITH_AS(back(a.u, a.H, into), "selective_scan_back: into.b must be [4,8,2], got [4,7,3]",
                         argument_error);
    into.b = good.b;
    CHECK_THROWS_WITH_AS(back(a.u, a.H, into), "selective_scan_back: into.c must be [4,8,2], got [4,7,3]",
                         argument_error);
    into.c = good.c;
    CHECK_THROWS_WITH_AS(back(a.u, a.H, into), "selective_scan_back: u is [4,8,16] but into.u is [4,7,15]",
                         argument_error);
    into.u = good.u;
    CHECK_THROWS_WITH_AS(back(a.u, a.H, into), "selective_scan_back: into.H must be [4,2,16], got [4,3,15]",
                         argument_error);
}

}  // namespace
