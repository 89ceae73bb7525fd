#pragma once

#include <fprnn/expression/width.hpp>

#include <cstddef>
#include <string>

namespace fprnn::models {

/// The sizes of a model: tokens in [0, vocabulary) in, or `inputs` real numbers a token; logits over
/// `classes` out, or as many real numbers.
struct model_dims {
    index vocabulary = 0;  ///< tokens that there are; 0 with real inputs
    index classes = 0;     ///< logits, or real outputs, of a token
    index d_model = 64;    ///< channels between blocks, a block's d_in
    index d_inner = 64;    ///< D, channels inside of a block
    index d_state = 16;    ///< N, rows of a matrix state
    index heads = 1;       ///< H, of models with heads, which say what it divides
    index d_head = 16;     ///< channels of a head's value, where an expression names d_head
    index d_key = 16;      ///< K, channels of a head's keys, or rows of its state
    index context = 256;   ///< tokens that attention has room for
    int layers = 1;        ///< how often the block, or the stack of blocks, stands there
    /// The logits are those of the embedding's own rows: the head has no map, and the embedding starts with
    /// deviation 0.02.
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

}  // namespace fprnn::models
