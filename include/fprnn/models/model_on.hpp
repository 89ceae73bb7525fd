#pragma once

#include <fprnn/fixed_point/layer.hpp>
#include <fprnn/models/model_carry.hpp>
#include <fprnn/models/model_dims.hpp>
#include <fprnn/models/recorded.hpp>
#include <fprnn/tape/parameters_on.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// What is not a model's blocks: its embedding and its head, and all of it behind an interface without the
/// types of its layers.
namespace fprnn::models {

/// A final norm, and the map to logits.
inline auto final_norm() { return rms_norm<"norm">(symbols::in); }
inline auto head_expression() { return linear<"logits", d_out>(final_norm()); }
using head_layer = layer<decltype(head_expression())>;
using final_norm_layer = layer<decltype(final_norm())>;
/// Of real inputs.
inline auto input_expression() { return affine<"map", d_out>(symbols::in); }
using input_layer = layer<decltype(input_expression())>;

/// The tokens of sequences of unequal lengths, and others that stand for what is behind their ends; none
/// where all have all tokens.
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
    // Embeddings start with deviation 1, so that a token outweighs what a block adds at first; rows that are
    // the head's, too, as small as those of a map.
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
    using solutions = fprnn::solutions<T, Backend, X>;

    const model_dims& size;
    std::span<const layer_on> stack;  ///< which stands there `layers` times
    layer_on head;

