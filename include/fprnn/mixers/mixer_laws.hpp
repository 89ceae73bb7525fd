#pragma once

#include <fprnn/core/gradcheck.hpp>
#include <fprnn/core/math.hpp>
#include <fprnn/core/number_text.hpp>
#include <fprnn/mixers/mixer_trial.hpp>
#include <fprnn/mixers/mixer_verdict.hpp>
#include <fprnn/mixers/team_of_turns.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace fprnn::detail {

/// The laws for one mixer, team and width. A law that two calls show in two ways has one name.
class mixer_laws {
public:
    mixer_laws(mixer_functions functions, const mixer_claims& claims, mixer_verdict& verdict)
        : trial_(std::move(functions)), D_(trial_.m.D), claims_(claims), verdict_(verdict) {}

    void try_all() {
        equal("prepare overwrites q", trial_.prepare(10), trial_.q);
        equal("prepare reads nothing that scratch held before", trial_.prepare(0, nan), trial_.q);
        mixing();
        if (claims_.dense) definition();
        adjoints();
        gradients();
        if (trial_.m.compact) compact_form();
        if (claims_.norm_at_most_one || claims_.contracts)
            for (std::uint64_t stream = 1; stream <= 10; ++stream) norms(stream);
        for (const std::string& function : trial_.strayed)
            hold(function + " writes nothing beside its arrays", nan, 0, "numbers before or behind one have changed");
    }

    /// On the threads of a team, of which each has some of the channels, functions give what they give on
    /// one, `one`.
    void try_on_threads(mixer_trial one) {
        trial_.q = one.q;
        team_of_turns::together = true;
        team_of_turns::most = 0;
        const std::pair<const fenced*, const fenced*> both[] = {{&v_, &w_}, {&v_, nullptr}, {nullptr, &w_}};
        const std::string same = " gives on several threads what it gives on one";
        for (const bool backwards : {false, true}) {
            team_of_turns::backwards = backwards;
            equal("prepare" + same, trial_.prepare(10, nan), one.prepare());
            const fenced from = fenced::random(one.m.size, 5);
            const auto got = trial_.prepare_back(from, 0, nan), expected = one.prepare_back(from);
            for (std::size_t k = 0; k < got.size(); ++k) equal("prepare_back" + same, got[k], expected[k]);
            for (const auto& [v, w] : both) {
                equal("mix" + same, trial_.mix(v, w, 10, nan), one.mix(v, w));
                equal("mix_back_q" + same, trial_.mix_back_q(v, w, 10, nan), one.mix_back_q(v, w, 10));
                const auto bars = trial_.mix_back(v, w, 10, nan), bars_of_one = one.mix_back(v, w, 10);
                equal("mix_back" + same, bars.first, bars_of_one.first);
                equal("mix_back" + same, bars.second, bars_of_one.second);
                if (v) equal("mix" + same + ", when out is v", trial_.mix_in_place(*v, w, nan), one.mix(v, w));
            }
            const auto back = trial_.both_back(v_, w_, nan), back_of_one = one.both_back(v_, w_, nan);
            for (std::size_t k = 0; k < back.size(); ++k)
                equal("mix_back and then mix_back_q, without a wait," + same, back[k], back_of_one[k]);
            if (one.m.rank > 0) equal("compact" + same, trial_.compact(), one.compact());
        }
        hold("all threads come to each sum, max and once", team_of_turns::together ? 0 : nan, 0,
             "one does not: they are called by all, and not in the body of another");
        hold("a team is asked for at most D channels at a time",
             static_cast<double>(std::max<index>(team_of_turns::most - D_, 0)), 0,
             "it is asked for " + std::to_string(team_of_turns::most));
    }

private:
    static constexpr double nan = std::numeric_limits<double>::quiet_NaN();

    /// out = w + Q (v − w), linear in both
    void mixing() {
        const fenced Qv = trial_.mix(&v_, nullptr), Qw = trial_.mix(&w_, nullptr), both = trial_.mix(&v_, &w_);
        equal("mix overwrites out", trial_.mix(&v_, &w_, 10), both);
        equal("mix reads nothing that scratch held before", trial_.mix(&v_, &w_, 0, nan), both);
        equal("mix of a null v and a null w is 0", trial_.mix(nullptr, nullptr), fenced(D_), 0);
        const fenced v_half_w = sum(0.5, w_, v_);
        equal("mix is linear in v", trial_.mix(&v_half_w, nullptr), sum(0.5, Qw, Qv));
        equal("mix of a null v is w - Q w", trial_.mix(nullptr, &w_), sum(-1, Qw, w_));
        equal("mix of v and w is Q v + (I - Q) w", both, sum(1, Qv, sum(-1, Qw, w_)));
        equal("mix of v and v is v", trial_.mix(&v_, &v_), v_);
        for (const fenced* w : {&w_, static_cast<const fenced*>(nullptr)}) {
            equal("mix gives the same bits when out is v", trial_.mix_in_place(v_, w), trial_.mix(&v_, w), 0);
        }
    }

