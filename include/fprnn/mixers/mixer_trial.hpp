#pragma once

#include <fprnn/core/math.hpp>
#include <fprnn/core/random.hpp>
#include <fprnn/core/tensor.hpp>
#include <fprnn/mixers/mixer.hpp>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

/// A mixer whose functions run on guarded arrays, for its laws.
namespace fprnn::detail {

/// A mixer's functions for one width, in double. Which mixer and team they are of is forgotten, so that the
/// laws compile once.
struct mixer_functions {
    std::string team;
    index D, size, scratch, prepare_scratch, rank;  // rank 0: no compact form
    std::vector<index> raw_sizes;
    void (*prepare)(index, const double* const*, double*, double*);
    void (*prepare_back)(index, const double* const*, const double*, const double*, double* const*, double*);
    void (*mix)(index, const double*, const double*, const double*, double*, double*);
    void (*mix_back)(index, const double*, const double*, double*, double*, double*);
    void (*mix_back_q)(index, const double*, const double*, const double*, const double*, double*, double*);
    /// mix_back, then mix_back_q, with the same scratch and no wait between them, as layers call them.
    void (*both_back)(index, const double*, const double*, const double*, const double*, double*, double*, double*,
                      double*);
    void (*compact)(index, const double*, double*);
};

/// body(), on all threads of a team that has some.
template <class Team, class Body>
void run_on(const Body& body) {
    if constexpr (requires { Team::run(body); })
        Team::run(body);
    else
        body();
}

template <class M, class Team>
mixer_functions functions_of(const std::string& team, index D) {
    const auto raw_sizes = M::raw_sizes(D);
    mixer_functions f{
        .team = team,
        .D = D,
        .size = M::size(D),
        .scratch = M::scratch(D),
        .prepare_scratch = mixing::prepare_scratch<M>(D),
        .rank = 0,
        .raw_sizes = {std::begin(raw_sizes), std::end(raw_sizes)},
        .prepare = [](index d, const double* const* raw, double* q,
                      double* scratch) { run_on<Team>([=] { mixing::prepare<M, Team>(d, raw, q, scratch); }); },
        .prepare_back =
            [](index d, const double* const* raw, const double* q, const double* q_bar, double* const* raw_bar,
               double* scratch) {
                run_on<Team>([=] { mixing::prepare_back<M, Team>(d, raw, q, q_bar, raw_bar, scratch); });
            },
        .mix = [](index d, const double* q, const double* v, const double* w, double* out,
                  double* scratch) { run_on<Team>([=] { M::template mix<Team>(d, q, v, w, out, scratch); }); },
        .mix_back =
            [](index d, const double* q, const double* out_bar, double* v_bar, double* w_bar, double* scratch) {
                run_on<Team>([=] { M::template mix_back<Team>(d, q, out_bar, v_bar, w_bar, scratch); });
            },
        .mix_back_q =
            [](index d, const double* q, const double* v, const double* w, const double* out_bar, double* q_bar,
               double* scratch) {
                run_on<Team>([=] { M::template mix_back_q<Team>(d, q, v, w, out_bar, q_bar, scratch); });
            },
        .both_back =
            [](index d, const double* q, const double* v, const double* w, const double* out_bar, double* v_bar,
               double* w_bar, double* q_bar, double* scratch) {
                run_on<Team>([=] {
                    M::template mix_back<Team>(d, q, out_bar, v_bar, w_bar, scratch);
                    M::template mix_back_q<Team>(d, q, v, w, out_bar, q_bar, scratch);
                });
            },
        .compact = nullptr};
    if constexpr (compact_mixer<M>) {
        f.rank = M::rank;
        f.compact = [](index d, const double* q, double* S) {
            run_on<Team>([=] {
                constexpr auto R = static_cast<std::size_t>(M::rank);
                small_array<small_array<double, R>, R> rows;
                M::template compact<Team>(d, q, rows);
                for (std::size_t i = 0; i < R; ++i) std::copy_n(&rows[i][0], R, S + i * R);
            });
        };
    }
    return f;
}

/// Numbers between NaNs: what reads beyond them gets NaN, and what writes beyond them is found.
class fenced {
public:
    explicit fenced(index n, double value = 0)
        : numbers_(static_cast<std::size_t>(n + 2 * fence), std::numeric_limits<double>::quiet_NaN()), size_(n) {
        std::fill_n(data(), n, value);
    }
    /// Normal numbers.
    static fenced random(index n, std::uint64_t stream, double deviation = 1) {
        fenced x(n);
        for (index i = 0; i < n; ++i) x.data()[i] = deviation * random_stream({7}, stream).normal(i);
        return x;
    }
    index size() const { return size_; }
    double* data() { return numbers_.data() + fence; }
    const double* data() const { return numbers_.data() + fence; }
    double& operator[](index i) { return data()[i]; }
    double operator[](index i) const { return data()[i]; }
    operator view<double>() { return {data(), {size_}}; }
    operator view<const double>() const { return {data(), {size_}}; }
    bool whole() const {
        const auto nan = [](double x) { return math::is_nan(x); };
        return std::all_of(numbers_.begin(), numbers_.begin() + fence, nan) &&
               std::all_of(numbers_.end() - fence, numbers_.end(), nan);
    }

private:
    static constexpr index fence = 64;
    std::vector<double> numbers_;
    index size_;
};

/// a x + y
inline fenced sum(double a, const fenced& x, fenced y) {
    for (index i = 0; i < y.size(); ++i) y[i] += a * x[i];
    return y;
}
inline double dot(const fenced& a, const fenced& b) {
    double total = 0;
    for (index i = 0; i < a.size(); ++i) total += a[i] * b[i];
    return total;
}

/// A mixer at one width, with raw and prepared numbers.
class mixer_trial {
public:
    const mixer_functions m;
    const fenced out_bar;     ///< of mix_back and mix_back_q
    std::vector<fenced> raw;  ///< prepare() makes q of it
    fenced q;
    std::vector<std::string> strayed;  ///< functions that wrote beside their arrays

