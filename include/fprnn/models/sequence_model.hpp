#pragma once

#include <fprnn/fixed_point/layer.hpp>
#include <fprnn/models/recorded.hpp>
#include <fprnn/tape/parameters_on.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace fprnn::models {

/// The sizes of a model: tokens in [0, vocabulary) in, or `inputs` real numbers a token; logits over `classes` out, or as many real numbers.
struct model_dims {
    index vocabulary = 0;
    index classes = 0;
    index d_model = 64;
    index d_inner = 64;
    index d_state = 16;
    index heads = 1;
    index d_head = 16;
    index d_key = 16;
    index context = 256;  ///< tokens that attention has room for
    int layers = 1;       ///< how often the block, or the stack of blocks, stands there
    /// The logits are those of the embedding's own rows: the head has no map, and the embedding starts with deviation 0.02.
    bool tied = false;
    index inputs =
        0;  ///< instead of a vocabulary: real numbers a token, of which "embedding.map" and its bias make d_model

    void validate() const {
        const auto positive = [](const char* name, index value) {
            require(value >= 1, "model_dims",
                    [&] { return std::string(name) + " must be at least 1, got " + std::to_string(value); });
        };
        require(inputs >= 0, "model_dims",
                [&] { return "inputs must be at least 1, or 0 for tokens, got " + std::to_string(inputs); });
        if (inputs == 0)
            positive("vocabulary", vocabulary);
        else
            require(vocabulary == 0 && !tied, "model_dims", [&] {
                return "a model of real inputs has neither a vocabulary nor a tied embedding, got inputs = " +
                       std::to_string(inputs) + " and vocabulary = " + std::to_string(vocabulary);
            });
        positive("classes", classes);
        positive("d_model", d_model);
        positive("d_inner", d_inner);
        positive("d_state", d_state);
        positive("heads", heads);
        positive("d_head", d_head);
        positive("d_key", d_key);
        positive("context", context);
        positive("layers", layers);
        require(!tied || classes == vocabulary, "model_dims", [&] {
            return "classes must be those of the vocabulary, " + std::to_string(vocabulary) +
                   ", where the embedding is tied, got " + std::to_string(classes);
        });
    }
    dims of_block() const {
        return {.d_in = d_model,
                .d_inner = d_inner,
                .d_state = d_state,
                .d_out = d_model,
                .heads = heads,
                .d_head = d_head,
                .d_key = d_key,
                .context = context};
    }
    /// Blocks of a model whose stack has so many.
    std::size_t blocks_of(std::size_t stack) const { return static_cast<std::size_t>(layers) * stack; }
    dims of_inputs() const { return {.d_in = inputs, .d_inner = d_model, .d_out = d_model}; }
    dims of_head() const { return {.d_in = d_model, .d_inner = d_model, .d_out = classes}; }
};

/// A final norm, and the map to logits.
inline auto final_norm() { return rms_norm<"norm">(symbols::in); }
inline auto head_expression() { return linear<"logits", d_out>(final_norm()); }
using head_layer = layer<decltype(head_expression())>;
using final_norm_layer = layer<decltype(final_norm())>;
/// Of real inputs.
inline auto input_expression() { return affine<"map", d_out>(symbols::in); }
using input_layer = layer<decltype(input_expression())>;

}  // namespace fprnn::models

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

/// Where an evaluation ended, so that another goes on from there; made empty, the beginning.
template <class T, class Tensor = tensor<T>>
struct model_carry {
    std::vector<Tensor> blocks;  ///< of each block [B, numbers that it hands on]
};

/// The tokens of sequences of unequal lengths, and others that stand for what is behind their ends; none where all have all tokens.
inline tensor<std::int32_t> tokens_within(view<const std::int32_t> tokens, lengths n) {
    if (n.empty()) return {};
    detail::require_rank("sequence_model", "tokens", tokens.shape(), 2, "[B,T]");
    n.require_of(tokens.shape()[0], tokens.shape()[1], "sequence_model");
    tensor<std::int32_t> own(tokens.shape());
    for (index b = 0; b < tokens.shape()[0]; ++b)
        for (index t = 0; t < n.of_sequences()[static_cast<std::size_t>(b)]; ++t) own(b, t) = tokens(b, t);
    return own;
}

