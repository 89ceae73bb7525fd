#pragma once

#include <fprnn/models/sequence_model.hpp>

#include <memory>

namespace state_tracking {

namespace fp = fprnn;

/// What names a network. The number of reflections and their scale are template arguments of a block, so the values that
/// can be asked for are those that were compiled.
struct architecture {
    enum class block { fp_mamba, fp_rnn, mamba, lstm };

    block kind = block::fp_mamba;
    int reflections = 4;
    int reflection_scale = 1;
    fp::models::model_dims size{};
};

/// A sequence model whose block was chosen at run time. train and evaluate take it as they take the model itself.
class network {
public:
    using real = float;
    using convergence_list = std::vector<fp::solution<real>>;

    virtual ~network() = default;
    virtual fp::parameter_tree<real> init(fp::seed s) const = 0;
    virtual fp::variable operator()(fp::tape<real>& t, fp::view<const std::int32_t> tokens,
                                    convergence_list* how) const = 0;
    virtual fp::tensor<real> evaluate(const fp::parameter_tree<real>& theta, fp::view<const std::int32_t> tokens,
                                      convergence_list* how, fp::eigen backend) const = 0;
    /// The same network, solved in another way.
    virtual std::unique_ptr<network> with(fp::chunked schedule) const = 0;
    virtual bool has_fixed_point() const = 0;
};

/// The network of a block's expression.
template <class Block>
class network_of final : public network {
public:
    explicit network_of(fp::models::sequence_model<Block> model) : model_(std::move(model)) {}

    fp::parameter_tree<real> init(fp::seed s) const override { return model_.template init<real>(s); }
    fp::variable operator()(fp::tape<real>& t, fp::view<const std::int32_t> tokens,
                            convergence_list* how) const override {
        return model_(t, tokens, how);
    }
    fp::tensor<real> evaluate(const fp::parameter_tree<real>& theta, fp::view<const std::int32_t> tokens,
                              convergence_list* how, fp::eigen backend) const override {
        return model_.evaluate(theta, tokens, how, std::move(backend));
    }
    std::unique_ptr<network> with(fp::chunked schedule) const override {
        auto other = std::make_unique<network_of>(model_);
        other->model_.block.schedule = schedule;
        return other;
    }
    bool has_fixed_point() const override { return fp::layer<Block>::has_fixed_point; }

private:
    fp::models::sequence_model<Block> model_;
};

template <class Block>
std::unique_ptr<network> make(Block block, const architecture& a, fp::chunked schedule, fp::adjoint adjoint) {
    return std::make_unique<network_of<Block>>(fp::models::sequence_model(block, a.size, schedule, adjoint));
}

/// Calls make_block<R, Scale>() with the values of `a`, which must be among those below.
template <class MakeBlock>
std::unique_ptr<network> make_mixed(MakeBlock make_block, const architecture& a, fp::chunked schedule,
                                    fp::adjoint adjoint) {
    std::unique_ptr<network> result;
    const auto consider = [&]<int R, int Scale>() {
        if (a.reflections == R && a.reflection_scale == Scale)
            result = make(make_block.template operator()<R, Scale>(), a, schedule, adjoint);
    };
    const auto consider_scales = [&]<int R>() {
        consider.template operator()<R, 1>();
        consider.template operator()<R, 2>();
    };
    consider_scales.template operator()<1>();
    consider_scales.template operator()<2>();
    consider_scales.template operator()<4>();
    consider_scales.template operator()<8>();
    return result;
}

// One source file each, so that they compile side by side.
std::unique_ptr<network> make_fp_mamba(const architecture& a, fp::chunked schedule, fp::adjoint adjoint);
std::unique_ptr<network> make_fp_rnn(const architecture& a, fp::chunked schedule, fp::adjoint adjoint);
std::unique_ptr<network> make_mamba(const architecture& a, fp::chunked schedule, fp::adjoint adjoint);
std::unique_ptr<network> make_lstm(const architecture& a, fp::chunked schedule, fp::adjoint adjoint);

}  // namespace state_tracking