    explicit mixer_trial(mixer_functions functions)
        : m(std::move(functions)), out_bar(fenced::random(m.D, 4)), q(m.size) {
        draw(1, 1);
    }
    /// Other raw numbers.
    void draw(std::uint64_t stream, double deviation) {
        raw.clear();
        for (const index n : m.raw_sizes) raw.push_back(fenced::random(n, stream + 100 * raw.size(), deviation));
        q = prepare();
    }

    fenced prepare(double before = 0, double in_scratch = 0) {
        fenced fresh(m.size, before), scratch(m.prepare_scratch, in_scratch);
        m.prepare(m.D, addresses<const double>(raw).data(), fresh.data(), scratch.data());
        stays("prepare", fresh);
        stays("prepare", scratch);
        return fresh;
    }
    std::vector<fenced> prepare_back(const fenced& q_bar, double before = 0, double in_scratch = 0) {
        std::vector<fenced> bars;
        fenced scratch(m.prepare_scratch, in_scratch);
        for (const fenced& r : raw) bars.emplace_back(r.size(), before);
        m.prepare_back(m.D, addresses<const double>(raw).data(), q.data(), q_bar.data(), addresses<double>(bars).data(),
                       scratch.data());
        for (const fenced& b : bars) stays("prepare_back", b);
        stays("prepare_back", scratch);
        return bars;
    }
    fenced mix(const fenced* v, const fenced* w, double before = 0, double in_scratch = 0) {
        fenced out(m.D, before), scratch(m.scratch, in_scratch);
        m.mix(m.D, q.data(), v ? v->data() : nullptr, w ? w->data() : nullptr, out.data(), scratch.data());
        stays("mix", out);
        stays("mix", scratch);
        return out;
    }
    /// What mix leaves in v, which is out.
    fenced mix_in_place(fenced v, const fenced* w, double in_scratch = 0) {
        fenced scratch(m.scratch, in_scratch);
        m.mix(m.D, q.data(), v.data(), w ? w->data() : nullptr, v.data(), scratch.data());
        return v;
    }
    /// S [R,R]
    fenced compact() {
        fenced S(m.rank * m.rank);
        m.compact(m.D, q.data(), S.data());
        return S;
    }
    /// v̄ and w̄
    std::pair<fenced, fenced> mix_back(bool v = true, bool w = true, double before = 0, double in_scratch = 0) {
        fenced v_bar(m.D, before), w_bar(m.D, before), scratch(m.scratch, in_scratch);
        m.mix_back(m.D, q.data(), out_bar.data(), v ? v_bar.data() : nullptr, w ? w_bar.data() : nullptr,
                   scratch.data());
        for (const fenced* x : {&v_bar, &w_bar, &scratch}) stays("mix_back", *x);
        return {v_bar, w_bar};
    }
    fenced mix_back_q(const fenced* v, const fenced* w, double before = 0, double in_scratch = 0) {
        fenced q_bar(m.size, before), scratch(m.scratch, in_scratch);
        m.mix_back_q(m.D, q.data(), v ? v->data() : nullptr, w ? w->data() : nullptr, out_bar.data(), q_bar.data(),
                     scratch.data());
        stays("mix_back_q", q_bar);
        stays("mix_back_q", scratch);
        return q_bar;
    }
    /// v̄, w̄ and q̄ of mix_back and mix_back_q, which follows it at once.
    std::vector<fenced> both_back(const fenced& v, const fenced& w, double in_scratch) {
        fenced v_bar(m.D), w_bar(m.D), q_bar(m.size), scratch(m.scratch, in_scratch);
        m.both_back(m.D, q.data(), v.data(), w.data(), out_bar.data(), v_bar.data(), w_bar.data(), q_bar.data(),
                    scratch.data());
        return {v_bar, w_bar, q_bar};
    }
    /// Q [D,D], whose column j is Q e_j.
    fenced matrix() {
        fenced Q(m.D * m.D);
        for (index j = 0; j < m.D; ++j) {
            fenced e(m.D);
            e[j] = 1;
            const fenced column = mix(&e, nullptr);
            for (index i = 0; i < m.D; ++i) Q[i * m.D + j] = column[i];
        }
        return Q;
    }

private:
    void stays(const char* function, const fenced& x) {
        if (!x.whole() && std::find(strayed.begin(), strayed.end(), function) == strayed.end())
            strayed.emplace_back(function);
    }
    template <class P, class Arrays>
    static std::vector<P*> addresses(Arrays& arrays) {
        std::vector<P*> all;
        all.reserve(arrays.size());
        for (auto& a : arrays) all.push_back(a.data());
        return all;
    }
};

}  // namespace fprnn::detail
