#pragma once

#include <fprnn/fixed_point/layer.hpp>
#include <fprnn/models/model_on.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace fprnn::detail {
template <class Block>
inline constexpr bool keeps_width = true;  // of what is no expression the layer says so
template <expression Block>
inline constexpr bool keeps_width<Block> =
    std::is_same_v<typename Block::width, d_in> || std::is_same_v<typename Block::width, d_out>;  // d_model, too
}  // namespace fprnn::detail

namespace fprnn::models {

/// Blocks one behind the other, each with parameters of its own: stack(fp_mamba<4>(), transformer()).
template <class... Blocks>
struct stack_of {};
template <class... Blocks>
constexpr auto stack(Blocks...) {
    static_assert(sizeof...(Blocks) >= 1, "stack(blocks...): there must be at least 1 block");
    static_assert((expression<Blocks> && ...), "stack(blocks...): a block is an expression, such as fp_mamba<4>()");
    return stack_of<Blocks...>{};
}

/// Embedding, `layers` times a block or a stack of different ones, a final norm and a head. Parameters:
/// "embedding", "blocks.0.…", "head.…".
///
///     sequence_model model(fp_mamba<4>(), {.vocabulary = V, .classes = V, .layers = 2});
///     sequence_model other(stack(fp_mamba<4>(), lstm()), {.vocabulary = V, .classes = V});
///     other.block<1>().schedule.length = 1;
template <class... Blocks>
class sequence_model {
    static_assert((detail::keeps_width<Blocks> && ...),
                  "sequence_model: a block has as many channels as its input, d_in: in + linear<\"out\", d_in>(...)");

public:
    /// An argument that converts instead of deducing.
    template <class A>
    using same = std::type_identity_t<A>;

    head_layer head{head_expression()};
    model_dims size;

    sequence_model(Blocks... expressions, model_dims sizes, chunked schedule = {}, adjoint a = implicit{})
        : size(sizes), blocks_(layer<Blocks>(expressions, schedule, a)...) {
        size.validate();
    }
    sequence_model(stack_of<Blocks...>, model_dims sizes, chunked schedule = {}, adjoint a = implicit{})
        : sequence_model(Blocks{}..., sizes, schedule, a) {}

    /// Tokens that a sequence may have, all windows of it together: `context` where a block attends.
    index most_tokens() const {
        const bool attends = (layer<Blocks>::nodes.contains(graph::kind::attention) || ...);
        return attends ? size.context : std::numeric_limits<index>::max();
    }

    /// Block i of the stack: its schedule, solver, stop and adjoint may be changed.
    template <std::size_t i = 0>
    auto& block() {
        return std::get<i>(blocks_);
    }
    template <std::size_t i = 0>
    const auto& block() const {
        return std::get<i>(blocks_);
    }

    /// All parameters; each starts from its name, its shape and the seed. Errors: a size out of its range, or
    /// that a block refuses.
    template <class T>
    parameter_tree<T> init(seed s) const {
        static constexpr std::array<graph::view, sizeof...(Blocks)> stack{layer<Blocks>::nodes...};
        return models::init<T>(size, stack, size.tied ? final_norm_layer::nodes : head_layer::nodes, s);
    }

    /// Logits [B,T,classes] on the tape, of tokens [B,T] in [0, vocabulary). `how`, when given, receives the
    /// convergence of every block. Errors: shapes, a token outside, parameters of another model.
    template <class T, backend_for<T> Backend, class X>
    variable operator()(tape<T, Backend, X>& t, view<const std::int32_t> tokens,
                        same<solutions<T, Backend, X>>* how = nullptr) const {
        return (*this)(t, tokens, all_tokens, how);
    }
    /// The same of sequences of unequal lengths: the logits behind their ends are zero, and whatever stands
    /// among the tokens there is not looked at. A loss does not count them where the targets are
    /// ignored_target. Errors: not B numbers of [0,T].
    template <class T, backend_for<T> Backend, class X>
    variable operator()(tape<T, Backend, X>& t, view<const std::int32_t> tokens, fprnn::lengths n,
                        same<solutions<T, Backend, X>>* how = nullptr) const {
        const auto stack = stack_on<T, Backend, X>();
        return model_on<T, Backend, X>{size, stack, head_on<T, Backend, X>()}.record_on(t, tokens, n, how);
    }

