#include "../../examples/own_mixer/rotation.hpp"

#include <fprnn/mixers/householder.hpp>

#include <ops/checks.hpp>

/// The laws of mixers. A new mixer is one line in FPRNN_MIXERS and its definition as a dense matrix, in `law`.
namespace {

using checks::random;
using fprnn::index;
using fprnn::shape;
using fprnn::tensor;

template <class M>
struct law;

/// Q = Π_i (I − α_i ū_i ū_iᵀ), reflection 0 first, ū_i = SiLU(u_i)/max(‖SiLU(u_i)‖, 1e-5), α_i = Scale · σ(a_i)
template <int R, int Scale>
struct law<fprnn::householder_mixer<R, Scale>> {
    static tensor<double> dense(index D, const std::vector<tensor<double>>& raw) {
        tensor<double> Q({D, D});
        for (index d = 0; d < D; ++d) Q(d, d) = 1;
        for (index i = 0; i < R; ++i) {
            std::vector<double> u(static_cast<std::size_t>(D));
            double squares = 0;
            for (index d = 0; d < D; ++d) {
                const double x = raw[0][i * D + d], s = x / (1 + std::exp(-x));
                u[static_cast<std::size_t>(d)] = s;
                squares += s * s;
            }
            for (double& x : u) x /= std::max(std::sqrt(squares), 1e-5);
            const double alpha = Scale / (1 + std::exp(-raw[1][i]));
            tensor<double> next({D, D});
            for (index r = 0; r < D; ++r)
                for (index c = 0; c < D; ++c) {
                    next(r, c) = Q(r, c);
                    for (index k = 0; k < D; ++k)
                        next(r, c) -= alpha * u[static_cast<std::size_t>(r)] * u[static_cast<std::size_t>(k)] * Q(k, c);
                }
            Q = next;
        }
        return Q;
    }
};

/// The mixer of the tutorial: blocks [cos a, −sin a; sin a, cos a], a = tanh(r)/2.
template <int K>
struct law<rotation_mixer<K>> {
    static tensor<double> dense(index D, const std::vector<tensor<double>>& raw) {
        tensor<double> Q({D, D});
        for (index d = 0; d < D; ++d) {
            const double a = std::tanh(raw[0][d / 2]) / 2, sign = d % 2 ? 1 : -1;
            Q(d, d) = std::cos(a);
            Q(d, d % 2 ? d - 1 : d + 1) = sign * std::sin(a);
        }
        return Q;
    }
};

template <class M, class Team>
struct subject {
    index D;
    std::vector<tensor<double>> raw;
    tensor<double> q;

