#pragma once

#include "data.hpp"
#include "network.hpp"

#include <utility>

/// What can be chosen by name.
namespace experiment {

namespace choices {

inline constexpr std::pair<const char*, data_options::kind> tasks[] = {
    {"word-problem", data_options::kind::word_problem},
    {"copy", data_options::kind::copy},
    {"arithmetic", data_options::kind::arithmetic},
    {"catbabi", data_options::kind::catbabi},
    {"text", data_options::kind::text}};
inline constexpr std::pair<const char*, bool> operators[] = {{"+-", false}, {"+-*", true}};
inline constexpr std::pair<const char*, architecture::block> models[] = {
    {"fp-mamba", architecture::block::fp_mamba},
    {"fp-mamba2", architecture::block::fp_mamba2},
    {"fp-rnn", architecture::block::fp_rnn},
    {"mamba", architecture::block::mamba},
    {"published-mamba", architecture::block::published_mamba},
    {"mamba2", architecture::block::mamba2},
    {"delta-product", architecture::block::delta_product},
    {"deltanet", architecture::block::deltanet},
    {"gated-deltanet", architecture::block::gated_deltanet},
    {"gated-delta-product", architecture::block::gated_delta_product},
    {"lstm", architecture::block::lstm},
    {"mlstm", architecture::block::mlstm},
    {"slstm", architecture::block::slstm},
    {"transformer", architecture::block::transformer}};
inline constexpr std::pair<const char*, architecture::mixing> mixers[] = {
    {"householder", architecture::mixing::householder},
    {"dplr", architecture::mixing::dplr},
    {"kronecker", architecture::mixing::kronecker},
    {"block-diagonal", architecture::mixing::block_diagonal}};
inline constexpr std::pair<const char*, int> reflections[] = {{"1", 1}, {"2", 2}, {"4", 4}, {"8", 8}};
inline constexpr std::pair<const char*, int> scales[] = {{"1", 1}, {"2", 2}};
inline constexpr std::pair<const char*, architecture::gating> gates[] = {
    {"outside", architecture::gating::outside},
    {"inside", architecture::gating::inside},
    {"inside-sees-y", architecture::gating::inside_seeing_y}};
inline constexpr std::pair<const char*, bool> adjoints[] = {{"one-step", true}, {"implicit", false}};

inline constexpr std::pair<const char*, architecture::dependence> dependences[] = {
    {"none", {false, false, false}},       {"lambda", {true, false, false}}, {"mixer", {false, true, false}},
    {"lambda+mixer", {true, true, false}}, {"bc", {false, false, true}},     {"lambda+bc", {true, false, true}},
    {"mixer+bc", {false, true, true}},     {"all", {true, true, true}}};

}  // namespace choices

inline bool has_mixer(const architecture& a) {
    return a.kind == architecture::block::fp_mamba || a.kind == architecture::block::fp_mamba2 ||
           a.kind == architecture::block::fp_rnn;
}
/// Gates beside the triangles of its factors, "Q.gate".
inline bool mixer_has_gates(const architecture& a) {
    return has_mixer(a) &&
           (a.mixer == architecture::mixing::kronecker || a.mixer == architecture::mixing::block_diagonal);
}
inline bool has_heads(const architecture& a) {
    using enum architecture::block;
    switch (a.kind) {
        case fp_mamba2:
        case mamba2:
        case delta_product:
        case deltanet:
        case gated_deltanet:
        case gated_delta_product:
        case mlstm:
        case slstm:
        case transformer: return true;
        default: return false;
    }
}

}  // namespace experiment
