#include <fprnn/recurrences/check_recurrence.hpp>
#include <fprnn/recurrences/gated_delta.hpp>
#include <fprnn/recurrences/selective_scan.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

namespace {

using fprnn::index;
using numbers = std::vector<double>;

std::size_t at(index i) { return static_cast<std::size_t>(i); }

fprnn::recurrence_claims<fprnn::selective_scan_recurrence> selective_scan() {
    using M = fprnn::selective_scan_recurrence;
    return {.widths = {{3, 2, 2, 3}, {1, 1, 1, 1}, {17, 5, 5, 17}},
            .plain =
                [](const M::sizes& of, const numbers& omega, const auto& x, numbers& H) {
                    const auto& [delta, b, c, u] = x;
                    numbers y(at(of.channels));
                    for (index d = 0; d < of.channels; ++d)
                        for (index n = 0; n < of.states; ++n) {
                            double& h = H[at(n * of.channels + d)];
                            const double a = std::exp(omega[at(n * of.channels + d)]);
                            h = std::exp(-a * delta[at(d)]) * h + b[at(n)] * delta[at(d)] * u[at(d)];
                            y[at(d)] += c[at(n)] * h;
                        }
                    return y;
                },
            .range = [](std::size_t k, double x) { return k == 0 ? std::exp(0.3 * x - 1) : x; }};
}

/// S ← α(S − β k (kᵀS)) + β k vᵀ for the first step, and with α = 1 for the others.
fprnn::recurrence_claims<fprnn::gated_delta_recurrence> gated_delta() {
    using M = fprnn::gated_delta_recurrence;
    return {.widths = {{1, 1, 1, 1, 1}, {2, 6, 8, 2, 6}, {1, 3, 17, 1, 3}, {2, 3 * 2 * 4, 3 * 2 * 5, 3 * 2, 2 * 4}},
            .plain =
                [](const M::sizes& of, const numbers&, const auto& x, numbers& S) {
                    const numbers &alpha = x[0], &k = x[1], &v = x[2], &beta = x[3], &q = x[4];
                    const index H = of.heads, K = of.keys, V = of.values, n = of.steps;
                    numbers y(at(H * V));
                    for (index h = 0; h < H; ++h) {
                        const auto s = [&](index i, index c) -> double& { return S[at((h * K + i) * V + c)]; };
                        for (index j = 0; j < n; ++j) {
                            const auto key = [&](index i) { return k[at((j * H + h) * K + i)]; };
                            const double a = j == 0 ? alpha[at(h)] : 1, b = beta[at(j * H + h)];
                            for (index c = 0; c < V; ++c) {
                                double known = 0;
                                for (index i = 0; i < K; ++i) known += key(i) * s(i, c);
                                for (index i = 0; i < K; ++i)
                                    s(i, c) =
                                        a * (s(i, c) - b * key(i) * known) + b * key(i) * v[at((j * H + h) * V + c)];
                            }
                        }
                        for (index c = 0; c < V; ++c)
                            for (index i = 0; i < K; ++i) y[at(h * V + c)] += s(i, c) * q[at(h * K + i)];
                    }
                    return y;
                },
            // Decays below 1, keys that are not too long.
            .range = [](std::size_t k, double x) { return k == 0 || k == 3 ? 1 / (1 + std::exp(-x)) : 0.5 * x; }};
}

TEST_CASE("check_recurrence: the selective scan and the gated delta rule keep the laws") {
    const auto scan = fprnn::check_recurrence(selective_scan());
    INFO(scan.to_string());
    CHECK(scan.ok());
    const auto delta = fprnn::check_recurrence(gated_delta());
    INFO(delta.to_string());
    CHECK(delta.ok());
}

/// S ← ½ S + x, y = S: with a mistake, of which there are several.
enum class mistake {
    none,
    value,
    not_in_place,
    no_state,
    overwrites,
    gradient,
    beside,
    scratch,
    null,
    hoisted,
    unsaid,
    part
};
template <mistake Wrong>
struct half {
    static constexpr const char* name = "half";
    static constexpr std::size_t inputs = 1;
    struct sizes {
        index D;
    };
    static sizes of(const std::array<index, 1>& widths) { return {widths[0]}; }
    static index state(const sizes& s) { return s.D; }
    static index value(const sizes& s) { return s.D; }
    static index scratch(const sizes&) { return 1; }

