#include <fprnn/cuda/selective_scan_back_kernel.hpp>

#include <fprnn/ops/selective_scan.hpp>

#include <cuda/host_team.hpp>
#include <ops/checks.hpp>

#include <limits>

namespace {

using checks::random;
using fprnn::index;
using fprnn::shape;
using fprnn::tensor;
using fprnn::update;
namespace cuda = fprnn::cuda;

/// What an expression has around the scan.
struct around {
    bool softplus = false, skip = false, gate = false;
};

/// Arguments of [B,T,D] and N states, and what the eager adjoint adds to cotangents that are not zero.
template <class T>
struct problem {
    index B, tokens, D, N;
    around with;
    tensor<T> delta, omega, b, c, u, carry, y_bar, H_bar, skip, gate;
    fprnn::selective_scan_cotangents<T> before, expected;
    tensor<T> gate_bar_before, gate_bar, skip_bar;

    problem(const shape& s, index states, around w = {})
        : B(s[0]),
          tokens(s[1]),
          D(s[2]),
          N(states),
          with(w),
          delta(random<T>(s, 1)),
          omega(random<T>({N, D}, 2, 0.5)),
          b(random<T>({B, tokens, N}, 3)),
          c(random<T>({B, tokens, N}, 4)),
          u(random<T>(s, 5)),
          carry(random<T>({B, N, D}, 6)),
          y_bar(random<T>(s, 7)),
          H_bar(random<T>({B, N, D}, 8)),
          skip(random<T>({D}, 12)),
          gate(random<T>(s, 13)),
          before(s, N),
          gate_bar_before(random<T>(s, 14)),
          gate_bar(gate_bar_before),
          skip_bar({D}) {
        if (!with.softplus)
            for (T& x : delta) x = std::abs(x);
        before.delta = random<T>(s, 9);
        before.u = random<T>(s, 10);
        before.omega = random<T>({N, D}, 11);
        expected = before;
        const auto step = with.softplus ? fprnn::softplus(delta) : delta;
        const auto y = fprnn::selective_scan(step, omega, b, c, u, carry).y;
        auto y_bar_ = y_bar, delta_slope = delta;
        for (index i = 0; i < y.size(); ++i) {
            const index d = i % D;
            const T open = T(1) / (T(1) + std::exp(-gate[i])), D_d = with.skip ? skip[d] : T(0);
            if (with.gate) {
                gate_bar[i] += y_bar[i] * (y[i] + D_d * u[i]) * open * (T(1) + gate[i] * (T(1) - open));
                y_bar_[i] *= gate[i] * open;
            }
            expected.u[i] += D_d * y_bar_[i];
            skip_bar[d] += u[i] * y_bar_[i];
            delta_slope[i] = with.softplus ? T(1) / (T(1) + std::exp(-delta[i])) : T(1);
        }
        expected.delta.fill(T(0));
        fprnn::selective_scan_back(step, omega, b, c, u, carry, y_bar_, H_bar, expected);
        for (index i = 0; i < y.size(); ++i) expected.delta[i] = before.delta[i] + delta_slope[i] * expected.delta[i];
    }

    /// Of tokens as they lie in memory: all of a sequence, or a token of all sequences, one after the other.
    tensor<T> laid_out(const tensor<T>& x, bool time_major, bool back = false) const {
        const index rows = B * tokens, width = rows ? x.size() / rows : 0;
        tensor<T> y(x.shape());
        for (index r = 0; r < rows; ++r) {
            const index to = time_major ? r % tokens * B + r / tokens : r;
            for (index i = 0; i < width; ++i)
                back ? y[r * width + i] = x[to * width + i] : y[to * width + i] = x[r * width + i];
        }
        return y;
    }

