#include <fprnn/mixers/householder.hpp>
#include <fprnn/ops/layer_norm.hpp>
#include <fprnn/ops/rms_norm.hpp>
#include <fprnn/ops/scan.hpp>
#include <fprnn/ops/selective_scan_kernel.hpp>

#include <cuda/host_row_team.hpp>
#include <ops/checks.hpp>

/// The kernel bodies of the library, of which a thread block executes a row, by threads of the host: what they write is what one
/// thread writes, whatever the number of threads and of channels. ThreadSanitizer sees them, too.
namespace {

using checks::random;
using fprnn::index;
using fprnn::shape;
using fprnn::tensor;
namespace chain = fprnn::chain;
namespace kernel = fprnn::kernel;

constexpr int teams[] = {1, 2, 5, 16};
constexpr index widths[] = {4, 5, 17, 64};

/// Runs `body`(team, arrays) on one thread and on several; they leave the same numbers in all arrays but for the order of sums.
template <class T, class Body>
void agrees(const std::vector<tensor<T>>& arrays, const Body& body) {
    auto alone = arrays;
    body(fprnn::serial_team<T>{}, alone);
    for (int threads : teams) {
        auto together = arrays;
        host::row_team<T>::run(threads, [&] { body(host::row_team<T>{}, together); });
        for (std::size_t i = 0; i < arrays.size(); ++i) {
            CAPTURE(threads);
            CAPTURE(i);
            CHECK(checks::ulps(together[i], alone[i]) <= 16);
        }
    }
}

/// Random arrays of these sizes, one after the other.
template <class T>
std::vector<tensor<T>> randoms(std::initializer_list<index> sizes) {
    std::vector<tensor<T>> arrays;
    for (index n : sizes) arrays.push_back(random<T>(shape{n}, 10 + arrays.size()));
    return arrays;
}

TEST_CASE_TEMPLATE("rows: elementwise chains and their adjoints", T, float, double) {
    using gate = chain::multiply<chain::apply<chain::silu_function, chain::argument<0>>,
                                 chain::subtract<chain::argument<1>, chain::constant<1>>>;
    for (index D : widths)
        agrees<T>(randoms<T>({D, D, D, D, D, D}), [&]<class Team>(Team, auto& x) {
            chain::row<gate, Team, 2, T>(D, {x[0].data(), x[1].data()}, x[2].data());
            chain::row_back<gate, Team, 2, T>(D, {x[0].data(), x[1].data()}, x[3].data(), {x[4].data(), x[5].data()});
        });
}

TEST_CASE_TEMPLATE("rows: norms and their adjoints", T, float, double) {
    for (index D : widths) {
        agrees<T>(randoms<T>({D, D, D, D, D, D, D, D}), [&]<class Team>(Team, auto& x) {
            fprnn::layer_norm_function::value<Team, T>(D, x[0].data(), x[1].data(), x[2].data(), x[3].data());
            fprnn::layer_norm_function::back<Team, T>(D, x[0].data(), x[1].data(), x[4].data(), x[5].data(),
                                                      x[6].data(), x[7].data());
        });
        agrees<T>(randoms<T>({D, D, D, D, D, D}), [&]<class Team>(Team, auto& x) {
            fprnn::rms_norm_function::value<Team, T>(D, x[0].data(), x[1].data(), nullptr, x[2].data());
            fprnn::rms_norm_function::back<Team, T>(D, x[0].data(), x[1].data(), x[3].data(), x[4].data(), x[5].data(),
                                                    nullptr);
        });
        agrees<T>(randoms<T>({D, D, D, D}), [&]<class Team>(Team, auto& x) {
            fprnn::l2_normalise_function::value<Team, T>(D, x[0].data(), x[1].data());
            fprnn::l2_normalise_function::back<Team, T>(D, x[0].data(), x[2].data(), x[3].data());
        });
    }
}

TEST_CASE_TEMPLATE("rows: the largest channel, which all threads receive", T, float, double) {
    for (index D : widths)
        for (int threads : teams) {
            const auto x = random<T>({D}, 1);
            const T largest = *std::max_element(x.begin(), x.end());
            host::row_team<T>::run(threads, [&] {
                const T all = host::row_team<T>::max(D, [&](auto lane) { return lane.load(x.data()); });
                const T tainted = host::row_team<T>::max(D, [&](auto lane) {
                    return lane.channel == 2 ? std::numeric_limits<T>::infinity() : lane.load(x.data());
                });
                CHECK(all == largest);
                CHECK(std::isnan(tainted));
            });
        }
}

TEST_CASE("rows: what is done once all have come before, and see afterwards") {
    for (int threads : teams) {
        int number = 0;
        host::row_team<double>::run(threads, [&] {
            for (int i = 0; i < 20; ++i) {
                const int before = number;
                host::row_team<double>::once([&] { number = before + 1; });
                CHECK(number == i + 1);
            }
        });
        CHECK(number == 20);
    }
}

template <class Mixer, class T>
void mixer_agrees(index D) {
    constexpr index R = Mixer::rank;
    agrees<T>(randoms<T>({R * D, R, Mixer::size(D), D, D, D, Mixer::scratch(D), D, D, Mixer::size(D), R * D, R}),
              [&]<class Team>(Team, auto& x) {
                  const T* raw[] = {x[0].data(), x[1].data()};
                  T* raw_bar[] = {x[10].data(), x[11].data()};
                  T *q = x[2].data(), *scratch = x[6].data(), *q_bar = x[9].data();
                  const T *v = x[3].data(), *w = x[4].data(), *out_bar = x[5].data();
                  Mixer::template prepare<Team, T>(D, raw, q);
                  Mixer::template mix<Team, T>(D, q, v, w, x[7].data(), scratch);
                  Mixer::template mix_back<Team, T>(D, q, out_bar, x[7].data(), x[8].data(), scratch);
                  Mixer::template mix_back_q<Team, T>(D, q, v, w, out_bar, q_bar, scratch);
                  Mixer::template prepare_back<Team, T>(D, raw, q, q_bar, raw_bar);
              });
}

TEST_CASE_TEMPLATE("rows: Householder products, from raw numbers to their cotangents in one go", T, float, double) {
    for (index D : widths) {
        mixer_agrees<fprnn::householder_mixer<1>, T>(D);
        mixer_agrees<fprnn::householder_mixer<4, 2>, T>(D);
    }
}

TEST_CASE_TEMPLATE("rows: the scan of a sequence and its adjoint", T, float, double) {
    constexpr index tokens = 7;
    for (index D : widths) {
        const index n = tokens * D;
        agrees<T>(randoms<T>({n, n, D, n, n, D, n, n}), [&]<class Team>(Team, auto& x) {
            kernel::scan<Team, T>(tokens, D, D, x[0].data(), x[1].data(), x[2].data(), x[3].data());
            kernel::scan_back<Team>(tokens, D, D, static_cast<const T*>(x[0].data()),
                                    static_cast<const T*>(x[3].data()), static_cast<const T*>(x[2].data()),
                                    static_cast<const T*>(x[4].data()), x[5].data(), x[6].data(), x[7].data());
        });
    }
}

TEST_CASE_TEMPLATE("rows: the selective scan, its iterations and its whole adjoint", T, float, double) {
    constexpr index tokens = 3, N = 5;
    for (index D : widths) {
        const kernel::selective_scan_shape s{tokens, N, D, D, N};
        const index n = tokens * D, m = tokens * N, state = N * D;
        // A, Δ, b, c, u, H, y, Ḣ, ū
        auto arrays = randoms<T>({state, n, m, m, n, state, n, state, n});
        for (std::size_t i : {0u, 1u})
            for (T& x : arrays[i]) x = std::abs(x);
        agrees<T>(arrays, [&]<class Team>(Team, auto& x) {
            kernel::selective_scan<Team, T>(s, x[0].data(), x[1].data(), x[2].data(), x[3].data(), x[4].data(),
                                            x[5].data(), x[6].data());
            kernel::selective_scan_back_input<Team, T>(s, x[0].data(), x[1].data(), x[2].data(), x[3].data(),
                                                       x[6].data(), x[7].data(), x[8].data());
        });
        // One token: p and g, and then Ā, Δ̄, b̄, c̄, ū, scratch.
        for (index size : {D, D, state, D, N, N, D, 2 * D})
            arrays.push_back(random<T>(shape{size}, 30 + arrays.size()));
        agrees<T>(arrays, [&]<class Team>(Team, auto& x) {
            const T *A = x[0].data(), *delta = x[1].data(), *b = x[2].data(), *c = x[3].data(), *u = x[4].data();
            T* H = x[5].data();
            const kernel::open_token<T> before{delta + D, b + N, u + D};
            kernel::selective_scan_open<Team, T>(N, D, A, delta, b, c, H, x[9].data(), x[10].data(), &before);
            kernel::selective_scan_close<Team, T>(N, D, delta, b, u, H);
            kernel::selective_scan_back_token<Team, T>(N, D, A, delta, b, c, u, H, x[6].data(), x[7].data(),
                                                       x[11].data(), x[12].data(), x[13].data(), x[14].data(),
                                                       x[15].data(), x[16].data());
        });
    }
}

}  // namespace
