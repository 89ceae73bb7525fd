#include "locales.hpp"

#include <fprnn/mixers/check_mixer.hpp>
#include <fprnn/mixers/dplr.hpp>
#include <fprnn/mixers/householder.hpp>
#include <fprnn/mixers/kronecker.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <type_traits>

namespace {

using fprnn::argument_error;
using fprnn::check_mixer;
using fprnn::index;
using fprnn::mixer_verdict;
using fprnn::tensor;

/// A right mixer; below, one mistake each.
using right = fprnn::householder_mixer<2>;

std::vector<std::string> laws(const mixer_verdict& v) {
    std::vector<std::string> names;
    for (const auto& b : v.broken) names.push_back(b.law);
    return names;
}
using names = std::vector<std::string>;

TEST_CASE("check_mixer: a right mixer keeps all laws, at the widths that it accepts") {
    const auto verdict = check_mixer<right>({.norm_at_most_one = true});
    CHECK(verdict.ok());
    CHECK(verdict.widths == std::vector<index>{2, 3, 4, 8, 17, 18});
    CHECK(verdict.to_string() == "the laws of a mixer hold at D = 2, 3, 4, 8, 17, 18");
}

struct applies_Q_for_its_transpose : right {
    template <class Team, class T>
    static void mix_back(index D, const T* q, const T* out_bar, T* v_bar, T* w_bar, T* scratch) {
        std::vector<T> g(static_cast<std::size_t>(D));
        const T* none = nullptr;
        mix<Team>(D, q, out_bar, none, g.data(), scratch);
        for (index i = 0; i < D; ++i) {
            if (v_bar) v_bar[i] += g[static_cast<std::size_t>(i)];
            if (w_bar) w_bar[i] += out_bar[i] - g[static_cast<std::size_t>(i)];
        }
    }
};

TEST_CASE("check_mixer: a wrong adjoint is named with its width and its size") {
    const auto verdict = check_mixer<applies_Q_for_its_transpose>();
    REQUIRE(laws(verdict) == names{"mix_back's v_bar is the adjoint of mix in v",  //
                                   "mix_back's w_bar is the adjoint of mix in w"});
    const auto& b = verdict.broken[0];
    CHECK(b.width == 2);
    CHECK(b.team == "serial_team");
    CHECK(b.by > 1e-3);
    CHECK(b.allowed == 1e-12);
    char by[32];
    std::snprintf(by, sizeof by, "%.3g", b.by);
    const std::string begin =
        "laws of a mixer, tried at D = 2, 3, 4, 8, 17, 18, are broken:\n"
        "  mix_back's v_bar is the adjoint of mix in v: at D = 2 on serial_team off by " +
        std::string(by) + ", allowed is 1e-12 (number ";
    CHECK(verdict.to_string().substr(0, begin.size()) == begin);
}

struct adds_to_out : right {
    template <class Team, class T>
    static void mix(index D, const T* q, const T* v, const T* w, T* out, T* scratch) {
        std::vector<T> sum(static_cast<std::size_t>(D));
        right::mix<Team>(D, q, v, w, sum.data(), scratch);
        for (index i = 0; i < D; ++i) out[i] += sum[static_cast<std::size_t>(i)];
    }
};
struct writes_out_before_it_reads_v : right {
    template <class Team, class T>
    static void mix(index D, const T* q, const T* v, const T* w, T* out, T* scratch) {
        for (index i = 0; i < D; ++i) out[i] = w ? w[i] : T(0);
        std::vector<T> sum(static_cast<std::size_t>(D));
        right::mix<Team>(D, q, v, w, sum.data(), scratch);
        for (index i = 0; i < D; ++i) out[i] = sum[static_cast<std::size_t>(i)];
    }
};
struct trusts_scratch : right {
    static index scratch(index D) { return right::scratch(D) + 1; }
    template <class Team, class T>
    static void mix(index D, const T* q, const T* v, const T* w, T* out, T* scratch) {
        right::mix<Team>(D, q, v, w, out, scratch + 1);
        out[0] += scratch[0];
    }
};
struct bends_large_numbers : right {
    template <class Team, class T>
    static void mix(index D, const T* q, const T* v, const T* w, T* out, T* scratch) {
        right::mix<Team>(D, q, v, w, out, scratch);
        if (v && !w) out[0] += T(1e-6) * v[0] * v[0];
    }
};

TEST_CASE("check_mixer: a mix that adds to out, spoils v, reads scratch or is not linear is caught") {
    CHECK(laws(check_mixer<adds_to_out>()) == names{"mix overwrites out", "mix gives the same bits when out is v"});
    CHECK(laws(check_mixer<writes_out_before_it_reads_v>()) == names{"mix gives the same bits when out is v"});
    CHECK(laws(check_mixer<trusts_scratch>()) == names{"mix reads nothing that scratch held before"});
    const auto bent = laws(check_mixer<bends_large_numbers>());
    CHECK(std::count(bent.begin(), bent.end(), "mix is linear in v") == 1);
}

struct forgets_w : right {
    template <class Team, class T>
    static void mix_back_q(index D, const T* q, const T* v, const T*, const T* out_bar, T* q_bar, T* scratch) {
        const T* none = nullptr;
        right::mix_back_q<Team>(D, q, v, none, out_bar, q_bar, scratch);
    }
};
struct forgets_one_half : right {
    template <class Team, class T>
    static void prepare_back(index D, const T* const* raw, const T* q, const T* q_bar, T* const* raw_bar) {
        right::prepare_back<Team>(D, raw, q, q_bar, raw_bar);
        right::prepare_back<Team>(D, raw, q, q_bar, raw_bar);
    }
};
struct overwrites_bars : right {
    template <class Team, class T>
    static void prepare_back(index D, const T* const* raw, const T* q, const T* q_bar, T* const* raw_bar) {
        raw_bar[1][0] = raw_bar[1][1] = 0;
        right::prepare_back<Team>(D, raw, q, q_bar, raw_bar);
    }
    template <class Team, class T>
    static void mix_back(index D, const T* q, const T* out_bar, T* v_bar, T* w_bar, T* scratch) {
        if (v_bar) std::fill_n(v_bar, D, T(0));
        right::mix_back<Team>(D, q, out_bar, v_bar, w_bar, scratch);
    }
};

TEST_CASE("check_mixer: gradients are compared to difference quotients, and bars are added to") {
    CHECK(laws(check_mixer<forgets_w>()) == names{"mix_back_q gives the gradient of mix in q",
                                                  "mix_back_q gives the gradient of mix in q, with a null v"});
    const auto doubled = check_mixer<forgets_one_half>();
    REQUIRE(laws(doubled) == names{"prepare_back gives the gradient of prepare in raw"});
    CHECK(doubled.broken[0].by == doctest::Approx(0.5).epsilon(1e-6));
    CHECK(doubled.broken[0].where.find("worst at raw[") != std::string::npos);
    CHECK(laws(check_mixer<overwrites_bars>()) == names{"mix_back adds to v_bar", "prepare_back adds to raw_bar"});
}

/// Right for D up to 4, and with packs of up to so many.
struct ends_after_four_channels : right {
    template <class Team, class T>
    static void mix(index D, const T* q, const T* v, const T* w, T* out, T* scratch) {
        right::mix<Team>(D, q, v, w, out, scratch);
        for (index i = 4; i < D; ++i) out[i] = 0;
    }
};
/// Takes a lane for one channel.
struct right_on_serial_team_alone : right {
    template <class Team, class T>
    static void prepare(index D, const T* const* raw, T* q) {
        right::prepare<Team>(D, raw, q);
        Team::each(D, [&](auto lane) {
            if (std::abs(raw[0][lane.channel]) < T(1e-3)) q[lane.channel] = 0;
            if constexpr (!std::is_same_v<decltype(lane), fprnn::scalar_lane<T>>) q[lane.channel] = -q[lane.channel];
        });
    }
};
struct not_finite : right {
    template <class Team, class T>
    static void prepare(index D, const T* const* raw, T* q) {
        right::prepare<Team>(D, raw, q);
        q[D] /= T(D == 17 ? 0 : 1);
    }
};
struct asks_for_too_little : right {
    static index scratch(index D) { return D; }
    template <class Team, class T>
    static void mix_back_q(index D, const T* q, const T* v, const T* w, const T* out_bar, T* q_bar, T* scratch) {
        scratch[D] = 0;
        right::mix_back_q<Team>(D, q, v, w, out_bar, q_bar, scratch);
    }
};
struct reads_scratch_before_it_writes : fprnn::kronecker_mixer {
    template <class Team, class T>
    static void prepare(index D, const T* const* raw, T* q, T* scratch) {
        const T before = scratch[0];
        fprnn::kronecker_mixer::prepare<Team>(D, raw, q, scratch);
        q[0] += before;
    }
};
struct writes_behind_q : right {
    template <class Team, class T>
    static void prepare(index D, const T* const* raw, T* q) {
        right::prepare<Team>(D, raw, q);
        q[size(D)] = 1;
    }
};

TEST_CASE("check_mixer: the first width and team that break a law are named") {
    for (const auto& b : check_mixer<ends_after_four_channels>().broken) CHECK(b.width == 8);
    const auto packs = check_mixer<right_on_serial_team_alone>();
    CHECK_FALSE(packs.ok());
    for (const auto& b : packs.broken) CHECK(b.team == "pack_team");
    CHECK(check_mixer<right_on_serial_team_alone, fprnn::serial_team<double>>().ok());
}

TEST_CASE("check_mixer: a number that is not finite breaks laws, and is not lost in a maximum") {
    const auto verdict = check_mixer<not_finite>();
    CHECK(laws(verdict).size() > 5);
    for (const auto& b : verdict.broken) CHECK(b.width == 17);
}

TEST_CASE("check_mixer: what a function writes beside its arrays is found") {
    const auto broken = laws(check_mixer<asks_for_too_little>());
    CHECK(std::count(broken.begin(), broken.end(), "mix_back_q writes nothing beside its arrays") == 1);
    CHECK(laws(check_mixer<writes_behind_q>()) == names{"prepare writes nothing beside its arrays"});
    const auto reads = laws(check_mixer<reads_scratch_before_it_writes>());
    CHECK(std::count(reads.begin(), reads.end(), "prepare reads nothing that scratch held before") == 1);
}

TEST_CASE("check_mixer: a contraction that is claimed and is none is found") {
    CHECK(laws(check_mixer<fprnn::dplr_mixer<2>>({.contracts = true})) == names{"the norm of I - Q is below 1"});
    CHECK(check_mixer<fprnn::dplr_mixer<1>>({.contracts = true}).ok());
}

/// α in (0, 3), so that Q's eigenvalue 1 − α reaches −2.
struct norm_of_two : fprnn::householder_mixer<1> {
    using base = fprnn::householder_mixer<1>;
    template <class Team, class T>
    static void prepare(index D, const T* const* raw, T* q) {
        base::prepare<Team>(D, raw, q);
        Team::once([&] { q[D] *= 3; });
    }
    template <class Team, class T>
    static void prepare_back(index D, const T* const* raw, const T* q, const T* q_bar, T* const* raw_bar) {
        std::vector<T> scaled(q_bar, q_bar + base::size(D));
        scaled[static_cast<std::size_t>(D)] *= 3;
        base::prepare_back<Team>(D, raw, q, scaled.data(), raw_bar);
    }
};
struct wrong_S : right {
    template <class Team, class T>
    static void compact(index D, const T* q, fprnn::small_array<fprnn::small_array<T, 2>, 2>& S) {
        right::compact<Team>(D, q, S);
        std::swap(S[0][1], S[1][0]);
    }
};

TEST_CASE("check_mixer: norm, definition and compact form are compared where they are claimed") {
    CHECK(check_mixer<norm_of_two>().ok());
    const auto verdict = check_mixer<norm_of_two>({.norm_at_most_one = true});
    INFO(verdict.to_string());
    REQUIRE(laws(verdict) == names{"the norm of Q is at most 1"});
    CHECK(verdict.broken[0].by > 0.5);
    CHECK(verdict.broken[0].where.find("it is 1.") == 0);

    const auto identity = [](index D, const auto&) {
        tensor<double> Q({D, D});
        for (index d = 0; d < D; ++d) Q(d, d) = 1;
        return Q;
    };
    CHECK(laws(check_mixer<right>({.dense = identity})) == names{"Q is the dense matrix of its definition"});
    CHECK(laws(check_mixer<wrong_S>()) == names{"compact's U S Uᵀ is I - Q", "compact's S is lower triangular"});
    CHECK_THROWS_WITH_AS(check_mixer<right>({.dense = [](index D, const auto&) { return tensor<double>({D}); }}),
                         "check_mixer: dense must give [2,2], got [2]", argument_error);
}

/// As if there were one thread.
struct ignores_its_team : right {
    template <class Team, class T>
    static void mix_back(index D, const T* q, const T* out_bar, T* v_bar, T* w_bar, T* scratch) {
        right::mix_back<fprnn::serial_team<T>>(D, q, out_bar, v_bar, w_bar, scratch);
    }
};
/// Reads a channel that another thread has written.
template <bool Waits>
struct looks_at_the_last_channel : right {
    static index scratch(index D) { return right::scratch(D) + D; }
    template <class Team, class T>
    static void mix(index D, const T* q, const T* v, const T* w, T* out, T* scratch) {
        right::mix<Team>(D, q, v, w, out, scratch);
        T* seen = scratch + right::scratch(D);
        Team::each(D, [&](auto lane) { lane.store(seen, lane.load(out)); });
        if (Waits) Team::once([] {});
        const T zero = seen[D - 1] - seen[D - 1];
        Team::each(D, [&](auto lane) { lane.store(out, lane.load(out) + decltype(lane.load(out))(zero)); });
    }
};
/// Reads a row of scratch until its end, which its mix_back_q overwrites at once.
struct leaves_a_row_to_others : right {
    static index scratch(index D) { return right::scratch(D) + D; }
    template <class Team, class T>
    static void mix_back(index D, const T* q, const T* out_bar, T* v_bar, T* w_bar, T* scratch) {
        right::mix_back<Team>(D, q, out_bar, v_bar, w_bar, scratch + D);
        Team::each(D, [&](auto lane) { lane.store(scratch, lane.load(out_bar)); });
        Team::once([] {});
        const T zero = scratch[D - 1] - scratch[D - 1];
        if (v_bar) Team::each(D, [&](auto lane) { lane.add(v_bar, decltype(lane.load(out_bar))(zero)); });
    }
    template <class Team, class T>
    static void mix_back_q(index D, const T* q, const T* v, const T* w, const T* out_bar, T* q_bar, T* scratch) {
        constexpr T nan = std::numeric_limits<T>::quiet_NaN();
        Team::each(D, [&](auto lane) { lane.store(scratch, decltype(lane.load(out_bar))(nan)); });
        right::mix_back_q<Team>(D, q, v, w, out_bar, q_bar, scratch + D);
    }
};
struct waits_for_nobody : right {
    template <class Team, class T>
    static void prepare(index D, const T* const* raw, T* q) {
        right::prepare<Team>(D, raw, q);
        Team::each(1, [](auto) { Team::once([] {}); });
    }
};
struct asks_for_too_many_channels : right {
    template <class Team, class T>
    static void prepare(index D, const T* const* raw, T* q) {
        right::prepare<Team>(D, raw, q);
        Team::each(2 * D, [](auto) {});
    }
};
struct throws_on_a_thread : right {
    template <class Team, class T>
    static void prepare(index D, const T* const* raw, T* q) {
        right::prepare<Team>(D, raw, q);
        if constexpr (!std::is_same_v<Team, fprnn::serial_team<T>>)
            Team::each(1, [](auto) { throw std::runtime_error("no such luck"); });
    }
};

TEST_CASE("check_mixer: a mixer has to share its channels among the threads of a team, as a GPU does") {
    const auto verdict = check_mixer<ignores_its_team>();
    const std::string both =
        "mix_back and then mix_back_q, without a wait, gives on several threads what it gives on one";
    REQUIRE(laws(verdict) == names{"mix_back gives on several threads what it gives on one", both});
    CHECK(verdict.broken[0].team == "3 threads");
    CHECK(verdict.broken[0].width == 2);
    CHECK(check_mixer<ignores_its_team>({.several_threads = false}).ok());
    CHECK(laws(check_mixer<looks_at_the_last_channel<false>>()) ==
          names{"mix gives on several threads what it gives on one",
                "mix gives on several threads what it gives on one, when out is v"});
    CHECK(check_mixer<looks_at_the_last_channel<true>>().ok());
    CHECK(laws(check_mixer<leaves_a_row_to_others>()) == names{both});
    CHECK(laws(check_mixer<waits_for_nobody>()) == names{"all threads come to each sum, max and once"});
    const auto asks = check_mixer<asks_for_too_many_channels>();
    REQUIRE(laws(asks) == names{"a team is asked for at most D channels at a time"});
    CHECK(asks.broken[0].where == "it is asked for 4");
    CHECK(check_mixer<right>().ok());
    CHECK_THROWS_WITH_AS((check_mixer<throws_on_a_thread, fprnn::serial_team<double>>()), "no such luck",
                         std::runtime_error);
}

/// Accepts one width.
template <index Only>
struct of_one_width : right {
    static void check(index D) {
        fprnn::require(D == Only, "of_one_width", [&] { return "got " + std::to_string(D); });
    }
};

TEST_CASE("check_mixer: widths that check refuses are left out, and refused when they are asked for") {
    CHECK(check_mixer<of_one_width<4>>().widths == std::vector<index>{4});
    CHECK(check_mixer<of_one_width<10>>().widths == std::vector<index>{10});
    CHECK_THROWS_WITH_AS(check_mixer<of_one_width<0>>(),
                         "check_mixer: the mixer's check refuses every width from 1 to 1024; expected one that it "
                         "accepts in widths",
                         argument_error);
    CHECK(check_mixer<right>({.widths = {20, 5}}).widths == std::vector<index>{20, 5});
    CHECK_THROWS_WITH_AS(check_mixer<of_one_width<4>>({.widths = {4, 5}}), "of_one_width: got 5", argument_error);
}

TEST_CASE("check_mixer: what is broken is said in the same text in any locale") {
    const fprnn::broken_law b{.law = "l", .team = "t", .width = 4, .by = 0.0012345, .allowed = 1e-12, .where = "w"};
    fprnn::testing::with_decimal_commas(
        [&] { CHECK(b.to_string() == "l: at D = 4 on t off by 0.00123, allowed is 1e-12 (w)"); });
}

}  // namespace