    /// Where a carry is given, from it on, and it is then where these tokens end.
    variable record_on(tape<T, Backend, X>& t, view<const std::int32_t> tokens, lengths n, solutions* how,
                       model_carry<T, carry_array>* carry = nullptr) const;
    array evaluate(const parameters_on<T, Backend>& there, view<const std::int32_t> tokens, lengths n,
                   model_carry<T, carry_array>& carry, solutions* how, Backend& backend) const;
    /// The same of real inputs [B,T,inputs], which `reader` reads.
    variable record_on(tape<T, Backend, X>& t, const layer_on& reader, view<const X> x, lengths n, solutions* how,
                       model_carry<T, carry_array>* carry = nullptr) const;
    array evaluate(const parameters_on<T, Backend>& there, const layer_on& reader, view<const X> x, lengths n,
                   model_carry<T, carry_array>& carry, solutions* how, Backend& backend) const;

private:
    void require_tokens(bool are_tokens) const {
        require(are_tokens == (size.inputs == 0), "sequence_model", [&] {
            return are_tokens ? "expected " + std::to_string(size.inputs) + " real numbers a token, got tokens"
                              : std::string("expected tokens, got real numbers: model_dims::inputs is 0");
        });
    }
    variable record_blocks(tape<T, Backend, X>& t, variable x, lengths n, solutions* how,
                           model_carry<T, carry_array>* carry) const;
    array run_blocks(const parameters_on<T, Backend>& there, array x, lengths n, model_carry<T, carry_array>& carry,
                     solutions* how, Backend& backend) const;
    static typename layer_on::solution run(const parameters_on<T, Backend>& there, const layer_on& l, const dims& d,
                                           const std::string& name, view<const X> x, view<const T> from, lengths n,
                                           Backend& backend);
    /// Errors: sizes that are none, parameters of a model with another embedding or more blocks.
    void require_own(const parameter_tree<T>& theta) const {
        size.validate();
        if (size.inputs == 0)
            detail::require_shape("sequence_model", "'embedding'", theta["embedding"].shape(),
                                  {size.vocabulary, size.d_model});
        const std::string further = prefix_of_block(blocks());
        for (const auto& p : theta.entries())
            require(!p.name.starts_with(further), "sequence_model", [&] {
                return "parameters must be of " + std::to_string(blocks()) + " blocks, got '" + p.name + "'";
            });
    }
    std::size_t blocks() const { return size.blocks_of(stack.size()); }
    const layer_on& block(std::size_t i) const { return stack[i % stack.size()]; }
    /// Errors: a carry of another model, or of other sequences.
    void require_carry(const model_carry<T, carry_array>& carry, index sequences, Backend& backend) const;
    /// Errors: tokens for which a block has no room, behind those of the carry or, where it is null, from the
    /// beginning.
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
                                            solutions* how, model_carry<T, carry_array>* carry) const {
    require_own(t.parameters());
    require_tokens(true);
    detail::require_rank("embedding", "tokens", tokens.shape(), 2, "[B,T]");
    if (carry) require_carry(*carry, tokens.shape()[0], t.backend());
    const auto own = tokens_within(tokens, n);
    require_room(tokens.shape(), n, carry);
    return record_blocks(t, embedding(t, "embedding", own.empty() ? tokens : own.view()), n, how, carry);
}
template <class T, class Backend, class X>
variable model_on<T, Backend, X>::record_on(tape<T, Backend, X>& t, const layer_on& reader, view<const X> x, lengths n,
                                            solutions* how, model_carry<T, carry_array>* carry) const {
    require_own(t.parameters());
    require_tokens(false);
    detail::require_rank("sequence_model", "x", x.shape(), 3, "[B,T,inputs]");
    n.require_of(x.shape()[0], x.shape()[1], "sequence_model");
    if (carry) require_carry(*carry, x.shape()[0], t.backend());
    require_room(x.shape(), n, carry);
    auto own = t.make(x.shape());
    std::copy(x.begin(), x.end(), own.begin());
    const variable inputs = t.leaf(std::move(own));
    return record_blocks(t, reader.record_on(t, size.of_inputs(), "embedding.", inputs, n, nullptr), n, how, carry);
}
template <class T, class Backend, class X>
variable model_on<T, Backend, X>::record_blocks(tape<T, Backend, X>& t, variable x, lengths n, solutions* how,
                                                model_carry<T, carry_array>* carry) const {
    if (how) how->resize(blocks());
    const dims d = size.of_block();
    model_carry<T, carry_array> next;
    for (std::size_t i = 0; i < blocks(); ++i) {
        auto* const of_block = how ? &(*how)[i] : nullptr;
        if constexpr (std::is_same_v<X, T>) {
            if (carry) {
                const shape rows{t.value(x).shape()[0], graph::carry_width(block(i).what.nodes, d)};
                carry_array from;
                t.backend().assign(from, rows);
                if (!carry->blocks.empty())
                    t.backend().copy(rows.count(), std::as_const(carry->blocks[i]).data(), from.data());
                const auto y = block(i).record_on(t, d, prefix_of_block(i), x, n, t.leaf(std::move(from)), of_block);
                next.blocks.push_back(copy_of(t.backend(), t.value(y.carry)));
                x = y.value;
                continue;
            }
        }
        x = block(i).record_on(t, d, prefix_of_block(i), x, n, of_block);
    }
    x = head.record_on(t, size.of_head(), "head.", x, n, nullptr);
    if constexpr (std::is_same_v<X, T>)
        if (size.tied) x = linear(t, "embedding", x);
    if (carry) *carry = std::move(next);
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
    require_own(there.tree());
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
    require_own(there.tree());
    require_tokens(false);
    detail::require_rank("sequence_model", "x", x.shape(), 3, "[B,T,inputs]");
    require_carry(carry, x.shape()[0], backend);
    n.require_of(x.shape()[0], x.shape()[1], "sequence_model");
    require_room(x.shape(), n, &carry);
    return run_blocks(there, run(there, reader, size.of_inputs(), "embedding.", x, {}, n, backend).value, n, carry, how,
                      backend);
}
template <class T, class Backend, class X>
auto model_on<T, Backend, X>::run(const parameters_on<T, Backend>& there, const layer_on& l, const dims& d,
                                  const std::string& name, view<const X> x, view<const T> from, lengths n,
                                  Backend& backend) -> typename layer_on::solution {
    const index offset = graph::parameters_in(l.what.nodes, there.tree(), d, name).first;
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

}  // namespace fprnn::models