    template <int Threads, int Most, int Items, update Update = update::accumulate>
    void check(index workers, bool time_major = false, bool with_rates = false) const {
        CAPTURE(Threads);
        CAPTURE(Items);
        CAPTURE(workers);
        CAPTURE(time_major);
        const auto in = [&](const tensor<T>& x) { return laid_out(x, time_major); };
        const auto delta_ = in(delta), b_ = in(b), c_ = in(c), u_ = in(u), y_bar_ = in(y_bar), gate_ = in(gate);
        auto delta_bar = in(before.delta), u_bar = in(before.u), gate_bar_ = in(gate_bar_before), H_bar_ = H_bar;
        tensor<T> A = omega;
        for (T& a : A) a = std::exp(a);
        const index bands = (D + Threads - 1) / Threads, rounds = cuda::selective_scan_rounds(tokens, Items);
        tensor<T> scratch({workers, rounds, N, D}), A_bar({workers, N, D}), b_bar({bands, B, tokens, N}),
            c_bar({bands, B, tokens, N}), skip_bar_({workers, D});
        for (tensor<T>* x : {&scratch, &b_bar, &c_bar, &skip_bar_}) x->fill(std::numeric_limits<T>::quiet_NaN());
        cuda::selective_scan_adjoint<T, T, Update> s{{.sequences = B,
                                                      .tokens = tokens,
                                                      .channels = D,
                                                      .states = N,
                                                      .sequence_rows = time_major ? 1 : tokens,
                                                      .token_rows = time_major ? B : 1,
                                                      .delta = delta_.data(),
                                                      .b = b_.data(),
                                                      .c = c_.data(),
                                                      .u = u_.data(),
                                                      .carry_in = carry.data(),
                                                      .softplus = with.softplus}};
        with_rates ? s.A = A.data() : s.omega = omega.data();
        if (with.skip) s.skip = skip.data(), s.skip_bar = skip_bar_.data();
        if (with.gate) s.gate = gate_.data(), s.gate_bar = gate_bar_.data();
        s.workers = workers, s.y_bar = y_bar_.data(), s.scratch = scratch.data(), s.H_bar = H_bar_.data();
        s.delta_bar = delta_bar.data(), s.u_bar = u_bar.data();
        s.A_bar = A_bar.data(), s.b_bar = b_bar.data(), s.c_bar = c_bar.data();
        const index tiles = cuda::selective_scan_back_tiles(s, Threads);
        host::launch(1, Threads, cuda::selective_scan_back_shared_bytes<T, Threads, Most, Items>,
                     [&](const host::team& team) {
                         for (index tile = 0; tile < tiles; ++tile)
                             cuda::selective_scan_back_tile<Threads, Most, Items>(team, tile, s);
                     });

        constexpr double near = 16;  // sums of products in another order
        const auto out = [&](const tensor<T>& x) { return laid_out(x, time_major, true); };
        const auto without_before = [&](const tensor<T>& x, const tensor<T>& was) {
            tensor<T> y = x;
            if (Update == update::overwrite)
                for (index i = 0; i < y.size(); ++i) y[i] += was[i];
            return y;
        };
        CHECK(checks::ulps(without_before(out(delta_bar), before.delta), expected.delta) <= near);
        CHECK(checks::ulps(without_before(out(u_bar), before.u), expected.u) <= near);
        CHECK(checks::ulps(H_bar_, expected.H) <= near);
        const auto sum = [](const tensor<T>& parts, const shape& extents) {
            tensor<T> all(extents);
            for (index i = 0; i < parts.size(); ++i) all[i % all.size()] += parts[i];
            return all;
        };
        CHECK(checks::ulps(out(sum(b_bar, b.shape())), expected.b) <= near);
        CHECK(checks::ulps(out(sum(c_bar, c.shape())), expected.c) <= near);
        auto omega_bar = sum(A_bar, omega.shape());
        for (index i = 0; i < omega_bar.size(); ++i) omega_bar[i] = before.omega[i] + A[i] * omega_bar[i];
        CHECK(checks::ulps(omega_bar, expected.omega) <= near);
        if (with.skip) CHECK(checks::ulps(sum(skip_bar_, {D}), skip_bar) <= near);
        if (with.gate) CHECK(checks::ulps(without_before(out(gate_bar_), gate_bar_before), gate_bar) <= near);
    }
};

TEST_CASE_TEMPLATE("cuda selective scan: the adjoint's kernel is equivalent to the eager one, at every ragged edge", T,
                   float, double) {
    for (const shape& s : {shape{1, 1, 1}, shape{2, 5, 3}, shape{3, 17, 8}, shape{2, 8, 9}, shape{1, 40, 33}})
        for (index N : {1, 3, 4}) {
            CAPTURE(s.to_string());
            CAPTURE(N);
            const problem<T> p(s, N);
            p.template check<1, 4, 3>(s[0]);
            p.template check<3, 4, 4>(1, N == 3);
            p.template check<8, 4, 8>(2, N == 4, N == 3);
            p.template check<8, 16, 1, update::overwrite>(s[0], N == 1);
        }
    problem<T>({2, 19, 40}, 16).template check<32, 16, 8>(2, true, true);
}

TEST_CASE_TEMPLATE(
    "cuda selective scan: the adjoint's kernel goes through softplus, skip and gate where they are there", T, float,
    double) {
    for (int i = 0; i < 8; ++i) {
        CAPTURE(i);
        const around with{(i & 1) != 0, (i & 2) != 0, (i & 4) != 0};
        for (const shape& s : {shape{2, 5, 3}, shape{3, 17, 8}, shape{2, 0, 3}}) {
            CAPTURE(s.to_string());
            const problem<T> p(s, 3, with);
            p.template check<3, 4, 4>(2);
            p.template check<8, 4, 3, update::overwrite>(s[0], true);
        }
    }
}

TEST_CASE("cuda selective scan: what the adjoint is not asked for is null") {
    const problem<double> p({2, 5, 3}, 4);
    tensor<double> scratch({2, 2, 4, 3}), H_bar = p.H_bar;
    cuda::selective_scan_adjoint<double, double, update::accumulate> s{};
    s.sequences = s.workers = 2, s.tokens = 5, s.channels = 3, s.states = 4, s.sequence_rows = 5, s.token_rows = 1;
    s.omega = p.omega.data(), s.delta = p.delta.data(), s.b = p.b.data(), s.c = p.c.data(), s.u = p.u.data();
    s.carry_in = p.carry.data(), s.y_bar = p.y_bar.data(), s.H_bar = H_bar.data(), s.scratch = scratch.data();
    host::launch(1, 3, cuda::selective_scan_back_shared_bytes<double, 3, 4, 4>, [&](const host::team& team) {
        for (index tile = 0; tile < 2; ++tile) cuda::selective_scan_back_tile<3, 4, 4>(team, tile, s);
    });
    CHECK(checks::ulps(H_bar, p.expected.H) <= 16);
}

TEST_CASE("cuda selective scan: the adjoint has nothing to do without sequences, and hands the carry's cotangent on") {
    problem<float>({0, 4, 3}, 4).check<4, 4, 3>(1);
    problem<float>({2, 0, 3}, 4).check<4, 4, 3>(2);
    problem<float>({2, 4, 0}, 4).check<4, 4, 3>(2);
    problem<float>({2, 4, 3}, 0).check<4, 4, 3>(2);
}

}  // namespace
