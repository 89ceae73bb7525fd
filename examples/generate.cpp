// A trained model goes on with a text, letter by letter: each call solves one token, from where the call
// before ended.
#include <fprnn/fprnn.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

namespace fp = fprnn;

//! [sampler]
/// Pieces of a text that begins again where it ends; each letter's target is the next one.
struct pieces_of {
    std::string text, letters;

    std::int32_t token(std::size_t at) const { return static_cast<std::int32_t>(letters.find(text[at % text.size()])); }
    void operator()(fp::view<std::int32_t> tokens, fp::view<std::int32_t> targets, std::uint64_t first) const {
        for (fp::index b = 0; b < tokens.shape()[0]; ++b) {
            const fp::random_stream random(fp::seed{1}, first + static_cast<std::uint64_t>(b));
            const std::size_t begin = random.below(0, text.size());
            for (fp::index t = 0; t < tokens.shape()[1]; ++t) {
                tokens(b, t) = token(begin + static_cast<std::size_t>(t));
                targets(b, t) = token(begin + static_cast<std::size_t>(t) + 1);
            }
        }
    }
};
//! [sampler]

/// Trains a model of two blocks on the rhyme, and lets it go on; whether it was right, to the bit.
template <class Block>
bool generate(Block block, fp::index length = 32) {
    const pieces_of rhyme{"the rain in spain stays mainly in the plain. ", "abcdefghijklmnopqrstuvwxyz. "};
    const auto V = static_cast<fp::index>(rhyme.letters.size());
    const fp::models::sequence_model model(block, {.vocabulary = V,
                                                   .classes = V,
                                                   .d_model = 32,
                                                   .d_inner = 32,
                                                   .heads = 4,
                                                   .d_head = 8,
                                                   .d_key = 8,
                                                   .layers = 2});
    auto theta = model.template init<float>(fp::seed{0});
    fp::train(model, theta, {.batch = 32, .length = length, .steps = 200}, rhyme, [](const auto&) { return true; });

    //! [generate]
    const std::string prompt = "the rain in";
    fp::tensor<std::int32_t> tokens({1, static_cast<fp::index>(prompt.size())}), next({1, 1});
    for (std::size_t t = 0; t < prompt.size(); ++t) tokens[static_cast<fp::index>(t)] = rhyme.token(t);

    fp::models::model_carry<float> carry;  // empty: from the beginning
    std::string said = prompt;
    auto logits = model.evaluate(theta, tokens, carry);  // the prompt, [1,T,V]
    while (said.size() < 80) {
        const float* last = logits.end() - V;  // of the last token
        next[0] = static_cast<std::int32_t>(std::max_element(last, last + V) - last);
        said += rhyme.letters[static_cast<std::size_t>(next[0])];
        logits = model.evaluate(theta, next, carry);  // one more token
    }
    std::printf("%s\n", said.c_str());
    //! [generate]

    //! [check]
    // The same letters in one call end with the same logits, to the bit.
    fp::tensor<std::int32_t> all({1, static_cast<fp::index>(said.size())});
    for (fp::index t = 0; t < all.size(); ++t)
        all[t] = static_cast<std::int32_t>(rhyme.letters.find(said[static_cast<std::size_t>(t)]));
    const auto whole = model.evaluate(theta, all);
    const bool same = std::equal(logits.begin(), logits.end(), whole.end() - V);
    std::printf("the last of %zu calls gives %s of one\n", said.size() - prompt.size() + 1,
                same ? "the bits" : "NOT the bits");
    //! [check]
    const std::string twice = rhyme.text + rhyme.text;
    return same && said == twice.substr(0, said.size());
}

int main(int argc, char** argv) {
    using namespace fp::models;
    const std::pair<const char*, bool (*)()> models[] = {
        {"fp-rnn", [] { return generate(fp_rnn<2>()); }},
        {"fp-mamba", [] { return generate(fp_mamba<fp_mamba_options{.convolution = 4}>(fp::householder<2>)); }},
        {"fp-mamba2", [] { return generate(fp_mamba2(fp::householder<2>)); }},
        {"mamba", [] { return generate(published_mamba()); }},
        {"mamba2", [] { return generate(mamba2()); }},
        {"gated-deltanet", [] { return generate(stack(gated_deltanet(), swiglu())); }},
        {"delta-product", [] { return generate(state_tracking_delta_product<2>()); }},
        {"lstm", [] { return generate(lstm()); }},
        {"mlstm", [] { return generate(mlstm_block()); }},
        {"slstm", [] { return generate(stack(slstm_block(), swiglu())); }},
        // It has to have seen places as far away as it is asked for.
        {"transformer", [] { return generate(transformer(), 80); }},
    };
    const std::string name = argc > 1 ? argv[1] : models[0].first;
    std::string known;
    for (const auto& [its_name, generate_with] : models) {
        if (name == its_name) return generate_with() ? 0 : 1;
        known += (known.empty() ? "" : ", ") + std::string(its_name);
    }
    std::fprintf(stderr, "generate: expected one of %s, got '%s'\n", known.c_str(), name.c_str());
    return 2;
}
