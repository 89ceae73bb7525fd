#include <fprnn/cuda/selective_scan_kernel.hpp>

#include <fprnn/ops/selective_scan.hpp>

#include <cuda/host_team.hpp>
#include <ops/checks.hpp>

namespace {

using checks::random;
using fprnn::index;
using fprnn::shape;
using fprnn::tensor;
namespace cuda = fprnn::cuda;

/// What an expression has around the scan.
struct around {
    bool carry = false, softplus = false, skip = false, gate = false;
};

/// Arguments of [B,T,D] and N states, and what the eager operation makes of them.
template <class T>
struct problem {
    index B, tokens, D, N;
    around with;
    tensor<T> delta, omega, b, c, u, carry, skip, gate;
    fprnn::selective_scan_value<T> expected;

    problem(const shape& s, index states, around w)
        : B(s[0]),
          tokens(s[1]),
          D(s[2]),
          N(states),
          with(w),
          delta(random<T>(s, 1)),
          omega(random<T>({N, D}, 2, 0.5)),
          b(random<T>({B, tokens, N}, 3)),
          c(random<T>({B, tokens, N}, 4)),
          u(random<T>(s, 5)) {
        if (!with.softplus)
            for (T& x : delta) x = std::abs(x);
        if (with.carry) carry = random<T>({B, N, D}, 6);
        if (with.skip) skip = random<T>({D}, 7);
        if (with.gate) gate = random<T>(s, 8);
        const auto step = with.softplus ? fprnn::softplus(delta) : delta;
        expected = fprnn::selective_scan(step, omega, b, c, u, carry);
        const auto open = with.gate ? fprnn::silu(gate) : tensor<T>();
        for (index i = 0; i < expected.y.size(); ++i) {
            if (with.skip) expected.y[i] += skip[i % D] * u[i];
            if (with.gate) expected.y[i] *= open[i];
        }
    }

