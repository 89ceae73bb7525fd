#include <fprnn/cuda/scan_kernel.hpp>

#include <fprnn/ops/scan.hpp>

#include <cuda/host_team.hpp>
#include <ops/checks.hpp>

namespace {

using checks::random;
using fprnn::direction;
using fprnn::index;
using fprnn::scan_cotangents;
using fprnn::shape;
using fprnn::tensor;
using fprnn::update;
namespace cuda = fprnn::cuda;

constexpr direction both[] = {direction::forward, direction::reversed};

/// Blocks, threads of each.
struct grid {
    int blocks, threads;
};

/// The kernel of a recurrence over [B,T,D].
template <int Items, class Recurrence>
void run(const shape& s, grid g, const Recurrence& recurrence) {
    using S = typename Recurrence::state;
    const cuda::tiling tiles(s[0], s[1], s[2], g.threads, Items);
    cuda::counter taken = 0;
    std::vector<cuda::flag> ready(static_cast<std::size_t>(tiles.chunks * tiles.bands));
    std::vector<cuda::affine<S>> block(static_cast<std::size_t>(tiles.chunks * tiles.columns));
    const cuda::look_back<S> between{&taken, ready.data(), block.data(), tiles.chunks, tiles.bands, tiles.columns};
    host::launch(g.blocks, g.threads, cuda::scan_shared_bytes<S>(g.threads),
                 [&](const host::team& team) { cuda::scan_tiles<Items>(team, tiles, between, recurrence); });
    // Every tile is taken once, and every block of threads is told once that there are no more.
    CHECK(static_cast<index>(taken) == tiles.tiles + g.blocks);
}

/// The kernel and the eager operation have the same results on `s`.
template <class T>
struct problem {
    shape s;
    direction d;
    bool with_carry;
    tensor<T> lambda, u, h_bar, carry, carry_bar, h, end;
    scan_cotangents<T> bars;

    problem(const shape& extents, direction way, bool carries)
        : s(extents),
          d(way),
          with_carry(carries),
          lambda(random<T>(s, 1, 0.2, 0.9)),
          u(random<T>(s, 2)),
          h_bar(random<T>(s, 3)),
          bars(s) {
        const shape state{s[0], s[2]};
        end = tensor<T>(state);
        if (carries) carry = random<T>(state, 4), carry_bar = random<T>(state, 5), end = carry;
        h = fprnn::scan(lambda, u, carry, d);
        fprnn::scan_back(lambda, h, carry, h_bar, carry_bar, bars, d);
        const index last = d == direction::forward ? s[1] - 1 : 0;
        for (index b = 0; b < s[0] && !h.empty(); ++b) std::copy_n(&h(b, last, 0), s[2], &end(b, 0));
    }

    cuda::scan_order order(direction way) const { return {s[1], s[2], way == direction::reversed}; }

    template <int Items, class S = T>
    std::pair<tensor<T>, tensor<T>> value(grid g) const {
        tensor<T> out(s), out_end({s[0], s[2]});
        run<Items>(
            s, g,
            cuda::scan_recurrence<T, S>{order(d), lambda.data(), u.data(), carry.data(), out.data(), out_end.data()});
        return {out, out_end};
    }