    /// The same from `carry` on, which is then where these tokens end, on the CPU: a window of longer
    /// sequences. Gradients end where it begins. Errors: as those of evaluate from a carry.
    template <class T, host_memory_backend<T> Backend>
    variable operator()(tape<T, Backend>& t, view<const std::int32_t> tokens, model_carry<T>& carry,
                        same<solutions<T, Backend>>* how = nullptr) const {
        const auto stack = stack_on<T, Backend, T>();
        return model_on<T, Backend>{size, stack, head_on<T, Backend, T>()}.record_on(t, tokens, all_tokens, how,
                                                                                     &carry);
    }

    /// The same of real inputs [B,T,inputs], of a model that has such, on the CPU.
    template <class T, host_memory_backend<T> Backend>
    variable operator()(tape<T, Backend>& t, same<view<const T>> x, same<solutions<T, Backend>>* how = nullptr) const {
        return (*this)(t, x, all_tokens, how);
    }
    template <class T, host_memory_backend<T> Backend>
    variable operator()(tape<T, Backend>& t, same<view<const T>> x, model_carry<T>& carry,
                        same<solutions<T, Backend>>* how = nullptr) const {
        const auto stack = stack_on<T, Backend, T>();
        return model_on<T, Backend>{size, stack, head_on<T, Backend, T>()}.record_on(
            t, reader_.template on<T, Backend>(), x, all_tokens, how, &carry);
    }
    template <class T, host_memory_backend<T> Backend>
    variable operator()(tape<T, Backend>& t, same<view<const T>> x, fprnn::lengths n,
                        same<solutions<T, Backend>>* how = nullptr) const {
        const auto stack = stack_on<T, Backend, T>();
        return model_on<T, Backend>{size, stack, head_on<T, Backend, T>()}.record_on(
            t, reader_.template on<T, Backend>(), x, n, how);
    }

    /// Logits [B,T,classes] without a tape, in a tensor of the backend, of tokens [B,T] in [0, vocabulary);
    /// sequences between layers are stored as X, and so are the logits. Errors: as on a tape.
    template <class T, backend_for<T> Backend = default_backend, class X = T>
    auto evaluate(const parameter_tree<T>& theta, view<const std::int32_t> tokens,
                  same<solutions<T, Backend, X>>* how = nullptr, Backend backend = Backend{},
                  sequences_as<X> stored = {}) const {
        model_carry<T, array_of<T, Backend>> from_the_beginning;
        return evaluate(theta, tokens, from_the_beginning, how, backend, stored);
    }
    /// The same of sequences of unequal lengths, as above.
    template <class T, backend_for<T> Backend = default_backend, class X = T>
    auto evaluate(const parameter_tree<T>& theta, view<const std::int32_t> tokens, fprnn::lengths n,
                  same<solutions<T, Backend, X>>* how = nullptr, Backend backend = Backend{},
                  sequences_as<X> stored = {}) const {
        model_carry<T, array_of<T, Backend>> from_the_beginning;
        return evaluate(theta, tokens, n, from_the_beginning, how, backend, stored);
    }

    /// The same, from `carry` on, which is then where these tokens end: a prompt, then token by token. Where
    /// a chunk ends with each call, as it does with one-token chunks, several calls give the bits of one.
    /// Errors: a carry of other layers or another number of sequences; the carry is then what it was.
    template <class T, class Tensor, class Backend = default_backend, class X = T>
        requires(backend_for<Backend, T>&& std::is_same_v<Tensor, array_of<T, Backend>>)
    auto evaluate(const parameter_tree<T>& theta, view<const std::int32_t> tokens, model_carry<T, Tensor>& carry,
                  same<solutions<T, Backend, X>>* how = nullptr, Backend backend = Backend{},
                  sequences_as<X> stored = {}) const {
        return evaluate(parameters_on<T, Backend>(backend, theta), tokens, carry, how, backend, stored);
    }
    template <class T, class Tensor, class Backend = default_backend, class X = T>
        requires(backend_for<Backend, T>&& std::is_same_v<Tensor, array_of<T, Backend>>)
    auto evaluate(const parameter_tree<T>& theta, view<const std::int32_t> tokens, fprnn::lengths n,
                  model_carry<T, Tensor>& carry, same<solutions<T, Backend, X>>* how = nullptr,
                  Backend backend = Backend{}, sequences_as<X> stored = {}) const {
        return evaluate(parameters_on<T, Backend>(backend, theta), tokens, n, carry, how, backend, stored);
    }
    /// The same with parameters that are where the backend works with them, for many calls: they are brought
    /// there once. Errors: also parameters or a carry that are elsewhere.
    template <class T, class Tensor, class Backend, class X = T>
        requires(backend_for<Backend, T>&& std::is_same_v<Tensor, array_of<T, Backend>>)
    array_of<X, Backend> evaluate(const parameters_on<T, Backend>& there, view<const std::int32_t> tokens,
                                  model_carry<T, Tensor>& carry, same<solutions<T, Backend, X>>* how,
                                  same<Backend> backend, sequences_as<X> stored = {})
    const { return evaluate(there, tokens, all_tokens, carry, how, backend, stored); }
    template <class T, class Tensor, class Backend, class X = T>
        requires(backend_for<Backend, T>&& std::is_same_v<Tensor, array_of<T, Backend>>)
    array_of<X, Backend> evaluate(const parameters_on<T, Backend>& there, view<const std::int32_t> tokens,
                                  fprnn::lengths n, model_carry<T, Tensor>& carry, same<solutions<T, Backend, X>>* how,
                                  same<Backend> backend, sequences_as<X> = {})
    const {
        static_assert(may_store<X, T, Backend>(),
                      "sequence_model: the backend does not store sequences as sequences_as says");
        const auto stack = stack_on<T, Backend, X, false>();
        return model_on<T, Backend, X>{size, stack, head_on<T, Backend, X, false>()}.evaluate(there, tokens, n, carry,
                                                                                              how, backend);
    }

