#pragma once

#include <fprnn/backend/eigen.hpp>
#include <fprnn/core/gradcheck.hpp>
#include <fprnn/mixers/mixer_trial.hpp>
#include <fprnn/mixers/team_of_turns.hpp>
#include <fprnn/recurrences/recurrence.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#ifdef FPRNN_EIGEN  // it tries recurrences on packs, too

namespace fprnn {

/// What is said of a recurrence beside the laws that all of them keep, and how exactly laws are to hold.
template <class M>
struct recurrence_claims {
    using token = std::array<std::vector<double>, M::inputs>;
    /// Widths of the inputs that the laws are tried at; one at least.
    std::vector<std::array<index, M::inputs>> widths;
    /// The definition by plain loops: makes S_t of S = S_{t−1} for one token, in place, and returns y_t.
    /// None: value and state are compared between teams alone.
    std::function<std::vector<double>(const typename M::sizes& of, const std::vector<double>& raw_parameters,
                                      const token& x, std::vector<double>& S)>
        plain{};
    /// What the numbers of input k are made of normal ones, 1 − x say; none: they are normal.
    std::function<double(std::size_t k, double x)> range{};
    bool several_threads = true;  ///< on a team of several threads, too
    double rounding = 1e-12;      ///< between two ways to one array, relative to its largest number or to 1
    double gradient = 1e-7;       ///< between gradients and difference quotients, as gradcheck_result::error
};

struct recurrence_verdict {
    std::vector<std::string> broken;  ///< a sentence for each law, once

    bool ok() const { return broken.empty(); }
    std::string to_string() const {
        if (ok()) return "the laws of a recurrence hold";
        std::string text = "laws of a recurrence are broken:";
        for (const std::string& law : broken) text += "\n  " + law;
        return text;
    }
};

namespace detail {

/// The laws for one recurrence, team and tuple of widths, on T tokens that fill more than two blocks.
template <class M, class Team>
class recurrence_laws {
public:
    recurrence_laws(const recurrence_claims<M>& claims, const std::array<index, M::inputs>& widths,
                    const std::string& team, recurrence_verdict& verdict)
        : claims_(claims),
          widths_(widths),
          of_(M::of(widths)),
          team_(team),
          verdict_(verdict),
          S_(fenced::random(M::state(of_), 1)),
          raw_(fenced::random(recurring::parameters<M>(of_), 2, 0.5)),
          p_(raw_.size()),
          y_bar_(fenced::random(tokens * M::value(of_), 3)),
          S_bar_(fenced::random(M::state(of_), 4)) {
        for (std::size_t k = 0; k < M::inputs; ++k) {
            x_.push_back(fenced::random(tokens * widths[k], 10 + k));
            for (index i = 0; claims.range && i < x_[k].size(); ++i) x_[k][i] = claims.range(k, x_[k][i]);
        }
        prepare();
    }

    void try_all() {
        values();
        if constexpr (hoisting_recurrence<M>) hoisted_steps();
        if constexpr (recurrence_of_channels<M>) steps_of_channels();
        if constexpr (opening_recurrence<M>) openings();
        adjoints();
        gradients();
    }
    /// On the threads of a team, of which each has some of the channels, functions give what they give on
    /// one.
    void try_on_threads(recurrence_laws<M, serial_team<double>> one) {
        team_of_turns::together = true;
        for (const bool backwards : {false, true}) {
            team_of_turns::backwards = backwards;
            prepare();
            equal("prepare gives on several threads what it gives on one", p_, one.p_);
            const auto got = solve();
            const auto expected = one.solve();
            equal("step gives on several threads what it gives on one", got.y, expected.y);
            equal("step gives on several threads what it gives on one", got.S, expected.S);
            const auto back = differentiate(0), back_of_one = one.differentiate(0);
            for (std::size_t k = 0; k < back.size(); ++k)
                equal("back gives on several threads what it gives on one", back[k], back_of_one[k]);
        }
        if (!team_of_turns::together) tell("all threads wait equally often: they do not");
    }

private:
    template <class, class>
    friend class recurrence_laws;
    static constexpr index tokens = 2 * recurring::tokens_of_a_block + 3;
    using rows = recurring::rows<M, const double>;
    struct solved {
        fenced y, S;
    };