    subject(index channels, std::uint64_t stream) : D(channels), q({M::size(channels)}) {
        for (index n : M::raw_sizes(D)) raw.push_back(random<double>({n}, stream + 100 * raw.size()));
        prepare();
    }
    void prepare() {
        std::vector<const double*> at;
        for (const auto& r : raw) at.push_back(r.data());
        M::template prepare<Team, double>(D, at.data(), q.data());
    }
    std::vector<tensor<double>> prepare_back(const tensor<double>& q_bar) const {
        std::vector<const double*> at;
        std::vector<tensor<double>> bars;
        std::vector<double*> bars_at;
        for (const auto& r : raw) at.push_back(r.data()), bars.emplace_back(r.shape());
        for (auto& b : bars) bars_at.push_back(b.data());
        M::template prepare_back<Team, double>(D, at.data(), q_bar.data(), bars_at.data());
        return bars;
    }
    tensor<double> mix(const double* v, const double* w) const {
        tensor<double> out(shape{D}), scratch({M::scratch(D)});
        M::template mix<Team, double>(D, q.data(), v, w, out.data(), scratch.data());
        return out;
    }
    tensor<double> Q(const tensor<double>& v) const { return mix(v.data(), nullptr); }
    tensor<double> transposed(const tensor<double>& g) const {
        tensor<double> v_bar(shape{D}), scratch({M::scratch(D)});
        M::template mix_back<Team, double>(D, q.data(), g.data(), v_bar.data(), nullptr, scratch.data());
        return v_bar;
    }
    tensor<double> mix_back_q(const double* v, const double* w, const tensor<double>& g) const {
        tensor<double> q_bar(q.shape()), scratch({M::scratch(D)});
        M::template mix_back_q<Team, double>(D, q.data(), v, w, g.data(), q_bar.data(), scratch.data());
        return q_bar;
    }
};

tensor<double> operator+(tensor<double> a, const tensor<double>& b) {
    for (index i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
}
tensor<double> operator*(double s, tensor<double> a) {
    for (double& x : a) x *= s;
    return a;
}
tensor<double> operator-(const tensor<double>& a, const tensor<double>& b) { return a + -1.0 * b; }

/// Sums of D numbers of order one.
double distance(const tensor<double>& a, const tensor<double>& b) {
    double largest = 0;
    for (index i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
    return largest;
}
constexpr double rounding = 4e-15;

/// Widths below, at and above a register, of those that the mixer accepts.
template <class M>
std::vector<index> widths() {
    std::vector<index> accepted{1, 2, 3, 4, 8, 17, 18};
    if constexpr (requires { M::check(index{}); })
        std::erase_if(accepted, [](index D) {
            try {
                M::check(D);
                return false;
            } catch (const fprnn::argument_error&) {
                return true;
            }
        });
    REQUIRE(!accepted.empty());
    return accepted;
}

/// law<M>::norm_at_most_one = false where ‖Q‖ ≤ 1 does not hold.
template <class M>
constexpr bool norm_at_most_one() {
    if constexpr (requires { law<M>::norm_at_most_one; })
        return law<M>::norm_at_most_one;
    else
        return true;
}

template <class M, class Team>
void mixing_laws() {
    for (index D : widths<M>()) {
        const subject<M, Team> s(D, 1);
        const auto v = random<double>({D}, 2), w = random<double>({D}, 3), g = random<double>({D}, 4);
        const auto Q = law<M>::dense(D, s.raw);

        INFO("D = " << D);
        const auto both = s.mix(v.data(), w.data());
        CHECK(distance(both, s.Q(v) + s.mix(nullptr, w.data())) <= rounding);  // Q v + (I − Q) w
        CHECK(distance(both, w + s.Q(v - w)) <= rounding);                     // = w + Q (v − w)
        CHECK(distance(s.mix(v.data(), v.data()), v) <= rounding);
        CHECK(distance(s.mix(nullptr, nullptr), tensor<double>(shape{D})) == 0);
        CHECK(distance(s.Q(v + 0.5 * w), s.Q(v) + 0.5 * s.Q(w)) <= rounding);

        tensor<double> Qv(shape{D}), Qtg(shape{D});
        for (index r = 0; r < D; ++r)
            for (index c = 0; c < D; ++c) {
                Qv[r] += Q(r, c) * v[c];
                Qtg[c] += Q(r, c) * g[r];
            }
        CHECK(distance(s.Q(v), Qv) <= rounding);
        CHECK(distance(s.mix(nullptr, v.data()), v - Qv) <= rounding);
        CHECK(distance(s.transposed(g), Qtg) <= rounding);
        CHECK(std::abs(checks::dot(s.Q(v), g) - checks::dot(v, s.transposed(g))) <= 4 * rounding);

        auto in_place = v;  // the output may be an input
        tensor<double> scratch({M::scratch(D)});
        M::template mix<Team, double>(D, s.q.data(), in_place.data(), w.data(), in_place.data(), scratch.data());
        CHECK(checks::same_bits(in_place, both));
    }
}

template <class M, class Team>
void gradient_laws() {
    for (index D : widths<M>()) {
        subject<M, Team> s(D, 1);
        auto v = random<double>({D}, 2), w = random<double>({D}, 3);
        const auto g = random<double>({D}, 4), q_bar = random<double>({M::size(D)}, 5);
        INFO("D = " << D);

        tensor<double> v_bar(shape{D}), w_bar(shape{D}), scratch({M::scratch(D)});
        M::template mix_back<Team, double>(D, s.q.data(), g.data(), v_bar.data(), w_bar.data(), scratch.data());
        const auto mixed = s.mix_back_q(v.data(), w.data(), g);
        checks::check_gradients(fprnn::gradcheck([&] { return checks::dot(s.mix(v.data(), w.data()), g); },
                                                 {{"v", v, v_bar}, {"w", w, w_bar}, {"q", s.q, mixed}}));
        checks::check_gradients(fprnn::gradcheck([&] { return checks::dot(s.mix(v.data(), nullptr), g); },
                                                 {{"q, no w", s.q, s.mix_back_q(v.data(), nullptr, g)}}));
        checks::check_gradients(fprnn::gradcheck([&] { return checks::dot(s.mix(nullptr, w.data()), g); },
                                                 {{"q, no v", s.q, s.mix_back_q(nullptr, w.data(), g)}}));

        const auto raw_bars = s.prepare_back(q_bar);
        std::vector<fprnn::gradcheck_input> inputs;
        for (std::size_t k = 0; k < s.raw.size(); ++k)
            inputs.push_back({"raw[" + std::to_string(k) + "]", s.raw[k], raw_bars[k]});
        checks::check_gradients(fprnn::gradcheck(
            [&] {
                s.prepare();
                return checks::dot(s.q, q_bar);
            },
            inputs, {.step = D == 1 ? 1e-4 : 1e-3}));  // a single channel's ū is the sign of u, with a kink at 0
    }
}

template <class M, class Team>
void accumulation_laws() {
    const index D = widths<M>().back();
    const subject<M, Team> s(D, 1);
    const auto v = random<double>({D}, 2), w = random<double>({D}, 3), g = random<double>({D}, 4);
    const auto ten = [](tensor<double> x) {
        x.fill(10);
        return x;
    };
    tensor<double> v_bar(shape{D}), w_bar(shape{D}), scratch({M::scratch(D)});
    M::template mix_back<Team, double>(D, s.q.data(), g.data(), v_bar.data(), w_bar.data(), scratch.data());
    auto v_more = ten(v_bar), w_more = ten(w_bar);
    M::template mix_back<Team, double>(D, s.q.data(), g.data(), v_more.data(), nullptr, scratch.data());
    M::template mix_back<Team, double>(D, s.q.data(), g.data(), nullptr, w_more.data(), scratch.data());
    checks::check_added_to_ten(v_more, v_bar);
    checks::check_added_to_ten(w_more, w_bar);

    auto q_more = ten(s.q);
    M::template mix_back_q<Team, double>(D, s.q.data(), v.data(), w.data(), g.data(), q_more.data(), scratch.data());
    checks::check_added_to_ten(q_more, s.mix_back_q(v.data(), w.data(), g));

    std::vector<const double*> at;
    std::vector<tensor<double>> more;
    std::vector<double*> more_at;
    for (const auto& r : s.raw) at.push_back(r.data()), more.push_back(ten(r));
    for (auto& b : more) more_at.push_back(b.data());
    M::template prepare_back<Team, double>(D, at.data(), s.q.data(), more_at.data());
    const auto once = s.prepare_back(s.q);
    for (std::size_t k = 0; k < once.size(); ++k) checks::check_added_to_ten(more[k], once[k]);
}

/// I − Q = U S Uᵀ with S lower triangular, for mixers that say so.
template <class M, class Team>
void compact_law() {
    if constexpr (fprnn::compact_mixer<M>)
        for (index D : widths<M>()) {
            const subject<M, Team> s(D, 1);
            constexpr auto R = static_cast<std::size_t>(M::rank);
            fprnn::small_array<fprnn::small_array<double, R>, R> S;
            M::template compact<Team>(D, s.q.data(), S);
            tensor<double> U({M::rank, D});
            std::copy_n(s.q.data(), U.size(), U.data());
            const auto Q = law<M>::dense(D, s.raw);
            INFO("D = " << D);
            for (index r = 0; r < D; ++r)
                for (index c = 0; c < D; ++c) {
                    double sum = r == c ? -1 : 0;
                    for (index i = 0; i < M::rank; ++i)
                        for (index j = 0; j <= i; ++j)
                            sum += U(i, r) * S[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] * U(j, c);
                    CHECK(std::abs(sum + Q(r, c)) <= rounding);
                }
            for (std::size_t i = 0; i < R; ++i)
                for (std::size_t j = i + 1; j < R; ++j) CHECK(S[i][j] == 0);
        }
}

/// ‖Q‖₂ ≤ 1, by power iteration on QᵀQ, also for reflections at their limit. ‖I − Q‖₂ has no such law: it exceeds 1.
template <class M, class Team>
void norm_law() {
    for (index D : widths<M>())
        for (std::uint64_t stream : {1U, 2U, 3U}) {
            subject<M, Team> s(D, stream);
            for (auto& r : s.raw) r = 3.0 * r;
            s.prepare();
            auto x = random<double>({D}, 7);
            for (int i = 0; i < 200; ++i) {
                x = s.transposed(s.Q(x));
                x = (1 / std::max(std::sqrt(checks::dot(x, x)), 1e-300)) * x;
            }
            const auto y = s.Q(x);
            CHECK(std::sqrt(checks::dot(y, y)) <= 1 + 1e-14);
        }
}

template <class M, class Team>
struct on {
    static void all() {
        SUBCASE(
            "mixing: Q v + (I − Q) w = w + Q (v − w), linear, the dense matrix of the definition and its transpose") {
            mixing_laws<M, Team>();
        }
        SUBCASE("gradients: v, w, the prepared and the raw numbers agree with central differences") {
            gradient_laws<M, Team>();
        }
        SUBCASE("adjoints accumulate") { accumulation_laws<M, Team>(); }
        SUBCASE("compact form: I − Q = U S Uᵀ") { compact_law<M, Team>(); }
        if constexpr (norm_at_most_one<M>()) {
            SUBCASE("norm: ‖Q‖ ≤ 1") { norm_law<M, Team>(); }
        }
    }
};

#define FPRNN_MIXERS(team)                                                                  \
    on<fprnn::householder_mixer<1, 1>, team>, on<fprnn::householder_mixer<2, 1>, team>,     \
        on<fprnn::householder_mixer<4, 1>, team>, on<fprnn::householder_mixer<1, 2>, team>, \
        on<fprnn::householder_mixer<4, 2>, team>, on<rotation_mixer<1>, team>, on<rotation_mixer<9>, team>

TEST_CASE_TEMPLATE("mixer: the laws", Subject, FPRNN_MIXERS(fprnn::serial_team<double>),
                   FPRNN_MIXERS(fprnn::pack_team<double>)) {
    Subject::all();
}

}  // namespace