    /// Of real inputs [B,T,inputs], of a model that has such, on the CPU: [B,T,classes], as above.
    template <class T, class Backend = default_backend>
        requires(host_memory_backend<Backend, T>)
    tensor<T> evaluate(const parameter_tree<T>& theta, same<view<const T>> x, fprnn::lengths n, model_carry<T>& carry,
                       same<solutions<T, Backend>>* how = nullptr, Backend backend = Backend{})
    const {
        const auto stack = stack_on<T, Backend, T, false>();
        return model_on<T, Backend>{size, stack, head_on<T, Backend, T, false>()}.evaluate(
            parameters_on<T, Backend>(backend, theta), reader_.template on<T, Backend, T, false>(), x, n, carry, how,
            backend);
    }
    template <class T, class Backend = default_backend>
        requires(host_memory_backend<Backend, T>)
    tensor<T> evaluate(const parameter_tree<T>& theta, same<view<const T>> x, model_carry<T>& carry,
                       same<solutions<T, Backend>>* how = nullptr, Backend backend = Backend{})
    const { return evaluate(theta, x, all_tokens, carry, how, backend); }
    template <class T, class Backend = default_backend>
        requires(host_memory_backend<Backend, T>)
    tensor<T> evaluate(const parameter_tree<T>& theta, same<view<const T>> x, fprnn::lengths n,
                       same<solutions<T, Backend>>* how = nullptr, Backend backend = Backend{})
    const {
        model_carry<T> from_the_beginning;
        return evaluate(theta, x, n, from_the_beginning, how, backend);
    }
    template <class T, class Backend = default_backend>
        requires(host_memory_backend<Backend, T>)
    tensor<T> evaluate(const parameter_tree<T>& theta, same<view<const T>> x,
                       same<solutions<T, Backend>>* how = nullptr, Backend backend = Backend{})
    const { return evaluate(theta, x, all_tokens, how, backend); }

    dims block_dims() const { return size.of_block(); }
    dims head_dims() const { return size.of_head(); }

private:
    static constexpr std::span<const index> all_tokens{};

    template <class T, class Backend, class X, bool Adjoint = true>
    auto stack_on() const {
        return std::apply(
            [](const auto&... block) { return std::array{block.template on<T, Backend, X, Adjoint>()...}; }, blocks_);
    }
    template <class T, class Backend, class X, bool Adjoint = true>
    auto head_on() const {
        require(!size.tied || std::is_same_v<X, T>, "sequence_model",
                [] { return "a tied embedding needs sequences that are stored as numbers of the parameters' type"; });
        return size.tied ? final_norm_.template on<T, Backend, X, Adjoint>()
                         : head.template on<T, Backend, X, Adjoint>();
    }

    final_norm_layer final_norm_{final_norm()};
    input_layer reader_{input_expression()};
    std::tuple<layer<Blocks>...> blocks_;
};
template <class Block>
sequence_model(Block, model_dims, chunked = {}, adjoint = implicit{}) -> sequence_model<Block>;
template <class... Blocks>
sequence_model(stack_of<Blocks...>, model_dims, chunked = {}, adjoint = implicit{}) -> sequence_model<Blocks...>;

}  // namespace fprnn::models