inline std::string prefix_of_block(std::size_t i) { return "blocks." + std::to_string(i) + "."; }
template <class T>
parameter_tree<T> init(const model_dims& size, std::span<const graph::view> blocks, const graph::view& head, seed s) {
    parameter_tree<T> theta;
    // Embeddings start with deviation 1, so that a token outweighs what a block adds at first; rows that are the head's, too, as small
    // as those of a map.
    const double deviation = size.tied ? 0.02 : 1.0;
    if (size.inputs == 0)
        theta.add({"embedding", {size.vocabulary, size.d_model}, {initialiser::rule::normal, deviation}, false}, s);
    else
        graph::add_parameters(input_layer::nodes, theta, size.of_inputs(), "embedding.", s);
    for (std::size_t i = 0; i < size.blocks_of(blocks.size()); ++i)
        graph::add_parameters(blocks[i % blocks.size()], theta, size.of_block(), prefix_of_block(i), s);
    graph::add_parameters(head, theta, size.of_head(), "head.", s);
    return theta;
}

/// A model without the types of its layers, on a backend with numbers T, sequences stored as X.
template <class T, class Backend, class X = T>
struct model_on {
    using layer_on = engine::layer_on<T, Backend, X>;
    using array = array_of<X, Backend>;
    using carry_array = array_of<T, Backend>;
    using solutions = std::vector<solution<T, array, carry_array>>;

    const model_dims& size;
    std::span<const layer_on> stack;  ///< which stands there `layers` times
    layer_on head;

    variable record_on(tape<T, Backend, X>& t, view<const std::int32_t> tokens, lengths n, solutions* how) const;
    array evaluate(const parameters_on<T, Backend>& there, view<const std::int32_t> tokens, lengths n,
                   model_carry<T, carry_array>& carry, solutions* how, Backend& backend) const;
    /// The same of real inputs [B,T,inputs], which `reader` reads.
    variable record_on(tape<T, Backend, X>& t, const layer_on& reader, view<const X> x, lengths n,
                       solutions* how) const;
    array evaluate(const parameters_on<T, Backend>& there, const layer_on& reader, view<const X> x, lengths n,
                   model_carry<T, carry_array>& carry, solutions* how, Backend& backend) const;

private:
    void require_tokens(bool are_tokens) const {
        require(are_tokens == (size.inputs == 0), "sequence_model", [&] {
            return are_tokens ? "expected " + std::to_string(size.inputs) + " real numbers a token, got tokens"
                              : std::string("expected tokens, got real numbers: model_dims::inputs is 0");
        });
    }
    variable record_blocks(tape<T, Backend, X>& t, variable x, lengths n, solutions* how) const;
    array run_blocks(const parameters_on<T, Backend>& there, array x, lengths n, model_carry<T, carry_array>& carry,
                     solutions* how, Backend& backend) const;
    static typename layer_on::solution run(const parameters_on<T, Backend>& there, const layer_on& l, const dims& d,
                                           const std::string& name, view<const X> x, view<const T> from, lengths n,
                                           Backend& backend);
    std::size_t blocks() const { return size.blocks_of(stack.size()); }
    const layer_on& block(std::size_t i) const { return stack[i % stack.size()]; }
    /// Errors: a carry of another model, or of other sequences.
    void require_carry(const model_carry<T, carry_array>& carry, index sequences, Backend& backend) const;
    /// Errors: tokens for which a block has no room, behind those of the carry or, where it is null, from the beginning.
    void require_room(const shape& of, lengths n, const model_carry<T, carry_array>* carry) const;
    static array embed(const parameters_on<T, Backend>& there, view<const std::int32_t> tokens, Backend& backend);
    array logits(const parameters_on<T, Backend>& there, array x, Backend& backend) const;
    static carry_array copy_of(Backend& backend, const carry_array& x) {
        carry_array y;
        backend.assign(y, x.shape());
        backend.copy(x.size(), x.data(), y.data());
        return y;
    }
};

