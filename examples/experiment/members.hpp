#pragma once

#include "colours.hpp"
#include "exhibits.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

/// What exhibits are made of.
namespace experiment {

/// The iteration of the authors in training: of whole sequences, to 0.1, with one step of the adjoint; in
/// tests up to 1000 evaluations.
inline void use_authors_iteration(options& o) {
    const defaults use{o};
    use("--schedule", o.schedule.length, fp::whole_sequence);
    use("--tolerance", o.schedule.tolerance, 0.1);
    use("--adjoint", o.one_step, true);
    use("--test-ell-max", o.test_ell_max, 1000);
}

/// Heads, keys and widths of the authors' baselines: values of the delta rule are twice as wide as keys,
/// heads of Mamba-2 have 64 channels. Who gives --d-inner gives --heads as well.
inline void use_paper_widths(options& m) {
    using enum architecture::block;
    const defaults use{m};
    auto& size = m.model.size;
    if (m.given.contains("--d-inner")) return;
    switch (m.model.kind) {
        case delta_product:
        case deltanet:
        case gated_deltanet:
        case gated_delta_product:
            use("--heads", size.heads,
                m.data.task == data_options::kind::copy         ? 16
                : m.data.task == data_options::kind::arithmetic ? 4
                                                                : 12);
            use("--d-state", size.d_state, 32);
            size.d_inner = 64 * size.heads;
            return;
        case fp_mamba2:
        case mamba2: use("--heads", size.heads, std::max<fp::index>(1, size.d_inner / 64)); return;
        case lstm: size.d_inner = size.d_model; return;
        case transformer:
            if (m.data.task != data_options::kind::arithmetic) use("--d-model", size.d_model, 1024);
            size.d_inner = size.d_model;
            use("--heads", size.heads, 8);
            return;
        default: return;
    }
}

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
        m.model.sees_y = {};
        m.model.size.layers = layers;
        use_model(m, model);
        if (o_.paper_size) use_paper_widths(m);
        give_room(m);
        solve_by_token(m);
        return m;
    }
    /// Baselines of growing depth, of which each is one curve.
    void add_depths(const std::string& model, const std::string& label, const std::string& colour) {
        for (const int layers : {1, 2, 4, 6, 8}) {
            if (layers > 4 && !o_.paper_size) return;
            add_baseline(model, label, colour, layers).out += "_" + std::to_string(layers);
        }
    }

    /// With `factor` times as many channels inside, as near as its heads allow, so that parameters are as
    /// many as FP-Mamba's at the default size. In the paper's size as wide as all.
    options& add_wide_baseline(const std::string& model, std::string label, std::string colour, int layers,
                               double factor) {
        options& m = add_baseline(model, std::move(label), std::move(colour), layers);
        if (o_.paper_size) return m;
        auto& size = m.model.size;
        const fp::index least = m.model.kind == architecture::block::transformer ? 2 * size.heads
                                : m.model.kind == architecture::block::mlstm
                                    ? std::lcm(size.heads, fp::index{architecture::mlstm_rows})
                                    : size.heads;
        const double channels = factor * static_cast<double>(size.d_inner);
        size.d_inner = least * std::max<fp::index>(1, std::llround(channels / static_cast<double>(least)));
        return m;
    }
    void add(member m) { all_.push_back(std::move(m)); }
    std::vector<member> all() && { return std::move(all_); }

private:
    /// An LSTM is a fixed point, too, which is found token by token and differentiated exactly: what is asked
    /// of FP-Mamba's iteration, such as one step of the adjoint, would take its gradient through time.
    static void solve_by_token(options& m) {
        const options standard;
        const defaults use{m};
        use("--schedule", m.schedule.length, standard.schedule.length);
        use("--tolerance", m.schedule.tolerance, standard.schedule.tolerance);
        use("--adjoint", m.one_step, standard.one_step);
        m.draws_ell_max = false;
    }

    const options& o_;
    std::vector<member> all_;
};

}  // namespace experiment
