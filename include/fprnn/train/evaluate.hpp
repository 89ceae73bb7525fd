#pragma once

#include <fprnn/backend/default.hpp>
#include <fprnn/fixed_point/solution.hpp>
#include <fprnn/tape/parameters.hpp>
#include <fprnn/train/batch.hpp>
#include <fprnn/train/ranks.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace fprnn {

/// Shares in [0,1]; of nothing that counts a share is 0.
struct accuracies {
    double token = 0;     ///< share of right tokens among those that count
    double sequence = 0;  ///< share of sequences without a mistake among those of which a token counts
};

/// Of the first `prefix` tokens of every sequence; `answers` is [sequences, length], as in
/// cross_entropy_result. Errors: `answers` is not whole sequences, or they are shorter than the prefix.
inline accuracies measure_accuracy(const std::vector<answer>& answers, index sequences, index prefix) {
    const auto count = static_cast<index>(answers.size());
    require(sequences >= 0 && (sequences == 0 ? count == 0 : count % sequences == 0), "measure_accuracy", [&] {
        return "answers must hold sequences = " + std::to_string(sequences) + " of equal length, got " +
               std::to_string(count) + " entries";
    });
    require(prefix >= 0 && (sequences == 0 || prefix <= count / sequences), "measure_accuracy", [&] {
        return "prefix must be in [0," + std::to_string(sequences == 0 ? 0 : count / sequences) + "], got " +
               std::to_string(prefix);
    });
    index right = 0, tokens = 0, whole = 0, counted = 0;
    for (index b = 0; b < sequences; ++b) {
        const auto row = answers.begin() + b * (count / sequences);
        const index good = std::count(row, row + prefix, answer::right);
        const index bad = std::count(row, row + prefix, answer::wrong);
        right += good;
        tokens += good + bad;
        whole += good > 0 && bad == 0;
        counted += good + bad > 0;
    }
    const auto share = [](index part, index all) {
        return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
    };
    return {share(right, tokens), share(whole, counted)};
}

/// The middle of the values, the mean of the middle two when their number is even; 0 of none. Reorders them.
template <class N>
double median(std::vector<N>& values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    const auto upper = static_cast<double>(*middle);
    if (values.size() % 2) return upper;
    return (static_cast<double>(*std::max_element(values.begin(), middle)) + upper) / 2;
}

/// How the fixed points of some sequences were reached, all layers that have one together.
struct convergence_summary {
    double median_iterations = 0;  ///< of a sequence: the largest over its chunks
    double median_residual = 0;    ///< of a sequence: the largest over its chunks
    double largest_residual = 0;
    double share_converged = 0;  ///< of the tokens
};

namespace detail {
inline const convergence& convergence_of(const convergence& layer) { return layer; }
inline const convergence& convergence_of(const convergence* layer) { return *layer; }
inline bool has_iterated(const convergence& c) {
    return std::any_of(c.iterations.begin(), c.iterations.end(), [](int n) { return n > 0; });
}
}  // namespace detail

/// What a summary is made of, of one call or of several; a loop keeps it for its memory.
class convergence_sums {
public:
    void clear() {
        iterations_.clear();
        residuals_.clear();
        converged_ = 0;
    }
    /// Of a range of convergences, such as solutions, or pointers to them; a layer that did not iterate does
    /// not count.
    template <std::ranges::range Layers>
    void add(const Layers& layers) {
        for (const auto& layer : layers) {
            const convergence& c = detail::convergence_of(layer);
            // Without a fixed point nothing converges, and nothing has failed to.
            if (!detail::has_iterated(c)) continue;
            iterations_.insert(iterations_.end(), c.iterations.begin(), c.iterations.end());
            residuals_.insert(residuals_.end(), c.residual.begin(), c.residual.end());
            for (const index n : c.tokens_converged) converged_ += static_cast<double>(n);
        }
    }
    void put(detail::packed& to) const { to.put(iterations_).put(residuals_).put(converged_); }
    void add(detail::packed& from) {
        const auto iterations = from.get_vector<int>();
        const auto residuals = from.get_vector<double>();
        iterations_.insert(iterations_.end(), iterations.begin(), iterations.end());
        residuals_.insert(residuals_.end(), residuals.begin(), residuals.end());
        converged_ += from.get<double>();
    }
    /// None when no layer iterated. `length`: tokens a sequence. Reorders what it is made of.
    std::optional<convergence_summary> summary(index length) {
        if (iterations_.empty()) return std::nullopt;
        convergence_summary s;
        s.share_converged = converged_ / (static_cast<double>(iterations_.size()) * static_cast<double>(length));
        s.largest_residual = *std::max_element(residuals_.begin(), residuals_.end());
        s.median_residual = median(residuals_);
        s.median_iterations = median(iterations_);
        return s;
    }

private:
    // Of all sequences and such layers.
    std::vector<int> iterations_{};
    std::vector<double> residuals_{};
    double converged_ = 0;
};