    template <int Items, update Update, class S = T>
    void back(grid g, scan_cotangents<T>& into) const {
        const auto other = d == direction::forward ? direction::reversed : direction::forward;
        run<Items>(s, g,
                   cuda::scan_back_recurrence<T, S, Update>{order(other), lambda.data(), h.data(), carry.data(),
                                                            h_bar.data(), carry_bar.data(), into.lambda.data(),
                                                            into.u.data(), into.carry.data()});
    }
};

/// Other orders of additions than the reference's: within 16 ε of the largest number of the sequence.
template <class T>
bool near(const tensor<T>& a, const tensor<T>& b, const tensor<T>& sequence) {
    REQUIRE(a.shape() == b.shape());
    T difference = 0, largest = 0;
    for (T x : sequence) largest = std::max(largest, std::abs(x));
    for (index i = 0; i < a.size(); ++i) {
        if (!std::isfinite(a[i])) return false;
        difference = std::max(difference, std::abs(a[i] - b[i]));
    }
    return difference <= 16 * std::numeric_limits<T>::epsilon() * largest;
}

template <class T>
bool near(const tensor<T>& a, const tensor<T>& b) {
    return near(a, b, b);
}

template <class T>
bool near(const scan_cotangents<T>& a, const scan_cotangents<T>& b) {
    return near(a.lambda, b.lambda) && near(a.u, b.u) && near(a.carry, b.carry, b.u.empty() ? b.carry : b.u);
}

template <class T>
scan_cotangents<T> filled(const shape& s, T value) {
    scan_cotangents<T> bars(s);
    bars.lambda.fill(value), bars.u.fill(value), bars.carry.fill(value);
    return bars;
}

template <class T, int Items>
void check_equivalent(const shape& s, grid g) {
    for (direction d : both)
        for (bool with_carry : {false, true}) {
            INFO(s.to_string(), ", ", g.blocks, " x ", g.threads, " threads, carry ", with_carry);
            const problem<T> p(s, d, with_carry);
            const auto [h, end] = p.template value<Items>(g);
            CHECK(near(h, p.h));
            CHECK(near(end, p.end, p.h.empty() ? p.end : p.h));
            auto bars = filled(s, T(NAN));
            p.template back<Items, update::overwrite>(g, bars);
            CHECK(near(bars, p.bars));
        }
}

TEST_CASE_TEMPLATE("cuda scan: the kernel is equivalent to the reference, for ragged tiles of every width", T, float,
                   double) {
    for (const shape& s : checks::odd_sizes()) check_equivalent<T, 3>(s, {2, 4});
    // One thread; rows of one column; all threads in one row; more columns than a tile; chunks that end on
    // and beside T.
    for (const shape& s : {shape{1, 9, 1}, shape{2, 7, 3}})
        for (int threads : {1, 2, 8}) check_equivalent<T, 3>(s, {1, threads});
    for (index tokens : {17, 18, 19, 65}) check_equivalent<T, 3>({1, tokens, 3}, {3, 8});
    check_equivalent<T, 1>({3, 33, 11}, {1, 32});
    check_equivalent<T, 3>({1, 300, 1}, {2, 16});
}

TEST_CASE("cuda scan: without tokens the carry passes through; without sequences or channels nothing happens") {
    check_equivalent<double, 3>({2, 0, 3}, {2, 4});
    check_equivalent<double, 3>({0, 5, 3}, {2, 4});
    check_equivalent<double, 3>({2, 5, 0}, {2, 4});
}

TEST_CASE("cuda scan: any number of blocks at a time has the same bits") {
    const problem<float> p({2, 37, 3}, direction::forward, true);
    const auto h = p.value<1>({1, 4}).first;
    auto bars = filled(p.s, 0.0f);
    p.back<1, update::overwrite>({1, 4}, bars);
    for (int blocks : {2, 3, 8, 8, 8}) {
        CHECK(checks::same_bits(p.value<1>({blocks, 4}).first, h));
        auto again = filled(p.s, 0.0f);
        p.back<1, update::overwrite>({blocks, 4}, again);
        CHECK(checks::same_bits(again.lambda, bars.lambda));
        CHECK(checks::same_bits(again.u, bars.u));
        CHECK(checks::same_bits(again.carry, bars.carry));
    }
}

TEST_CASE("cuda scan: the adjoint accumulates on request") {
    const problem<double> p({2, 11, 3}, direction::forward, true);
    auto more = filled(p.s, 10.0);
    p.back<3, update::accumulate>({2, 4}, more);
    checks::check_added_to_ten(more.lambda, p.bars.lambda);
    checks::check_added_to_ten(more.u, p.bars.u);
    checks::check_added_to_ten(more.carry, p.bars.carry);
}

TEST_CASE("cuda scan: h may take the place of u") {
    problem<float> p({2, 37, 3}, direction::reversed, true);
    const auto h = p.value<3>({4, 8}).first;
    run<3>(p.s, {4, 8},
           cuda::scan_recurrence<float, float>{p.order(p.d), p.lambda.data(), p.u.data(), p.carry.data(), p.u.data(),
                                               nullptr});
    CHECK(checks::same_bits(p.u, h));
}

TEST_CASE("cuda scan: short numbers in memory are added up in longer ones") {
    const problem<float> p({1, 200, 2}, direction::forward, false);
    tensor<double> lambda(p.s), u(p.s);
    std::copy(p.lambda.begin(), p.lambda.end(), lambda.begin());
    std::copy(p.u.begin(), p.u.end(), u.begin());
    const auto exact = fprnn::scan(lambda, u);
    const auto h = p.value<3, double>({2, 8}).first;
    for (index i = 0; i < h.size(); ++i) CHECK(h[i] == static_cast<float>(exact[i]));
}

TEST_CASE("cuda scan: what a size is cut into") {
    const auto is = [](const cuda::tiling& t, int width, index chunk, index chunks, index bands) {
        return t.width == width && t.chunk == chunk && t.chunks == chunks && t.bands == bands;
    };
    CHECK(is({16, 2048, 2048, 256, 16}, 32, 128, 16, 1024));
    CHECK(is({1, 1 << 20, 1, 256, 16}, 1, 4096, 256, 1));
    CHECK(is({1, 1 << 20, 132, 256, 16}, 32, 128, 8192, 5));
    CHECK(is({8, 1, 100, 256, 16}, 256, 16, 1, 4));  // one token: no thread without a column
    CHECK(is({2, 129, 3, 256, 16}, 8, 512, 1, 1));
    constexpr index huge = index(1) << 62;
    CHECK_THROWS_AS(cuda::tiling(huge, 0, 4, 256, 16), fprnn::argument_error);
}

}  // namespace
