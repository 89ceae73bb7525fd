#pragma once

#include <fprnn/backend/default.hpp>
#include <fprnn/core/host_device.hpp>
#include <fprnn/core/tensor.hpp>
#include <fprnn/operations/work.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

namespace fprnn {

/// How a sequence's iteration ended; a sequence of several chunks has the worst of theirs, and one that
/// diverged stays `diverged` when later chunks overflow. A sequence that does not converge is reported so;
/// nothing is thrown.
enum class status {
    converged,       ///< the residual fell below the tolerance in every chunk
    max_iterations,  ///< ℓ_max was reached while steps still shrank, or a `share` of the batch had enough
    /// The iterates overflowed, or ℓ_max was reached and the largest step of its last quarter was not 1 %
    /// below that of the quarter before: an orbit, say.
    diverged,
    nonfinite,  ///< the first evaluation already held NaN or infinity
};

inline const char* to_string(status s) {
    switch (s) {
        case status::converged: return "converged";
        case status::max_iterations: return "max_iterations";
        case status::diverged: return "diverged";
        case status::nonfinite: return "nonfinite";
    }
    return "";
}

namespace detail {
/// `all` becomes `one` where that is worse; what overflows behind a chunk that diverged is its doing.
FPRNN_BOTH inline void worsen(status& all, status one) {
    if (all != status::diverged && all < one) all = one;
}
}  // namespace detail

/// What the iteration did with each sequence. Of an expression with several fixed points the numbers are
/// those of all their chunks together: the worst status, `diverged` where one of them diverged, the largest
/// ℓ, the sum of all, the largest residual; but the tokens that converged are those of the fixed point with
/// the fewest.
struct convergence {
    std::vector<fprnn::status> status;
    std::vector<int> iterations;          ///< ℓ, the largest over the sequence's chunks
    std::vector<index> total_iterations;  ///< summed over the chunks
    std::vector<double> residual;         ///< at the last evaluation, the largest over the chunks
    std::vector<index> tokens_converged;  ///< tokens whose chunk converged
    /// Each fixed point's own, in the order in which they are solved; empty where the expression has one or
    /// none.
    std::vector<convergence> fixed_points;

    explicit convergence(index sequences = 0) { begin(sequences); }

    /// Nothing has been iterated yet.
    void begin(index sequences, std::size_t of_fixed_points = 1) {
        const auto n = static_cast<std::size_t>(sequences);
        status.assign(n, fprnn::status::converged);
        iterations.assign(n, 0);
        total_iterations.assign(n, 0);
        residual.assign(n, 0);
        tokens_converged.assign(n, 0);
        fixed_points.resize(of_fixed_points > 1 ? of_fixed_points : 0);
        for (convergence& one : fixed_points) one.begin(sequences);
    }
    /// The numbers of all fixed points together from each one's own, for some of the sequences. Nothing where
    /// there are not several.
    void join_fixed_points(index first, index sequences) {
        for (auto b = static_cast<std::size_t>(first); b < static_cast<std::size_t>(first + sequences); ++b)
            for (const convergence& one : fixed_points) {
                const bool is_first = &one == fixed_points.data();
                // What overflowed poisons the fixed points that read it, or that it reads on the way back.
                if (is_first || one.status[b] == fprnn::status::diverged ||
                    (status[b] != fprnn::status::diverged && status[b] < one.status[b]))
                    status[b] = one.status[b];
                iterations[b] = std::max(is_first ? 0 : iterations[b], one.iterations[b]);
                total_iterations[b] = (is_first ? 0 : total_iterations[b]) + one.total_iterations[b];
                residual[b] = std::max(is_first ? 0 : residual[b], one.residual[b]);
                tokens_converged[b] =
                    is_first ? one.tokens_converged[b] : std::min(tokens_converged[b], one.tokens_converged[b]);
            }
    }

    bool all_converged() const {
        return std::all_of(status.begin(), status.end(), [](auto s) { return s == fprnn::status::converged; });
    }
};

/// What a layer returns, in tensors of the machine that it ran on.
template <class T, class Tensor = tensor<T>, class Carry = Tensor>
struct solution : convergence {
    Tensor value;        ///< [B,T,width]; empty when it stands on a tape
    Carry carry;         ///< [B, numbers that the next call needs to go on]
    work_counters work;  ///< summed over tiles
    /// On a tape: how the adjoint was solved, for no sequences until the tape goes back.
    std::shared_ptr<const convergence> adjoint;
};

/// What a model says of its layers, a solution of each.
template <class T, class Backend = default_backend, class X = T>
using solutions = std::vector<solution<T, typename Backend::template array<X>, typename Backend::template array<T>>>;

}  // namespace fprnn