    template <class Body>
    static void on_team(const Body& body) {
        run_on<Team>(body);
    }
    void prepare() {
        if constexpr (recurrence_with_parameters<M>)
            on_team([&] { M::template prepare<Team>(of_, std::as_const(raw_).data(), p_.data()); });
    }
    rows inputs() const {
        rows all;
        for (std::size_t k = 0; k < M::inputs; ++k) all.data[k] = x_[k].data(), all.stride[k] = widths_[k];
        return all;
    }
    /// y and the state behind tokens [first, last).
    solved solve(const fenced& from, index first, index last) const {
        solved to{fenced(M::value(of_) * (last - first)), fenced(S_.size(), nan)};
        const double* S = from.data();
        for (index t = first; t < last; ++t) {
            double* y = to.y.data() + (t - first) * M::value(of_);
            on_team([&] { M::template step<Team>(of_, p_.data(), inputs()[t], S, to.S.data(), y); });
            S = to.S.data();
        }
        fences("step", {&to.y, &to.S});
        return to;
    }
    solved solve() const { return solve(S_, 0, tokens); }

    /// Steps with what they hoist are steps, to the bit.
    void hoisted_steps() {
        const auto expected = solve(S_, 0, 1);
        fenced hoisted(M::hoisted(of_), nan), S(S_.size(), nan), y(M::value(of_), nan);
        auto read = inputs()[0];
        std::vector<fenced> unread;  // of the inputs that it does not say it reads
        for (std::size_t k = 0; k < M::inputs; ++k) unread.emplace_back(widths_[k], nan);
        for (std::size_t k = 0; k < M::inputs; ++k)
            if ((M::hoisted_inputs >> k & 1) == 0) read[k] = unread[k].data();
        on_team([&] { M::template hoist<Team>(of_, std::as_const(p_).data(), read, hoisted.data()); });
        for (const auto& [first, count] : halves())
            on_team([&, i = first, n = count] {
                M::template step_hoisted<Team>(of_, i, n, std::as_const(hoisted).data(), inputs()[0],
                                               std::as_const(S_).data(), S.data(), y.data());
            });
        fences("hoist, step_hoisted", {&hoisted, &S, &y});
        same("step_hoisted gives the y of step, to the bit", y, expected.y);
        same("step_hoisted gives the state of step, to the bit", S, expected.S);
    }
    /// Channels and their number, of two parts.
    std::array<std::pair<index, index>, 2> halves() const {
        const index channels = M::value(of_), half = channels / 2;
        return {std::pair(index(0), half), std::pair(half, channels - half)};
    }
    /// Steps of some channels and of the others are steps of all.
    void steps_of_channels() {
        const auto expected = solve(S_, 0, 1);
        fenced S(S_.size(), nan), y(M::value(of_), nan), in_place = S_;
        for (const auto& [first, count] : halves())
            on_team([&, i = first, n = count] {
                M::template step_of<Team>(of_, i, n, p_.data(), inputs()[0], std::as_const(S_).data(), S.data(),
                                          y.data());
                M::template step_of<Team>(of_, i, n, p_.data(), inputs()[0], std::as_const(in_place).data(),
                                          in_place.data(), static_cast<double*>(nullptr));
            });
        equal("step_of without y, in place, has the state of step", in_place, expected.S);
        fences("step_of", {&S, &y});
        equal("step_of of some channels and of the others gives the y of step", y, expected.y);
        equal("step_of of some channels and of the others gives the state of step", S, expected.S);
    }

