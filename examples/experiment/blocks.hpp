#pragma once

#include "network.hpp"

#include <algorithm>
#include <utility>

/// Networks from the expressions of their blocks, on any backend.
namespace experiment {

/// A sequence model whose block was chosen at run time. train and evaluate take it as they take the model
/// itself.
template <class Backend>
class blocks {
public:
    using real = network::real;
    using array = typename Backend::template array<real>;
    using solutions = fp::solutions<real, Backend>;
    using carry = fp::models::model_carry<real>;

    virtual ~blocks() = default;
    virtual network::parameters init(fp::seed s) const = 0;
    virtual fp::variable operator()(fp::tape<real, Backend>& t, network::tokens x, solutions* how) const = 0;
    /// From a carry on, on the host.
    virtual fp::variable operator()(fp::tape<real, Backend>& t, network::tokens x, carry& c, solutions* how) const = 0;
    virtual array evaluate(const network::parameters& theta, network::tokens x, solutions* how,
                           Backend backend) const = 0;
    /// From a carry on, which is then where x ends.
    virtual array evaluate(const network::parameters& theta, network::tokens x, fp::models::model_carry<real, array>& c,
                           solutions* how, Backend backend) const = 0;
    virtual std::shared_ptr<const blocks> with(fp::chunked schedule) const = 0;
    virtual std::shared_ptr<const blocks> solved_by(const fp::method& m) const = 0;
    virtual bool has_fixed_point() const = 0;
};

/// Of a block, or of a stack of them.
template <class Backend, class... Blocks>
class blocks_of final : public blocks<Backend> {
public:
    using typename blocks<Backend>::real;
    using typename blocks<Backend>::array;
    using typename blocks<Backend>::solutions;
    using typename blocks<Backend>::carry;

    explicit blocks_of(fp::models::sequence_model<Blocks...> model) : model_(std::move(model)) {}

    network::parameters init(fp::seed s) const override { return model_.template init<real>(s); }
    fp::variable operator()(fp::tape<real, Backend>& t, network::tokens x, solutions* how) const override {
        return model_(t, x, how);
    }
    fp::variable operator()(fp::tape<real, Backend>& t, network::tokens x, carry& c, solutions* how) const override {
        if constexpr (fp::host_memory_backend<Backend, real>)
            return model_(t, x, c, how);
        else
            throw fp::argument_error("a device does not go on from a carry in training");
    }
    array evaluate(const network::parameters& theta, network::tokens x, solutions* how,
                   Backend backend) const override {
        return model_.evaluate(theta, x, how, std::move(backend));
    }
    array evaluate(const network::parameters& theta, network::tokens x, fp::models::model_carry<real, array>& c,
                   solutions* how, Backend backend) const override {
        return model_.evaluate(theta, x, c, how, std::move(backend));
    }
    std::shared_ptr<const blocks<Backend>> with(fp::chunked schedule) const override {
        return changed([&](auto& block) { block.schedule = schedule; });
    }
    std::shared_ptr<const blocks<Backend>> solved_by(const fp::method& m) const override {
        return changed([&](fp::method& of_block) { of_block = m; });
    }
    bool has_fixed_point() const override { return (fp::layer<Blocks>::has_fixed_point || ...); }

private:
    template <class Change>
    std::shared_ptr<const blocks<Backend>> changed(Change change) const {
        auto other = std::make_shared<blocks_of>(model_);
        [&]<std::size_t... i>(std::index_sequence<i...>) { (change(other->model_.template block<i>()), ...); }
        (std::index_sequence_for<Blocks...>());
        return other;
    }