template <class T, class Backend, class X>
variable model_on<T, Backend, X>::record_on(tape<T, Backend, X>& t, view<const std::int32_t> tokens, lengths n,
                                            solutions* how) const {
    require_tokens(true);
    const auto own = tokens_within(tokens, n);
    require_room(tokens.shape(), n, nullptr);
    return record_blocks(t, embedding(t, "embedding", own.empty() ? tokens : own.view()), n, how);
}
template <class T, class Backend, class X>
variable model_on<T, Backend, X>::record_on(tape<T, Backend, X>& t, const layer_on& reader, view<const X> x, lengths n,
                                            solutions* how) const {
    require_tokens(false);
    detail::require_rank("sequence_model", "x", x.shape(), 3, "[B,T,inputs]");
    require_room(x.shape(), n, nullptr);
    auto own = t.make(x.shape());
    std::copy(x.begin(), x.end(), own.begin());
    const variable inputs = t.leaf(std::move(own));
    return record_blocks(t, reader.record_on(t, size.of_inputs(), "embedding.", inputs, n, nullptr), n, how);
}
template <class T, class Backend, class X>
variable model_on<T, Backend, X>::record_blocks(tape<T, Backend, X>& t, variable x, lengths n, solutions* how) const {
    if (how) how->resize(blocks());
    for (std::size_t i = 0; i < blocks(); ++i)
        x = block(i).record_on(t, size.of_block(), prefix_of_block(i), x, n, how ? &(*how)[i] : nullptr);
    x = head.record_on(t, size.of_head(), "head.", x, n, nullptr);
    if constexpr (std::is_same_v<X, T>)
        if (size.tied) return linear(t, "embedding", x);
    return x;
}

template <class T, class Backend, class X>
void model_on<T, Backend, X>::require_carry(const model_carry<T, carry_array>& carry, index sequences,
                                            Backend& backend) const {
    const std::size_t carried = carry.blocks.size();
    require(carried == 0 || carried == blocks(), "sequence_model", [&] {
        return "carry must be empty or of " + std::to_string(blocks()) + " blocks, got " + std::to_string(carried);
    });
    for (std::size_t i = 0; i < carried; ++i) {  // here, because a layer takes one without numbers for none
        const auto& c = carry.blocks[i];
        detail::require_here(backend, "sequence_model", detail::named{"carry", c});
        const shape expected{sequences, graph::carry_width(block(i).what.nodes, size.of_block())};
        require(c.shape() == expected, "sequence_model", [&] {
            return "carry must be of " + expected.to_string() + " in block " + std::to_string(i) + ", got " +
                   c.shape().to_string();
        });
    }
}
template <class T, class Backend, class X>
void model_on<T, Backend, X>::require_room(const shape& of, lengths n, const model_carry<T, carry_array>* carry) const {
    if constexpr (has_tiles<Backend>) {  // with braces, which nvcc needs around what it leaves out
        for (std::size_t i = 0; i < blocks(); ++i) {
            const bool is_carried = carry && !carry->blocks.empty();
            engine::require_room<T>(block(i).what.nodes, size.of_block(),
                                    is_carried ? carry->blocks[i].view() : view<const T>{}, of[0], of[1], n);
        }
    }
}
template <class T, class Backend, class X>
array_of<X, Backend> model_on<T, Backend, X>::embed(const parameters_on<T, Backend>& there,
                                                    view<const std::int32_t> tokens, Backend& backend) {
    const view<const T> table = there.tree()["embedding"];
    array x;
    backend.assign(x, {tokens.shape()[0], tokens.shape()[1], table.shape().back()});
    detail::embedding(there(table), tokens, x.view(), backend);
    return x;
}
/// Of what the head gives: itself, or, where the embedding is tied, its products with the embedding's rows.
template <class T, class Backend, class X>
array_of<X, Backend> model_on<T, Backend, X>::logits(const parameters_on<T, Backend>& there, array x,
                                                     Backend& backend) const {
    if constexpr (std::is_same_v<X, T>) {
        if (!size.tied) return x;
        const index rows = x.shape()[0] * x.shape()[1], k = size.d_model, V = size.vocabulary;
        array y;
        backend.assign(y, {x.shape()[0], x.shape()[1], V});
        detail::multiply_rows<T>({std::as_const(x).data(), rows, k, k},
                                 {there(there.tree()["embedding"]).data(), V, k, k}, {y.data(), rows, V, V}, true,
                                 backend);
        return y;
    }
    return x;
}