    /// Token after token, each of all sequences, as engine::frame has them.
    tensor<T> time_major(const tensor<T>& x) const {
        if (x.empty()) return x;
        const index width = x.size() / (B * tokens);
        tensor<T> y(x.shape());
        for (index b_ = 0; b_ < B; ++b_)
            for (index t = 0; t < tokens; ++t)
                for (index i = 0; i < width; ++i) y[(t * B + b_) * width + i] = x[(b_ * tokens + t) * width + i];
        return y;
    }
    cuda::selective_scan_arguments<T> time_major_arguments() const {
        return {.sequences = B, .tokens = tokens, .channels = D, .states = N, .sequence_rows = 1, .token_rows = B};
    }
    /// The states in the memory that they came from, exp(ω) for ω, and what is around the scan in chains,
    /// beside y.
    template <int Threads, int Most, int Items>
    void check_time_major() const {
        using namespace fprnn::chain;
        using fprnn::kernel::operand;
        const auto delta_ = time_major(delta), b_ = time_major(b), c_ = time_major(c), u_ = time_major(u),
                   z_ = time_major(gate);
        tensor<T> y(u.shape()), result(u.shape()), H = carry, A = omega;
        for (T& a : A) a = std::exp(a);
        cuda::selective_scan_sequences<T, T> s{time_major_arguments()};
        s.A = A.data(), s.delta = delta_.data(), s.b = b_.data(), s.c = c_.data(), s.u = u_.data();
        s.carry_in = s.carry_out = H.data(), s.y = y.data();

        using softplus = fprnn::kernel::chain_of_scan<apply<softplus_function, argument<0>>, T, operand::rows>;
        using gated_sum = fprnn::kernel::chain_of_scan<
            multiply<apply<silu_function, argument<0>>, add<argument<1>, multiply<argument<2>, argument<3>>>>, T,
            operand::rows, operand::scan, operand::vector, operand::input>;
        using nothing = fprnn::kernel::no_chain<T>;
        const auto rows = [&](const tensor<T>& x) { return fprnn::strided<const T>{x.data(), D}; };
        const softplus step{{{rows(delta_)}}, {}, false};
        const gated_sum behind{{{rows(z_), rows(y), {skip.data(), 0}, rows(u_)}}, {result.data(), D}};
        const auto check = [&](const auto& in_chains) { run<Threads, Most, Items>(in_chains); };
        if (with.softplus && with.gate)
            check(cuda::selective_scan_in_chains<T, T, softplus, gated_sum>{s, step, behind});
        else if (with.softplus)
            check(cuda::selective_scan_in_chains<T, T, softplus, nothing>{s, step, {}});
        else if (with.gate)
            check(cuda::selective_scan_in_chains<T, T, nothing, gated_sum>{s, {}, behind});
        else
            check(s);
        const problem without(u.shape(), N, {.carry = with.carry, .softplus = with.softplus});
        CHECK(checks::ulps(y, time_major(without.expected.y)) <= 2);
        if (with.gate) CHECK(checks::ulps(result, time_major(expected.y)) <= 2);
        CHECK(checks::ulps(H, expected.H) <= 2);
    }
    /// What iterations need of the adjoint, from the cotangent H_{T−1} = carry.
    template <int Threads, int Most, int Items>
    void check_input_adjoint() const {
        const auto y_bar = random<T>(u.shape(), 9), u_bar = random<T>(u.shape(), 10);
        fprnn::selective_scan_cotangents<T> back(u.shape(), N);
        back.u = u_bar;
        fprnn::selective_scan_back(delta, omega, b, c, u, {}, y_bar, carry, back);
        const auto delta_ = time_major(delta), b_ = time_major(b), c_ = time_major(c), y_bar_ = time_major(y_bar);
        tensor<T> to = time_major(u_bar), H_bar = carry;
        cuda::selective_scan_input_adjoint<T, T> s{{time_major_arguments()}, {}};
        s.omega = omega.data(), s.delta = delta_.data(), s.b = c_.data(), s.c = b_.data(), s.u = y_bar_.data();
        s.y = to.data(), s.carry_in = s.carry_out = H_bar.data();
        run<Threads, Most, Items>(s);
        CHECK(checks::ulps(to, time_major(back.u)) <= 4);
        CHECK(checks::ulps(H_bar, back.H) <= 4);
    }
    template <int Threads, int Most, int Items, class Sequences>
    static void run(const Sequences& s) {
        const index tiles = cuda::selective_scan_tiles(s, Threads);
        host::launch(1, Threads, cuda::selective_scan_shared_bytes<T, Most, Items>, [&](const host::team& team) {
            for (index tile = 0; tile < tiles; ++tile) cuda::selective_scan_tile<Threads, Most, Items>(team, tile, s);
        });
    }
    template <int Threads, int Most, int Items>
    void check() const {
        tensor<T> y(u.shape()), H({B, N, D});
        cuda::selective_scan_sequences<T, T> s{{.sequences = B,
                                                .tokens = tokens,
                                                .channels = D,
                                                .states = N,
                                                .sequence_rows = tokens,
                                                .token_rows = 1,
                                                .delta = delta.data(),
                                                .omega = omega.data(),
                                                .b = b.data(),
                                                .c = c.data(),
                                                .u = u.data(),
                                                .softplus = with.softplus}};
        if (with.carry) s.carry_in = carry.data();
        if (with.skip) s.skip = skip.data();
        if (with.gate) s.gate = gate.data();
        s.y = y.data(), s.carry_out = H.data();
        run<Threads, Most, Items>(s);
        CHECK(checks::ulps(y, expected.y) <= 2);
        CHECK(checks::ulps(H, expected.H) <= 2);
    }
};

TEST_CASE_TEMPLATE("cuda selective scan: the kernel is equivalent to the eager operation, at every ragged edge", T,
                   float, double) {
    for (const shape& s : {shape{1, 1, 1}, shape{2, 5, 3}, shape{3, 17, 8}, shape{2, 8, 9}, shape{1, 40, 33}})
        for (index N : {1, 3, 4}) {
            CAPTURE(s.to_string());
            CAPTURE(N);
            const problem<T> p(s, N, {.carry = N != 3});
            p.template check<1, 4, 3>();
            p.template check<3, 4, 4>();
            p.template check<8, 4, 8>();
            p.template check<8, 16, 1>();
        }
    problem<T>({2, 19, 40}, 16, {.carry = true}).template check<32, 16, 8>();
}

TEST_CASE_TEMPLATE(
    "cuda selective scan: sequences may lie side by side, states stay in their memory, and chains are beside y", T,
    float, double) {
    for (const shape& s : {shape{1, 1, 1}, shape{3, 17, 8}, shape{2, 8, 9}})
        for (index N : {1, 3, 4})
            for (const bool softplus : {false, true})
                for (const bool behind : {false, true})
                    problem<T>(s, N, {true, softplus, behind, behind}).template check_time_major<3, 4, 4>();
}

TEST_CASE_TEMPLATE("cuda selective scan: from the last token to the first it is the input's adjoint", T, float,
                   double) {
    for (const shape& s : {shape{1, 1, 1}, shape{3, 17, 8}, shape{2, 8, 9}, shape{2, 0, 3}})
        for (index N : {1, 3, 4}) {
            problem<T>(s, N, {.carry = true}).template check_input_adjoint<3, 4, 4>();
            problem<T>(s, N, {.carry = true}).template check_input_adjoint<8, 4, 8>();
        }
}

TEST_CASE("cuda selective scan: softplus, skip and gate are fused where they are asked for") {
    for (int i = 0; i < 16; ++i) {
        CAPTURE(i);
        problem<double>({2, 7, 5}, 4, {(i & 1) != 0, (i & 2) != 0, (i & 4) != 0, (i & 8) != 0}).check<4, 4, 3>();
    }
}

TEST_CASE("cuda selective scan: without sequences nothing is done, without tokens the carry goes through") {
    problem<float>({0, 4, 3}, 4, {}).check<4, 4, 3>();
    problem<float>({2, 0, 3}, 4, {.carry = true}).check<4, 4, 3>();
    problem<float>({2, 4, 0}, 4, {}).check<4, 4, 3>();
    problem<float>({2, 4, 3}, 0, {.skip = true}).check<4, 4, 3>();
}

}  // namespace