/// Of one range of convergences, as in convergence_sums.
template <class Layers>
std::optional<convergence_summary> summarise(const Layers& layers, index length) {
    convergence_sums sums;
    sums.add(layers);
    return sums.summary(length);
}

/// What a model does with sequences of one length.
struct evaluation {
    index length = 0;
    index sequences = 0;
    accuracies accuracy;
    std::optional<convergence_summary> convergence;  ///< none for a model without a fixed point
    std::vector<answer> answers;                     ///< [sequences, length]; none of real targets
    double loss = 0;                                 ///< nats per token that counts, or the mean square; 0 of none
};

namespace detail {
/// Measures the sequences first … first + n − 1; `how` receives how the model's fixed points were reached.
template <class T, class Backend, class X, class Batch>
using measure_part =
    std::function<void(index first, index n, typename Batch::outcome& part, solutions<T, Backend, X>& how)>;

/// What evaluate makes of its parts, of any model and data; ranks measure a share of them each.
template <class T, class Backend, class X, class Batch>
evaluation evaluate_parts(index length, index sequences, const measure_part<T, Backend, X, Batch>& measure,
                          ranks* together) {
    require(length >= 1, "evaluate", [&] { return "length must be at least 1, got " + std::to_string(length); });
    require(sequences >= 1, "evaluate",
            [&] { return "sequences must be at least 1, got " + std::to_string(sequences); });
    (void)checked_product(sequences, length, "evaluate: sequences * length");
    const index batch = std::clamp<index>((index{1} << 16) / length, 1, 256), parts = (sequences - 1) / batch + 1;
    const auto mine =
        together ? share_of(parts, together->size(), together->rank()) : share_of_rank{.first = 0, .last = parts};
    typename Batch::outcome all, part;
    convergence_sums reached;
    for (index i = mine.first; i < mine.last; ++i) {
        solutions<T, Backend, X> how;
        measure(i * batch, std::min(batch, sequences - i * batch), part, how);
        Batch::append(all, part);
        reached.add(how);
    }
    if (together) {
        packed of_rank;
        Batch::put(of_rank, all);
        reached.put(of_rank);
        Batch::clear(all);
        reached.clear();
        for (auto& bytes : together->gather(of_rank.bytes())) {
            packed one(std::move(bytes));
            Batch::append(all, Batch::get(one));
            reached.add(one);
        }
    }
    evaluation e;
    e.length = length;
    e.sequences = sequences;
    e.convergence = reached.summary(length);
    e.loss = all.loss;
    if constexpr (Batch::has_classes) {
        e.accuracy = measure_accuracy(all.answers, sequences, length);
        e.answers = std::move(all.answers);
    }
    return e;
}

template <class X, class T, class Model, class Sample, backend_for<T> Backend>
evaluation evaluate(const Model& model, const parameter_tree<T>& theta, index length, index sequences, Sample&& sample,
                    Backend backend, ranks* together = nullptr) {
    static_assert(may_store<X, T, Backend>(), "evaluate: the backend does not store sequences as sequences_as says");
    static_assert(sampled<T, std::remove_reference_t<Sample>>::is_sampled,
                  "evaluate: sample must be callable as sample(fprnn::view<std::int32_t> tokens, "
                  "fprnn::view<std::int32_t> targets, std::uint64_t first), see fprnn/train/sampler.hpp");
    using batch = batch_of<T, std::remove_reference_t<Sample>>;
    batch data;
    return evaluate_parts<T, Backend, X, batch>(
        length, sequences,
        [&](index first, index n, typename batch::outcome& part, solutions<T, Backend, X>& how) {
            data.read(sample, n, length, static_cast<std::uint64_t>(first));
            const auto outputs = [&] {
                if constexpr (std::is_same_v<X, T>)
                    return model.evaluate(theta, std::as_const(data.inputs).view(), &how, backend);
                else
                    return model.evaluate(theta, std::as_const(data.inputs).view(), &how, backend, sequences_as<X>{});
            }();
            data.template measure<X>(outputs, backend, part);
        },
        together);
}
}  // namespace detail

/// Evaluates model.evaluate(theta, tokens, &how, backend) on the sequences 0 … sequences−1 of sample(tokens,
/// targets, first), see sampler, at most 256 of them and 2^16 tokens at a time, but at least one sequence, so
/// that of what is in memory only the answers and the convergence grow with their number. A model is asked to
/// store its sequences as X, by evaluate(theta, tokens, &how, backend, sequences_as<X>), where that is not T.
/// argument_error unless length and sequences are at least 1.
template <class T, class Model, class Sample, backend_for<T> Backend = default_backend, class X = T>
evaluation evaluate(const Model& model, const parameter_tree<T>& theta, index length, index sequences, Sample&& sample,
                    Backend backend = Backend{}, sequences_as<X> = {}) {
    return detail::evaluate<X>(model, theta, length, sequences, sample, backend);
}

}  // namespace fprnn