    template <class Team, class T>
    static void step(const sizes& s, const T* p, const fprnn::small_array<const T*, 1>& x, const T* from, T* to, T* y) {
        if (Wrong == mistake::not_in_place) Team::each(s.D, [&](auto lane) { lane.store(to, lane.load(x[0])); });
        step_of<Team, T>(s, 0, s.D, p, x, from, to, y);
        if (Wrong == mistake::beside) to[s.D] = 1;
    }
    template <class Team, class T>
    static void step_of(const sizes&, index first, index count, const T*, const fprnn::small_array<const T*, 1>& x,
                        const T* from, T* to, T* y) {
        const index i = Wrong == mistake::part ? 0 : first;
        Team::each(count, [&](auto lane) {
            using V = decltype(lane.load(to));
            const V h = V(T(Wrong == mistake::value ? 0.6 : 0.5)) * lane.load(from + i) + lane.load(x[0] + i);
            if (Wrong != mistake::no_state || y) lane.store(to + i, h);
            if (y) lane.store(y + i, h);
        });
    }
    /// x itself.
    static constexpr unsigned hoisted_inputs = Wrong == mistake::unsaid ? 2 : 1;
    static index hoisted(const sizes& s) { return s.D; }
    template <class Team, class T>
    static void hoist(const sizes& s, const T*, const fprnn::small_array<const T*, 1>& x, T* to) {
        Team::each(s.D, [&](auto lane) { lane.store(to, lane.load(x[0])); });
    }
    template <class Team, class T>
    static void step_hoisted(const sizes& s, index first, index count, const T* x,
                             const fprnn::small_array<const T*, 1>&, const T* from, T* to, T* y) {
        step_of<Team, T>(s, first, count, nullptr, {x}, from, to, y);
        if (Wrong == mistake::hoisted) Team::each(s.D, [&](auto lane) { lane.store(to, lane.load(x)); });
    }
    template <class Team, class T>
    static void back(const sizes& s, const T*, const fprnn::small_array<const T*, 1>&, const T*, const T* y_bar,
                     T* S_bar, const fprnn::small_array<T*, 1>& x_bar, T*, T* memory) {
        Team::each(s.D, [&](auto lane) {
            using V = decltype(lane.load(y_bar));
            V g = lane.load(S_bar) + lane.load(y_bar);
            if (Wrong == mistake::scratch) g += V(memory[0]);
            if (x_bar[0]) Wrong == mistake::overwrites ? lane.store(x_bar[0], g) : lane.add(x_bar[0], g);
            if (Wrong != mistake::null || x_bar[0]) lane.store(S_bar, V(T(Wrong == mistake::gradient ? 0.4 : 0.5)) * g);
        });
    }
};
template <mistake Wrong>
std::string verdict_of() {
    using M = half<Wrong>;
    return fprnn::check_recurrence<M>({.widths = {{1}, {17}},
                                       .plain =
                                           [](const typename M::sizes&, const numbers&, const auto& x, numbers& S) {
                                               for (std::size_t i = 0; i < S.size(); ++i) S[i] = 0.5 * S[i] + x[0][i];
                                               return S;
                                           }})
        .to_string();
}
bool says(const std::string& text, const char* part) {
    INFO(text);
    return text.find(part) != std::string::npos;
}

TEST_CASE("check_recurrence: every mistake is found and named") {
    CHECK(verdict_of<mistake::none>() == "the laws of a recurrence hold");
    CHECK(says(verdict_of<mistake::value>(), "y is the definition's: off by"));
    CHECK(says(verdict_of<mistake::not_in_place>(), "S is the definition's"));
    CHECK(says(verdict_of<mistake::overwrites>(), "back accumulates"));
    CHECK(says(verdict_of<mistake::no_state>(), "step without y has the same state"));
    CHECK(says(verdict_of<mistake::gradient>(), "gradients are difference quotients"));
    CHECK(says(verdict_of<mistake::beside>(), "step writes nothing beside its arrays"));
    CHECK(says(verdict_of<mistake::scratch>(), "(inputs of 1 on serial_team)"));
    CHECK(says(verdict_of<mistake::null>(), "back does not change where a cotangent is null"));
    CHECK(says(verdict_of<mistake::hoisted>(), "step_hoisted gives the state of step, to the bit"));
    CHECK(says(verdict_of<mistake::unsaid>(), "step_hoisted gives the y of step, to the bit"));
    CHECK(says(verdict_of<mistake::part>(), "step_of of some channels and of the others gives the y of step"));
    CHECK_THROWS_WITH_AS(fprnn::check_recurrence<half<mistake::none>>({.widths = {}}),
                         "check_recurrence: widths must name at least one tuple of widths to try, got none",
                         fprnn::argument_error);
}

TEST_CASE("gated_delta: widths that do not fit are refused") {
    using M = fprnn::gated_delta_recurrence;
    CHECK_THROWS_WITH_AS(M::of({2, 6, 8, 3, 6}),
                         "gated_delta: beta must have a multiple of 2 channels, one for each of alpha's heads, got 3",
                         fprnn::argument_error);
    CHECK_THROWS_WITH_AS(M::of({2, 6, 8, 2, 5}),
                         "gated_delta: q must have a multiple of 2 channels, one for each of alpha's heads, got 5",
                         fprnn::argument_error);
    CHECK_THROWS_WITH_AS(M::of({2, 6, 9, 2, 6}),
                         "gated_delta: v must have a multiple of 2 channels, one for each of beta's, got 9",
                         fprnn::argument_error);
    CHECK_THROWS_WITH_AS(M::of({2, 7, 8, 2, 6}),
                         "gated_delta: k must have 6 channels, as many for each of beta's 2 as q has for each head, "
                         "got 7",
                         fprnn::argument_error);
}

}  // namespace
