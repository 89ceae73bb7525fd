#pragma once

#include <fprnn/core/tensor.hpp>
#include <fprnn/operations/work.hpp>

#include <algorithm>
#include <memory>
#include <vector>

namespace fprnn {

/// How a sequence's iteration ended; a sequence of several chunks has the worst of theirs, and one that diverged stays
/// `diverged` when later chunks overflow. Not converging is data.
enum class status {
    converged,       ///< the residual fell below the tolerance in every chunk
    max_iterations,  ///< ℓ_max was reached while steps still shrank
    diverged,   ///< they overflowed, or ℓ_max was reached and the largest step of its last quarter was not 1 % below
                ///< that of the quarter before: an orbit, say
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

/// What the iteration did with each sequence.
struct convergence {
    std::vector<fprnn::status> status;
    std::vector<int> iterations;          ///< ℓ, the largest over the sequence's chunks
    std::vector<index> total_iterations;  ///< summed over the chunks
    std::vector<double> residual;         ///< at the last evaluation, the largest over the chunks
    std::vector<index> tokens_converged;  ///< tokens whose chunk converged

    explicit convergence(index sequences = 0) { begin(sequences); }

    /// Nothing has been iterated yet.
    void begin(index sequences) {
        const auto n = static_cast<std::size_t>(sequences);
        status.assign(n, fprnn::status::converged);
        iterations.assign(n, 0);
        total_iterations.assign(n, 0);
        residual.assign(n, 0);
        tokens_converged.assign(n, 0);
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

}  // namespace fprnn