    fp::models::sequence_model<Blocks...> model_;
};

template <class Backend>
using blocks_on = std::shared_ptr<const blocks<Backend>>;

template <class Backend, class Block>
blocks_on<Backend> make(Block block, const architecture& a, fp::chunked schedule, fp::adjoint adjoint) {
    return std::make_shared<blocks_of<Backend, Block>>(fp::models::sequence_model(block, a.size, schedule, adjoint));
}
template <class Backend, class... Blocks>
blocks_on<Backend> make(fp::models::stack_of<Blocks...> stack, const architecture& a, fp::chunked schedule,
                        fp::adjoint adjoint) {
    return std::make_shared<blocks_of<Backend, Blocks...>>(
        fp::models::sequence_model(stack, a.size, schedule, adjoint));
}

/// Of make_block(mixer) with the mixer of `a`, which is `dplr` where that is asked for; null when it is not
/// among the compiled.
template <class Backend, class MakeBlock, class Dplr>
blocks_on<Backend> make_mixed(MakeBlock make_block, Dplr dplr, const architecture& a, fp::chunked schedule,
                              fp::adjoint adjoint) {
    blocks_on<Backend> result;
    const auto use = [&](auto mixer) { result = make<Backend>(make_block(mixer), a, schedule, adjoint); };
    const auto consider = [&]<int R, int Scale>() {
        if (a.reflections == R && a.reflection_scale == Scale) use(fp::householder<R, "Q", Scale>);
    };
    const auto consider_all = [&]<int... R>(std::integer_sequence<int, R...>) {
        (consider.template operator()<R, 1>(), ...);
        (consider.template operator()<R, 2>(), ...);
    };
    switch (a.mixer) {
        case architecture::mixing::householder: consider_all(std::integer_sequence<int, 1, 2, 4, 8>{}); break;
        case architecture::mixing::dplr: use(dplr); break;
        case architecture::mixing::kronecker: use(fp::kronecker); break;
        case architecture::mixing::block_diagonal: use(fp::block_diagonal<architecture::width_of_blocks>); break;
    }
    return result;
}

/// As fp::train takes a model: each `micro_batches` of its calls are of a batch, from `first` on, whose
/// ell_max is drawn.
template <class Backend>
class blocks_of_batches {
public:
    blocks_of_batches(blocks_on<Backend> b, const network::drawn_schedule& drawn, fp::index first,
                      fp::index micro_batches)
        : blocks_(std::move(b)), drawn_(drawn), first_(first), micro_batches_(micro_batches) {}

    fp::variable operator()(fp::tape<network::real, Backend>& t, network::tokens x,
                            typename blocks<Backend>::solutions* how) const {
        draw();
        return (*now_)(t, x, how);
    }
    fp::variable operator()(fp::tape<network::real, Backend>& t, network::tokens x, typename blocks<Backend>::carry& c,
                            typename blocks<Backend>::solutions* how) const {
        draw();
        return (*now_)(t, x, c, how);
    }

private:
    void draw() const {
        fp::chunked schedule = drawn_.schedule;
        schedule.ell_max = drawn_.ell_max.at(static_cast<std::uint64_t>(first_ + calls_++ / micro_batches_)).most;
        now_ = blocks_->with(schedule);  // the tape refers to it until the next call
    }

    blocks_on<Backend> blocks_;
    network::drawn_schedule drawn_;
    fp::index first_, micro_batches_;
    mutable fp::index calls_ = 0;
    mutable blocks_on<Backend> now_{};
};

template <class Backend>
class network_on final : public network {
public:
    network_on(blocks_on<Backend> b, Backend backend, std::string where)
        : blocks_(std::move(b)), backend_(std::move(backend)), where_(std::move(where)) {}

    parameters init(fp::seed s) const override { return blocks_->init(s); }
    fp::training_result train(fp::training_state<real>& state, const fp::training_options& options,
                              const sampler& sample, const observer& observe,
                              const std::optional<drawn_schedule>& drawn) const override {
        if (drawn)
            return fp::train(blocks_of_batches<Backend>(blocks_, *drawn, state.steps, options.micro_batches), state,
                             options, sample, observe, backend_);
        return fp::train(*blocks_, state, options, sample, observe, backend_);
    }
    fp::evaluation evaluate(const parameters& theta, fp::index length, fp::index sequences,
                            const sampler& sample) const override {
        return fp::evaluate(*blocks_, theta, length, sequences, sample, backend_);
    }
    answers solve(const parameters& theta, tokens x) const override {
        typename blocks<Backend>::solutions how;
        const auto logits = blocks_->evaluate(theta, x, &how, backend_);
        answers all{fp::tensor<real>(logits.shape()), {how.begin(), how.end()}};
        const auto seen = backend_.seen(logits.size(), logits.data());
        std::copy_n(&seen[0], logits.size(), all.logits.data());
        return all;
    }
    fp::accuracies write_copies(const parameters& theta, const fp::copying_test& test,
                                fp::index sequences) const override {
        return fp::generated_copies(*blocks_, theta, test, sequences, backend_);
    }
    std::unique_ptr<network> with(fp::chunked schedule) const override {
        return std::make_unique<network_on>(blocks_->with(schedule), backend_, where_);
    }
    std::unique_ptr<network> solved_by(const fp::method& m) const override {
        return std::make_unique<network_on>(blocks_->solved_by(m), backend_, where_);
    }
    bool has_fixed_point() const override { return blocks_->has_fixed_point(); }
    std::string where() const override { return where_; }

private:
    blocks_on<Backend> blocks_;
    Backend backend_;
    std::string where_;
};

}  // namespace experiment