    void values() {
        const auto all = solve();
        const solved half = solve(S_, 0, 17), rest = solve(half.S, 17, tokens);
        equal("a call goes on where another ended", rest.S, all.S);
        fenced alone(S_.size());
        on_team([&] {
            recurring::advance<M, Team>(of_, 0, tokens, std::as_const(p_).data(), inputs(), std::as_const(S_).data(),
                                        alone.data());
        });
        equal("step without y has the same state", alone, all.S);
        fenced in_place = S_;
        on_team([&] {
            recurring::advance<M, Team>(of_, 0, tokens, std::as_const(p_).data(), inputs(),
                                        static_cast<const double*>(in_place.data()), in_place.data());
        });
        equal("step in place has the same state", in_place, all.S);
        if (!claims_.plain) return;
        std::vector<double> S(S_.data(), S_.data() + S_.size()), raw(raw_.data(), raw_.data() + raw_.size());
        fenced y(all.y.size());
        for (index t = 0; t < tokens; ++t) {
            typename recurrence_claims<M>::token x;
            for (std::size_t k = 0; k < M::inputs; ++k)
                x[k].assign(x_[k].data() + t * widths_[k], x_[k].data() + (t + 1) * widths_[k]);
            const auto one = claims_.plain(of_, raw, x, S);
            std::copy(one.begin(), one.end(), y.data() + t * M::value(of_));
        }
        fenced last(S_.size());
        std::copy(S.begin(), S.end(), last.data());
        equal("y is the definition's", all.y, y);
        equal("S is the definition's", all.S, last);
    }

    void openings() {
        const index D = M::value(of_);
        fenced S = S_;
        for (const index t : {index{0}, index{1}}) {
            const auto x = inputs()[t];
            const auto before = inputs()[0];
            fenced p(D, nan), g(D, nan);
            on_team([&] {
                M::template open<Team>(of_, p_.data(), x, S.data(), p.data(), g.data(), t > 0 ? &before : nullptr);
            });
            fences("open", {&p, &g, &S});
            for (index d = 0; d < D; ++d) p[d] += g[d] * x[M::open_input][d];
            equal("an open token has the same y", p, solve(t == 0 ? S_ : solve(S_, 0, 1).S, t, t + 1).y);
        }
        on_team([&] { M::template close<Team>(of_, inputs()[1], S.data()); });
        equal("a closed token has the same state", S, solve(S_, 0, 2).S);

        const auto bars = back_token(0, 10, nullptr);
        fenced u_bar(D, 10), S_bar = S_bar_, k(D, nan), g(D, nan);
        on_team([&] {
            M::template back_input<Team>(of_, p_.data(), inputs()[0], y_bar_.data(), S_bar.data(), u_bar.data());
        });
        equal("back_input sends to its input what back does", u_bar, bars[M::open_input]);
        equal("back_input leaves the cotangent of the state that back does", S_bar, bars[M::inputs]);
        on_team([&] { M::template open_back<Team>(of_, p_.data(), inputs()[0], S_bar_.data(), k.data(), g.data()); });
        fences("back_input and open_back", {&u_bar, &S_bar, &k, &g});
        for (index d = 0; d < D; ++d) k[d] += g[d] * y_bar_[d] + 10;
        equal("open_back sends what back does", k, bars[M::open_input]);
    }