    void definition() {
        std::vector<tensor<double>> raw;
        for (const fenced& r : trial_.raw) {
            raw.emplace_back(shape{r.size()});
            std::copy_n(r.data(), r.size(), raw.back().data());
        }
        const tensor<double> Q = claims_.dense(D_, raw);
        require(Q.shape() == shape{D_, D_}, "check_mixer", [&] {
            return "dense must give " + shape{D_, D_}.to_string() + ", got " + Q.shape().to_string();
        });
        fenced expected(Q.size());
        std::copy_n(Q.data(), Q.size(), expected.data());
        equal("Q is the dense matrix of its definition", trial_.matrix(), expected);
    }

    /// v̄ += Qᵀ ō,  w̄ += ō − Qᵀ ō, against the matrix whose columns mix gives: to rounding, entry by entry.
    void adjoints() {
        const fenced Q = trial_.matrix();
        fenced transposed(D_);
        for (index r = 0; r < D_; ++r)
            for (index c = 0; c < D_; ++c) transposed[c] += Q[r * D_ + c] * trial_.out_bar[r];
        const auto [v_bar, w_bar] = trial_.mix_back();
        equal("mix_back's v_bar is the adjoint of mix in v", v_bar, transposed);
        equal("mix_back's w_bar is the adjoint of mix in w", w_bar, sum(-1, transposed, trial_.out_bar));
        equal("mix_back takes a null w_bar", trial_.mix_back(true, false).first, v_bar);
        equal("mix_back takes a null v_bar", trial_.mix_back(false, true).second, w_bar);
        const auto more = trial_.mix_back(true, true, 10);
        equal("mix_back adds to v_bar", more.first, sum(1, v_bar, fenced(D_, 10)));
        equal("mix_back adds to w_bar", more.second, sum(1, w_bar, fenced(D_, 10)));
        const auto dirty = trial_.mix_back(true, true, 0, nan);
        equal("mix_back reads nothing that scratch held before", dirty.first, v_bar);
        equal("mix_back reads nothing that scratch held before", dirty.second, w_bar);
    }

    void gradients() {
        const auto of_q = [&](const char* law, const fenced* v, const fenced* w) {
            const fenced bar = trial_.mix_back_q(v, w);
            slopes(law, [&] { return dot(trial_.mix(v, w), trial_.out_bar); }, {{"q", trial_.q, bar}});
        };
        of_q("mix_back_q gives the gradient of mix in q", &v_, &w_);
        of_q("mix_back_q gives the gradient of mix in q, with a null w", &v_, nullptr);
        of_q("mix_back_q gives the gradient of mix in q, with a null v", nullptr, &w_);
        const fenced q_bar = trial_.mix_back_q(&v_, &w_);
        equal("mix_back_q adds to q_bar", trial_.mix_back_q(&v_, &w_, 10), sum(1, q_bar, fenced(q_bar.size(), 10)));
        equal("mix_back_q reads nothing that scratch held before", trial_.mix_back_q(&v_, &w_, 0, nan), q_bar);

        const fenced from = fenced::random(trial_.m.size, 5);
        const auto once = trial_.prepare_back(from), more = trial_.prepare_back(from, 10),
                   dirty = trial_.prepare_back(from, 0, nan);
        std::vector<gradcheck_input> inputs;
        for (std::size_t k = 0; k < once.size(); ++k) {
            inputs.push_back({"raw[" + std::to_string(k) + "]", trial_.raw[k], once[k]});
            equal("prepare_back adds to raw_bar", more[k], sum(1, once[k], fenced(once[k].size(), 10)));
            equal("prepare_back reads nothing that scratch held before", dirty[k], once[k]);
        }
        slopes(
            "prepare_back gives the gradient of prepare in raw", [&] { return dot(trial_.prepare(), from); }, inputs);
    }

