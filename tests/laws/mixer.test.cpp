#include "../../examples/own_mixer/rotation.hpp"
#include "../../examples/own_mixer/rotation_matrix.hpp"

#include <fprnn/mixers/check_mixer.hpp>
#include <fprnn/mixers/householder.hpp>

#include <doctest/doctest.h>

/// The laws of mixers. A new mixer is one line in FPRNN_MIXERS and its definition as a dense matrix, in `law`.
namespace {

using fprnn::index;
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

/// The mixer of the tutorial.
template <int K>
struct law<rotation_mixer<K>> {
    static constexpr auto dense = rotation_matrix;
};

/// law<M>::norm_at_most_one = false where ‖Q‖ ≤ 1 does not hold. ‖I − Q‖₂ has no such law: it exceeds 1.
template <class M>
constexpr bool norm_at_most_one() {
    if constexpr (requires { law<M>::norm_at_most_one; })
        return law<M>::norm_at_most_one;
    else
        return true;
}

template <class M, class Team>
struct on {
    static fprnn::mixer_verdict verdict() {
        return fprnn::check_mixer<M, Team>(
            {.dense = law<M>::dense, .norm_at_most_one = norm_at_most_one<M>(), .rounding = 4e-15});
    }
};

#define FPRNN_MIXERS(team)                                                                  \
    on<fprnn::householder_mixer<1, 1>, team>, on<fprnn::householder_mixer<2, 1>, team>,     \
        on<fprnn::householder_mixer<4, 1>, team>, on<fprnn::householder_mixer<1, 2>, team>, \
        on<fprnn::householder_mixer<4, 2>, team>, on<rotation_mixer<1>, team>, on<rotation_mixer<9>, team>

TEST_CASE_TEMPLATE("mixer: the laws", Subject, FPRNN_MIXERS(fprnn::serial_team<double>),
                   FPRNN_MIXERS(fprnn::pack_team<double>)) {
    const auto verdict = Subject::verdict();
    CHECK_MESSAGE(verdict.ok(), verdict.to_string());
}

}  // namespace