    /// Cotangents of inputs, state and prepared parameters of token t, each begun at `value`; those of input
    /// *without are not asked for.
    std::vector<fenced> back_token(index t, double value, const std::size_t* without) const {
        std::vector<fenced> bars;
        for (std::size_t k = 0; k < M::inputs; ++k) bars.emplace_back(widths_[k], value);
        bars.push_back(S_bar_);
        bars.emplace_back(p_.size(), value);
        fenced scratch(M::scratch(of_), nan);
        small_array<double*, M::inputs> to;
        for (std::size_t k = 0; k < M::inputs; ++k) to[k] = without && *without == k ? nullptr : bars[k].data();
        on_team([&] {
            M::template back<Team>(of_, p_.data(), inputs()[t], S_.data(), y_bar_.data() + t * M::value(of_),
                                   bars[M::inputs].data(), to, bars[M::inputs + 1].data(), scratch.data());
        });
        fences("back", {&scratch});
        for (const fenced& one : bars) fences("back", {&one});
        return bars;
    }
    void adjoints() {
        const auto from_zero = back_token(0, 0, nullptr), from_ten = back_token(0, 10, nullptr);
        for (std::size_t k = 0; k < from_zero.size(); ++k) {
            if (k == M::inputs) continue;
            fenced expected = from_zero[k];
            for (index i = 0; i < expected.size(); ++i) expected[i] += 10;
            equal("back accumulates", from_ten[k], expected);
        }
        for (std::size_t without = 0; without < M::inputs; ++without) {
            const auto others = back_token(0, 0, &without);
            for (std::size_t k = 0; k < others.size(); ++k)
                if (k != without) equal("back does not change where a cotangent is null", others[k], from_zero[k]);
        }
    }
    /// Of all tokens: of the inputs, the state before them and the raw parameters.
    std::vector<fenced> differentiate(double value) const {
        std::vector<fenced> bars;
        recurring::rows<M, double> to;
        for (std::size_t k = 0; k < M::inputs; ++k) {
            bars.emplace_back(tokens * widths_[k], value);
            to.data[k] = bars[k].data(), to.stride[k] = widths_[k];
        }
        bars.push_back(S_bar_);
        bars.emplace_back(raw_.size(), value);
        fenced p_bar(p_.size()), scratch(recurring::scratch<M>(of_, tokens), nan);
        for (std::size_t k = 0; k < M::inputs; ++k) to.data[k] = bars[k].data();
        on_team([&] {
            recurring::back<M, Team>(of_, tokens, std::as_const(p_).data(), inputs(), std::as_const(S_).data(),
                                     std::as_const(y_bar_).data(), M::value(of_), bars[M::inputs].data(), to,
                                     p_bar.data(), scratch.data());
        });
        if constexpr (recurrence_with_parameters<M>)
            on_team([&] {
                M::template prepare_back<Team>(of_, std::as_const(p_).data(), std::as_const(p_bar).data(),
                                               bars[M::inputs + 1].data());
            });
        fences("back", {&scratch});
        return bars;
    }
    void gradients() {
        const auto bars = differentiate(0);
        std::vector<gradcheck_input> all;
        for (std::size_t k = 0; k < M::inputs; ++k)
            all.push_back({"input " + std::to_string(k), x_[k], std::as_const(bars[k])});
        all.push_back({"the state", S_, std::as_const(bars[M::inputs])});
        if (raw_.size() > 0) all.push_back({"the parameters", raw_, std::as_const(bars[M::inputs + 1])});
        const auto loss = [&] {
            prepare();
            const auto to = solve();
            double sum = 0;
            for (index i = 0; i < to.y.size(); ++i) sum += to.y[i] * y_bar_[i];
            for (index i = 0; i < to.S.size(); ++i) sum += to.S[i] * S_bar_[i];
            return sum;
        };
        const auto result = gradcheck(loss, all);
        prepare();
        if (!(result.error <= claims_.gradient)) tell("gradients are difference quotients: " + result.to_string());
    }

    void fences(const char* function, std::initializer_list<const fenced*> arrays) const {
        for (const fenced* one : arrays)
            if (!one->whole())
                tell(std::string(function) +
                     " writes nothing beside its arrays: numbers before or behind one have changed");
    }
    void equal(const std::string& law, const fenced& got, const fenced& expected) const {
        double largest = 1, worst = 0;
        for (index i = 0; i < expected.size(); ++i) largest = std::max(largest, std::abs(expected[i]));
        for (index i = 0; i < expected.size(); ++i) {
            const double off = std::abs(got[i] - expected[i]) / largest;
            if (!(off <= worst)) worst = off;
        }
        if (!(worst <= claims_.rounding)) tell(law + ": off by " + number_text(worst, std::chars_format::general, 3));
    }
    void same(const std::string& law, const fenced& got, const fenced& expected) const {
        for (index i = 0; i < expected.size(); ++i)
            if (got[i] != expected[i]) return tell(law + ": number " + std::to_string(i) + " is not");
    }
    /// Once for each law.
    void tell(const std::string& law) const {
        const std::string name = law.substr(0, law.find(':'));
        for (const std::string& told : verdict_.broken)
            if (told.substr(0, told.find(':')) == name) return;
        std::string at;
        for (const index width : widths_) at += (at.empty() ? "" : ", ") + std::to_string(width);
        verdict_.broken.push_back(law + " (inputs of " + at + " on " + team_ + ")");
    }

    static constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    const recurrence_claims<M>& claims_;
    std::array<index, M::inputs> widths_;
    typename M::sizes of_;
    std::string team_;
    recurrence_verdict& verdict_;
    fenced S_, raw_, p_, y_bar_, S_bar_;
    std::vector<fenced> x_;
};

}  // namespace detail

}  // namespace fprnn

#endif