template <class T, class Backend, class X>
array_of<X, Backend> model_on<T, Backend, X>::evaluate(const parameters_on<T, Backend>& there,
                                                       view<const std::int32_t> tokens, lengths n,
                                                       model_carry<T, carry_array>& carry, solutions* how,
                                                       Backend& backend) const {
    there.require_here("sequence_model", backend);
    require_tokens(true);
    detail::require_rank("embedding", "tokens", tokens.shape(), 2, "[B,T]");
    require_carry(carry, tokens.shape()[0], backend);
    const auto own = tokens_within(tokens, n);
    require_room(tokens.shape(), n, &carry);
    return run_blocks(there, embed(there, own.empty() ? tokens : own.view(), backend), n, carry, how, backend);
}
template <class T, class Backend, class X>
array_of<X, Backend> model_on<T, Backend, X>::evaluate(const parameters_on<T, Backend>& there, const layer_on& reader,
                                                       view<const X> x, lengths n, model_carry<T, carry_array>& carry,
                                                       solutions* how, Backend& backend) const {
    there.require_here("sequence_model", backend);
    require_tokens(false);
    detail::require_rank("sequence_model", "x", x.shape(), 3, "[B,T,inputs]");
    require_carry(carry, x.shape()[0], backend);
    require_room(x.shape(), n, &carry);
    return run_blocks(there, run(there, reader, size.of_inputs(), "embedding.", x, {}, n, backend).value, n, carry, how,
                      backend);
}
template <class T, class Backend, class X>
auto model_on<T, Backend, X>::run(const parameters_on<T, Backend>& there, const layer_on& l, const dims& d,
                                  const std::string& name, view<const X> x, view<const T> from, lengths n,
                                  Backend& backend) -> typename layer_on::solution {
    const index offset = graph::parameter_offset(l.what.nodes, there.tree(), d, name);
    typename layer_on::solution result;
    l.run(d, there.data() + offset, x, from, backend, nullptr, result, n);
    return result;
}
template <class T, class Backend, class X>
array_of<X, Backend> model_on<T, Backend, X>::run_blocks(const parameters_on<T, Backend>& there, array x, lengths n,
                                                         model_carry<T, carry_array>& carry, solutions* how,
                                                         Backend& backend) const {
    if (how) how->resize(blocks());
    model_carry<T, carry_array> next;
    for (std::size_t i = 0; i < blocks(); ++i) {
        const view<const T> from = carry.blocks.empty() ? view<const T>{} : std::as_const(carry.blocks[i]).view();
        auto y = run(there, block(i), size.of_block(), prefix_of_block(i), std::as_const(x).view(), from, n, backend);
        x = std::move(y.value);
        next.blocks.push_back(how ? copy_of(backend, y.carry) : std::move(y.carry));
        if (how) (*how)[i] = std::move(y);
    }
    auto y = run(there, head, size.of_head(), "head.", std::as_const(x).view(), {}, n, backend);
    x = logits(there, std::move(y.value), backend);
    carry = std::move(next);
    return x;
}