    /// I − Q = U S Uᵀ
    void compact_form() {
        const index R = trial_.m.rank;
        const fenced &U = trial_.q, Q = trial_.matrix();
        fenced S = trial_.compact(), product(D_ * D_), rest(D_ * D_);
        for (index r = 0; r < D_; ++r)
            for (index c = 0; c < D_; ++c) {
                rest[r * D_ + c] = (r == c) - Q[r * D_ + c];
                for (index i = 0; i < R; ++i)
                    for (index j = 0; j < R; ++j) product[r * D_ + c] += U[i * D_ + r] * S[i * R + j] * U[j * D_ + c];
            }
        equal("compact's U S Uᵀ is I - Q", product, rest);
        fenced lower = S;
        for (index i = 0; i < R; ++i)
            for (index j = i + 1; j < R; ++j) lower[i * R + j] = 0;
        equal("compact's S is lower triangular", S, lower, 0);
    }

    /// ‖Q‖₂ and ‖I − Q‖₂ for raw numbers that drive what is bounded to its limits.
    void norms(std::uint64_t stream) {
        trial_.draw(stream, 3);
        fenced Q = trial_.matrix();
        if (claims_.norm_at_most_one) {
            const double size = norm(Q);
            hold("the norm of Q is at most 1", size <= 1 ? 0 : size - 1, 4 * claims_.rounding,
                 "it is " + number_text(size));
        }
        if (claims_.contracts) {
            for (index r = 0; r < D_; ++r)
                for (index c = 0; c < D_; ++c) Q[r * D_ + c] = (r == c) - Q[r * D_ + c];
            const double size = norm(Q);
            hold("the norm of I - Q is below 1", size < 1 ? 0 : size - 1, 4 * claims_.rounding,
                 "it is " + number_text(size));
        }
        trial_.draw(1, 1);
    }
    /// ‖A‖₂ by power iteration on AᵀA, A [D,D].
    double norm(const fenced& A) const {
        fenced x = v_;
        double size = 0;
        for (int i = 0; i < 200; ++i) {
            x = sum(1 / std::max(std::sqrt(dot(x, x)), 1e-300), x, fenced(D_));
            fenced y(D_), back(D_);
            for (index r = 0; r < D_; ++r)
                for (index c = 0; c < D_; ++c) y[r] += A[r * D_ + c] * x[c];
            for (index r = 0; r < D_; ++r)
                for (index c = 0; c < D_; ++c) back[c] += A[r * D_ + c] * y[r];
            size = std::sqrt(dot(y, y));
            x = back;
        }
        return size;
    }

    void equal(const std::string& law, const fenced& got, const fenced& expected) {
        equal(law, got, expected, claims_.rounding);
    }
    void equal(const std::string& law, const fenced& got, const fenced& expected, double allowed) {
        double largest = 1, worst = 0;
        index at = 0;
        for (index i = 0; i < got.size(); ++i) {
            const double difference = std::abs(got[i] - expected[i]);
            largest = std::max({largest, std::abs(got[i]), std::abs(expected[i])});
            if (difference <= worst || math::is_nan(worst)) continue;
            worst = difference;  // NaN, too
            at = i;
        }
        if (worst == 0) return;
        const auto digits = [](double x) { return detail::number_text(x, std::chars_format::general, 6); };
        hold(law, worst / largest, allowed,
             "number " + std::to_string(at) + " is " + digits(got[at]) + ", expected " + digits(expected[at]));
    }

    /// By the better of two steps: the longer may cross a kink.
    template <class F>
    void slopes(const char* law, F&& f, const std::vector<gradcheck_input>& inputs) {
        gradcheck_result best = gradcheck(f, inputs);
        if (best.error > claims_.gradient) {
            const gradcheck_result other = gradcheck(f, inputs, {.step = 1e-4});
            if (other.error < best.error) best = other;
        }
        hold(law, best.error, claims_.gradient, best.to_string());
    }

    void hold(const std::string& law, double by, double allowed, const std::string& where) {
        if (by <= allowed) return;
        if (std::none_of(verdict_.broken.begin(), verdict_.broken.end(), [&](const auto& b) { return b.law == law; }))
            verdict_.broken.push_back({law, trial_.m.team, D_, by, allowed, where});
    }

    mixer_trial trial_;
    index D_;
    const mixer_claims& claims_;
    mixer_verdict& verdict_;
    const fenced v_ = fenced::random(D_, 2), w_ = fenced::random(D_, 3);
};

}  // namespace fprnn::detail
