#pragma once

#include <fprnn/fixed_point/adjoint.hpp>
#include <fprnn/fixed_point/method.hpp>
#include <fprnn/models/sequence_model.hpp>
#include <fprnn/tasks/copying.hpp>
#include <fprnn/train/evaluate.hpp>
#include <fprnn/train/trainer.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace experiment {

namespace fp = fprnn;

/// What names a network. The mixer, the number of reflections and their scale are template arguments of a
/// block, so the values that can be asked for are those that are compiled.
struct architecture {
    enum class block {
        fp_mamba,
        fp_mamba2,
        fp_rnn,
        mamba,
        published_mamba,
        mamba2,
        delta_product,
        deltanet,
        gated_deltanet,
        gated_delta_product,
        lstm,
        mlstm,
        slstm,
        transformer
    };
    enum class mixing { householder, dplr, kronecker, block_diagonal };

    static constexpr int dplr_directions = 4, width_of_blocks = 8, delta_steps = 4, mlstm_rows = 4,
                         convolved_tokens = 4;

    block kind = block::fp_mamba;
    mixing mixer = mixing::householder;
    int reflections = 4;
    int reflection_scale = 1;
    bool convolution = false;  ///< of FP-Mamba
    /// Of FP-Mamba: behind the fixed point, or in it, where it sees u_t alone or y_{t−1}, too.
    enum class gating { outside, inside, inside_seeing_y } gate = gating::outside;
    /// What else than the iterated map sees y_{t−1}, or h_{t−1}: of FP-Mamba with a convolution all of these,
    /// of FP-RNN the mixer.
    struct dependence {
        bool lambda = false, mixer = true, b_c = true;
        bool operator==(const dependence&) const = default;
    } sees_y{};
    fp::models::model_dims size{.heads = 4, .context = 1024};
};

/// Whether the program has networks on a GPU.
#ifdef EXPERIMENT_CUDA
inline constexpr bool has_cuda = true;
#else
inline constexpr bool has_cuda = false;
#endif

/// Where a network is trained and evaluated.
struct machine {
    int threads = 1;  ///< of the CPU
    bool cuda = false;
    int gpu = 0;
    bool tf32 = false;  ///< whether the GPU may shorten the factors of products
};

/// A sequence model whose block, and the machine that it runs on, were chosen at run time.
class network {
public:
    using real = float;
    using parameters = fp::parameter_tree<real>;
    using tokens = fp::view<const std::int32_t>;
    using sampler = std::function<void(fp::view<std::int32_t>, fp::view<std::int32_t>, std::uint64_t)>;
    using observer = std::function<bool(const fp::training_step&)>;

    /// Logits [B,T,classes], and how each block's were found.
    struct answers {
        fp::tensor<real> logits;
        std::vector<fp::convergence> how;
    };

    /// A schedule whose ell_max is drawn for each batch of a training.
    struct drawn_schedule {
        fp::chunked schedule;
        fp::gamma_iterations ell_max{};
    };

    virtual ~network() = default;
    virtual parameters init(fp::seed s) const = 0;
    virtual fp::training_result train(fp::training_state<real>& state, const fp::training_options& options,
                                      const sampler& sample, const observer& observe,
                                      const std::optional<drawn_schedule>& drawn) const = 0;
    virtual fp::evaluation evaluate(const parameters& theta, fp::index length, fp::index sequences,
                                    const sampler& sample) const = 0;
    virtual answers solve(const parameters& theta, tokens x) const = 0;
    /// Of strings that it writes by itself, as generated_copies has them.
    virtual fp::accuracies write_copies(const parameters& theta, const fp::copying_test& test,
                                        fp::index sequences) const = 0;
    /// The same network, solved in another way; by a method that is for the host on the CPU alone.
    virtual std::unique_ptr<network> with(fp::chunked schedule) const = 0;
    virtual std::unique_ptr<network> solved_by(const fp::method& m) const = 0;
    virtual bool has_fixed_point() const = 0;
    /// Such as "2 threads".
    virtual std::string where() const = 0;
};

/// Errors: a machine that is not there.
void require_there(const machine& m);
std::unique_ptr<network> make_network(const architecture& a, fp::chunked schedule, fp::adjoint adjoint,
                                      const machine& on);

}  // namespace experiment
