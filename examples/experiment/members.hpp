#pragma once

#include "exhibits.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

/// What exhibits are made of.
namespace experiment {

// FP-Mamba blue, diagonal models orange, the delta rule red, LSTM green, Transformer grey; within a kind from light to dark.
inline constexpr const char *fp_blue = "#1f5fa8", *diagonal_orange = "#d9822b", *delta_red = "#b5403a",
                            *lstm_green = "#8fcaa3", *transformer_grey = "#7a7a7a";

/// Adds members one after the other, each in a folder below that of the exhibit.
class members {
public:
    explicit members(const options& o) : o_(o) {}

    /// The exhibit's settings, which are then to be changed.
    options& add(const std::string& folder, std::string label, std::string colour) {
        all_.push_back({std::move(label), std::move(colour), o_});
        all_.back().settings.out = o_.out / folder;
        return all_.back().settings;
    }
    /// FP-Mamba with a mixer.
    options& add_fp_mamba(const std::string& folder, std::string label, std::string colour, const std::string& mixer,
                          int r = 1) {
        options& m = add(folder, std::move(label), std::move(colour));
        use_mixer(m, mixer, r);
        return m;
    }
    options& add_baseline(const std::string& model, std::string label, std::string colour, int layers) {
        options& m = add(model, std::move(label), std::move(colour));
        m.model.convolution = false;
        m.model.size.layers = layers;
        use_model(m, model);
        return m;
    }

    /// With `factor` times as many channels inside, in whole heads, so that parameters are as many as FP-Mamba's.
    options& add_wide_baseline(const std::string& model, std::string label, std::string colour, int layers,
                               double factor) {
        options& m = add_baseline(model, std::move(label), std::move(colour), layers);
        auto& size = m.model.size;
        const double channels = factor * static_cast<double>(size.d_inner), heads = static_cast<double>(size.heads);
        size.d_inner = size.heads * std::max<fp::index>(1, std::llround(channels / heads));
        return m;
    }
    void add(member m) { all_.push_back(std::move(m)); }
    std::vector<member> all() && { return std::move(all_); }

private:
    const options& o_;
    std::vector<member> all_;
};

}  // namespace experiment
