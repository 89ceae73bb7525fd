#pragma once

#include <fprnn/fixed_point/layer.hpp>
#include <fprnn/models/recorded.hpp>
#include <fprnn/tape/parameters_on.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace fprnn::models {

/// The sizes of a model: tokens in [0, vocabulary) in, logits over `classes` out.
struct model_dims {
    index vocabulary = 0;
    index classes = 0;
    index d_model = 64;
    index d_inner = 64;
    index d_state = 16;
    int layers = 1;

    void validate() const {
        const auto positive = [](const char* name, index value) {
            require(value >= 1, "model_dims",
                    [&] { return std::string(name) + " must be at least 1, got " + std::to_string(value); });
        };
        positive("vocabulary", vocabulary);
        positive("classes", classes);
        positive("d_model", d_model);
        positive("d_inner", d_inner);
        positive("d_state", d_state);
        positive("layers", layers);
    }
    dims of_block() const { return {.d_in = d_model, .d_inner = d_inner, .d_state = d_state, .d_out = d_model}; }
    dims of_head() const { return {.d_in = d_model, .d_inner = d_model, .d_out = classes}; }
};

/// A final norm and the map to logits.
inline auto head_expression() { return linear<"logits", d_out>(rms_norm<"norm">(symbols::in)); }
using head_layer = layer<decltype(head_expression())>;

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
parameter_tree<T> init(const model_dims& size, const graph::view& block, const graph::view& head, seed s) {
    parameter_tree<T> theta;
    // Embeddings start with deviation 1, so that a token outweighs what a block adds at first.
    theta.add({"embedding", {size.vocabulary, size.d_model}, {initialiser::rule::normal, 1.0}, false}, s);
    for (std::size_t i = 0; i < static_cast<std::size_t>(size.layers); ++i)
        graph::add_parameters(block, theta, size.of_block(), prefix_of_block(i), s);
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
    layer_on block, head;

    variable record_on(tape<T, Backend, X>& t, view<const std::int32_t> tokens, lengths n, solutions* how) const;
    array evaluate(const parameters_on<T, Backend>& there, view<const std::int32_t> tokens, lengths n,
                   model_carry<T, carry_array>& carry, solutions* how, Backend& backend) const;

private:
    std::size_t layers() const { return static_cast<std::size_t>(size.layers); }
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
    if (how) how->resize(layers());
    const auto own = tokens_within(tokens, n);
    variable x = embedding(t, "embedding", own.empty() ? tokens : own.view());
    for (std::size_t i = 0; i < layers(); ++i)
        x = block.record_on(t, size.of_block(), prefix_of_block(i), x, n, how ? &(*how)[i] : nullptr);
    return head.record_on(t, size.of_head(), "head.", x, n, nullptr);
}

template <class T, class Backend, class X>
array_of<X, Backend> model_on<T, Backend, X>::evaluate(const parameters_on<T, Backend>& there,
                                                       view<const std::int32_t> tokens, lengths n,
                                                       model_carry<T, carry_array>& carry, solutions* how,
                                                       Backend& backend) const {
    const parameter_tree<T>& theta = there.tree();
    there.require_here("sequence_model", backend);
    for (const auto& c : carry.blocks) detail::require_here(backend, "sequence_model", detail::named{"carry", c});
    const std::size_t carried = carry.blocks.size();
    require(carried == 0 || carried == layers(), "sequence_model", [&] {
        return "carry must be empty or of " + std::to_string(layers()) + " blocks, got " + std::to_string(carried);
    });
    if (how) how->resize(layers());
    const view<const T> table = theta["embedding"];
    detail::require_rank("embedding", "tokens", tokens.shape(), 2, "[B,T]");
    const auto own = tokens_within(tokens, n);
    if (!own.empty()) tokens = own.view();
    array x;
    backend.assign(x, {tokens.shape()[0], tokens.shape()[1], table.shape().back()});
    detail::embedding(there(table), tokens, x.view(), backend);
    const shape expected{x.shape()[0], graph::carry_width(block.what.nodes, size.of_block())};
    for (const auto& c : carry.blocks)  // here, because the layer takes one without numbers for none
        require(c.shape() == expected, "sequence_model", [&] {
            return "carry must be of " + expected.to_string() + " in each block, got " + c.shape().to_string();
        });
    const auto run = [&](const layer_on& l, const dims& d, const std::string& name, view<const T> from) {
        const index offset = graph::parameter_offset(l.what.nodes, theta, d, name);
        typename layer_on::solution result;
        l.run(d, there.data() + offset, std::as_const(x).view(), from, backend, nullptr, result, n);
        return result;
    };
    model_carry<T, carry_array> next;
    for (std::size_t i = 0; i < layers(); ++i) {
        const view<const T> from = carried ? std::as_const(carry.blocks[i]).view() : view<const T>{};
        auto y = run(block, size.of_block(), prefix_of_block(i), from);
        x = std::move(y.value);
        next.blocks.push_back(how ? copy_of(backend, y.carry) : std::move(y.carry));
        if (how) (*how)[i] = std::move(y);
    }
    auto logits = run(head, size.of_head(), "head.", {}).value;
    carry = std::move(next);
    return logits;
}

/// Embedding, `layers` equal blocks, a final norm and a head. Parameters: "embedding", "blocks.0.…", "head.…".
template <class Block>
class sequence_model {
public:
    /// An argument that converts instead of deducing.
    template <class A>
    using same = std::type_identity_t<A>;
    template <class T, class Backend, class X = T>
    using solutions = std::vector<solution<T, array_of<X, Backend>, array_of<T, Backend>>>;

    layer<Block> block;
    head_layer head{head_expression()};
    model_dims size;

    sequence_model(Block expression, model_dims sizes, chunked schedule = {}, adjoint a = implicit{})
        : block(expression, schedule, a), size(sizes) {
        size.validate();
    }

    template <class T>
    parameter_tree<T> init(seed s) const {
        return models::init<T>(size, block.nodes, head.nodes, s);
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
        return model_on<T, Backend, X>{size, block.template on<T, Backend, X>(), head.template on<T, Backend, X>()}
            .record_on(t, tokens, n, how);
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
        return model_on<T, Backend, X>{size, block.template on<T, Backend, X, false>(),
                                       head.template on<T, Backend, X, false>()}
            .evaluate(there, tokens, n, carry, how, backend);
    }

    dims block_dims() const { return size.of_block(); }
    dims head_dims() const { return size.of_head(); }

private:
    static constexpr std::span<const index> all_tokens{};
};

}  // namespace fprnn::models
