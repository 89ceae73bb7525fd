#pragma once

#include <fprnn/core/shape.hpp>

#include <functional>
#include <optional>
#include <string>

namespace fprnn {

/// What one step measured, on its batch and before its update.
struct training_step {
    index step = 0;                ///< counted from 1
    index length = 0;              ///< tokens a sequence
    index sequences = 0;           ///< that the training has seen, or begun, this step's among them
    double loss = 0;               ///< nats per token, or the mean square of real targets
    double token_accuracy = 0;     ///< share of tokens, in [0,1]; 0 of real targets
    double sequence_accuracy = 0;  ///< share of sequences, or windows, without a mistake, in [0,1]; 0 of real targets
    std::optional<double> iterations{};       ///< median over sequences and layers; none without a fixed point
    std::optional<double> share_converged{};  ///< of the tokens
    /// Of the adjoint's solves; none without a fixed point, and none where no equation is solved: `implicit`
    /// alone solves one. A token that is solved directly counts as one iteration.
    std::optional<double> adjoint_iterations{};
    std::optional<double> adjoint_share_converged{};
    double learning_rate = 0;
    double gradient_norm = 0;  ///< before clipping
    double seconds = 0;        ///< of training so far
    double done = 0;           ///< share of the training that is over, by steps or by time, in [0,1]
    /// Brings parameters and state here, as they are after this step, from a backend with memory of its own.
    /// Elsewhere they are. To be called while the step is observed.
    std::function<void()> fetch{};
};

enum class training_end {
    steps,       ///< all of them
    time_limit,  ///< the time ran out
    stopped,     ///< the observer said so
    nonfinite,   ///< the loss, a gradient or a parameter was not finite
};

struct training_result {
    training_end end = training_end::steps;
    index steps = 0;  ///< updates that the parameters have seen
    double seconds = 0;
    std::string message;  ///< names step and parameter when something was not finite
};

}  // namespace fprnn
