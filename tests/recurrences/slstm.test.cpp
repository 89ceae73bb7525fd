#include <fprnn/recurrences/check_recurrence.hpp>
#include <fprnn/recurrences/slstm.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace {

using M = fprnn::slstm_recurrence;
using fprnn::index;
using numbers = std::vector<double>;

std::size_t at(index i) { return static_cast<std::size_t>(i); }

/// The definition without a stabiliser: c and n as they are, S in the units of m.
numbers plain(const M::sizes& of, const numbers&, const std::array<numbers, 4>& x, numbers& S) {
    const auto& [i, f, z, o] = x;
    const index D = of.channels;
    numbers y(at(D));
    for (index d = 0; d < D; ++d) {
        double &c = S[at(d)], &n = S[at(D + d)], &m = S[at(2 * D + d)];
        const double forget = 1 / (1 + std::exp(-f[at(d)])), add = std::exp(i[at(d)]), unit = std::exp(std::ceil(m));
        c = forget * unit * c + add * std::tanh(z[at(d)]);
        n = forget * unit * n + add;
        y[at(d)] = c / n / (1 + std::exp(-o[at(d)]));
        m = m == 0 ? i[at(d)] : std::max(m + std::log(forget), i[at(d)]);
        c *= std::exp(-std::ceil(m)), n *= std::exp(-std::ceil(m));
    }
    return y;
}

TEST_CASE("slstm: the laws of a recurrence") {
    // A state of random numbers may have n < 0, so the token's input is the larger.
    for (const double shift : {3.0, 4.0, 5.0}) {
        const auto v =
            fprnn::check_recurrence<M>({.widths = {{1, 1, 1, 1}, {6, 6, 6, 6}, {17, 17, 17, 17}},
                                        .plain = &plain,
                                        .range = [shift](std::size_t k, double x) { return k == 0 ? x + shift : x; }});
        INFO(shift << ": " << v.to_string());
        CHECK(v.ok());
    }
}

TEST_CASE("slstm: widths that do not fit are refused") {
    CHECK_THROWS_WITH_AS(M::of({4, 4, 3, 4}), "slstm: z must have 4 channels, as i, got 3", fprnn::argument_error);
}

/// y and the gradients of all tokens, one channel, z = 0.3 t − 0.5 and o = 0.2 t.
template <class T, template <class> class Team>
std::vector<numbers> run(const std::vector<std::array<double, 2>>& gates) {
    const index tokens = static_cast<index>(gates.size());
    std::array<std::vector<T>, 4> x, bars;
    for (index t = 0; t < tokens; ++t) {
        const double all[] = {gates[at(t)][0], gates[at(t)][1], 0.3 * double(t) - 0.5, 0.2 * double(t)};
        for (std::size_t k = 0; k < 4; ++k) x[k].push_back(static_cast<T>(all[k])), bars[k].push_back(0);
    }
    fprnn::recurring::rows<M, const T> rows;
    fprnn::recurring::rows<M, T> to;
    for (std::size_t k = 0; k < 4; ++k) {
        rows.data[k] = x[k].data(), to.data[k] = bars[k].data();
        rows.stride[k] = to.stride[k] = 1;
    }
    const M::sizes of{1};
    std::vector<T> y(at(tokens)), ones(at(tokens), T(1)), scratch(at(fprnn::recurring::scratch<M>(of, tokens)));
    T S[3] = {}, S_bar[3] = {};
    const T begin[3] = {};
    using team = Team<T>;
    for (index t = 0; t < tokens; ++t) M::step<team, T>(of, nullptr, rows[t], S, S, y.data() + t);
    fprnn::recurring::back<M, team, T>(of, tokens, static_cast<const T*>(nullptr), rows, begin,
                                       static_cast<const T*>(ones.data()), index(1), S_bar, to,
                                       static_cast<T*>(nullptr), scratch.data());
    std::vector<numbers> all{numbers(y.begin(), y.end())};
    for (const auto& b : bars) all.emplace_back(b.begin(), b.end());
    return all;
}

/// An exp of registers is not 0 where one of numbers is: both.
template <template <class> class Team>
void check_gates_of_any_size() {
    const std::vector<std::array<double, 2>> sequences[] = {
        {{60, 40}, {0, 40}, {60, 40}, {-200, 40}, {59, -3}},
        {{-200, 40}, {-200, 0}, {1, 40}, {-200, 40}},
        {{-8, -40}, {-7, 40}, {-9, 40}, {0, -60}, {1, 1}},
        {{0, 40}, {0, 40}, {0, 0}, {0, 40}},
    };
    for (const auto& gates : sequences) {
        const auto got = run<float, Team>(gates), exact = run<double, Team>(gates);
        double c = 0, n = 0;
        for (std::size_t t = 0; t < gates.size(); ++t) {
            const double forget = 1 / (1 + std::exp(-gates[t][1])), add = std::exp(gates[t][0]);
            c = forget * c + add * std::tanh(0.3 * double(t) - 0.5);
            n = forget * n + add;
            CHECK(exact[0][t] == doctest::Approx(c / n / (1 + std::exp(-0.2 * double(t)))).epsilon(1e-12));
        }
        for (std::size_t k = 0; k < got.size(); ++k)
            for (std::size_t t = 0; t < gates.size(); ++t) {
                CAPTURE(k);
                CAPTURE(t);
                CHECK(std::abs(got[k][t] - exact[k][t]) <= 2e-6);
            }
    }
    for (const auto& array : run<float, Team>({{5000, 900}, {-1e30, -1e30}, {1e30, 3}, {3, 1e30}}))
        for (const double g : array) CHECK(fprnn::math::is_finite(g));
}
TEST_CASE("slstm: gates of any size, in float what plain loops in double give, from the first token on") {
    check_gates_of_any_size<fprnn::serial_team>();
    check_gates_of_any_size<fprnn::pack_team>();
}

}  // namespace