/// Embedding, `layers` times a block or a stack of different ones, a final norm and a head. Parameters: "embedding", "blocks.0.…", "head.…".
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
    template <class T, class Backend, class X = T>
    using solutions = std::vector<solution<T, array_of<X, Backend>, array_of<T, Backend>>>;

    head_layer head{head_expression()};
    model_dims size;

    sequence_model(Blocks... expressions, model_dims sizes, chunked schedule = {}, adjoint a = implicit{})
        : size(sizes), blocks_(layer<Blocks>(expressions, schedule, a)...) {
        size.validate();
    }
    sequence_model(stack_of<Blocks...>, model_dims sizes, chunked schedule = {}, adjoint a = implicit{})
        : sequence_model(Blocks{}..., sizes, schedule, a) {}

    /// Block i of the stack: its schedule, solver, stop and adjoint may be changed.
    template <std::size_t i = 0>
    auto& block() {
        return std::get<i>(blocks_);
    }
    template <std::size_t i = 0>
    const auto& block() const {
        return std::get<i>(blocks_);
    }

    template <class T>
    parameter_tree<T> init(seed s) const {
        static constexpr std::array<graph::view, sizeof...(Blocks)> stack{layer<Blocks>::nodes...};
        return models::init<T>(size, stack, size.tied ? final_norm_layer::nodes : head_layer::nodes, s);
    }

    /// Logits [B,T,classes] on the tape. `how`, when given, receives the convergence of every block.
    template <class T, backend_for<T> Backend, class X>
    variable operator()(tape<T, Backend, X>& t, view<const std::int32_t> tokens,
                        same<solutions<T, Backend, X>>* how = nullptr) const {
        return (*this)(t, tokens, all_tokens, how);
    }
    /// The same of sequences of unequal lengths: the logits behind their ends are zero, and whatever stands among the tokens there is not
    /// looked at. A loss does not count them where the targets are ignored_target. Errors: not B numbers of [0,T].
    template <class T, backend_for<T> Backend, class X>
    variable operator()(tape<T, Backend, X>& t, view<const std::int32_t> tokens, fprnn::lengths n,
                        same<solutions<T, Backend, X>>* how = nullptr) const {
        const auto stack = stack_on<T, Backend, X>();
        return model_on<T, Backend, X>{size, stack, head_on<T, Backend, X>()}.record_on(t, tokens, n, how);
    }

    /// The same of real inputs [B,T,inputs], of a model that has such, on the CPU.
    template <class T, host_memory_backend<T> Backend>
    variable operator()(tape<T, Backend>& t, same<view<const T>> x, same<solutions<T, Backend>>* how = nullptr,
                        fprnn::lengths n = all_tokens) const {
        const auto stack = stack_on<T, Backend, T>();
        return model_on<T, Backend>{size, stack, head_on<T, Backend, T>()}.record_on(
            t, reader_.template on<T, Backend>(), x, n, how);
    }

    /// Logits [B,T,classes] without a tape, in a tensor of the backend; sequences between layers are stored as X, and so are the logits.
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

    /// The same, from `carry` on, which is then where these tokens end: a prompt, then token by token. Where a chunk ends with
    /// each call, as it does with one-token chunks, several calls give the bits of one. Errors: a carry of other layers or another
    /// number of sequences; the carry is then what it was.
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
    /// The same with parameters that are where the backend works with them, for many calls: they are brought there once. Errors: also
    /// parameters or a carry that are elsewhere.
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

    /// Of real inputs [B,T,inputs], of a model that has such, on the CPU: [B,T,classes], from `carry` on, as above.
    template <class T, class Backend = default_backend>
        requires(host_memory_backend<Backend, T>)
    tensor<T> evaluate(const parameter_tree<T>& theta, same<view<const T>> x, model_carry<T>& carry,
                       same<solutions<T, Backend>>* how = nullptr, Backend backend = Backend{},
                       fprnn::lengths n = all_tokens)
    const {
        const auto stack = stack_on<T, Backend, T, false>();
        return model_on<T, Backend>{size, stack, head_on<T, Backend, T, false>()}.evaluate(
            parameters_on<T, Backend>(backend, theta), reader_.template on<T, Backend, T, false>(), x, n, carry, how,
            backend);
    }
    template <class T, class Backend = default_backend>
        requires(host_memory_backend<Backend, T>)
    tensor<T> evaluate(const parameter_tree<T>& theta, same<view<const T>> x,
                       same<solutions<T, Backend>>* how = nullptr, Backend backend = Backend{})
    const {
        model_carry<T> from_the_beginning;
        return evaluate(theta, x, from_the_beginning, how, backend);
    }

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
