#pragma once

#include <fprnn/cuda/backend.hpp>
#include <fprnn/cuda/tokens.hpp>
#include <fprnn/train/trainer.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

/// A training whose parameters stay on a device.
namespace fprnn::cuda::detail {

/// A tree's numbers as rows of `length`, of which the last is shorter.
struct stretches {
    static constexpr index length = 4096;
    index count;

    FPRNN_BOTH static index first(index r) { return r * length; }
    FPRNN_BOTH index of(index r) const { return count - first(r) < length ? count - first(r) : length; }
    index rows() const { return (count + length - 1) / length; }
};

/// Of every stretch Σ x².
template <class T>
struct squares_row {
    stretches all;
    const T* x;
    T* sums;

    template <class Team>
    FPRNN_BOTH void row(index r, index) const {
        const T* mine = x + stretches::first(r);
        const auto sum = Team::template sum<1>(all.of(r), [&](auto lane) {
            const auto a = lane.load(mine);
            return small_array{a * a};
        });
        Team::once([&] { sums[r] = sum[0]; });
    }
};

/// AdamW's step for `clip` times the gradient. `finite` receives 0 of a stretch whose parameters are finite,
/// else NaN.
template <class T>
struct adamw_row {
    stretches all;
    adamw_step<T> step;
    T keep, clip;
    const T* gradient;
    T *m, *v, *x, *finite;

    template <class Team>
    FPRNN_BOTH void row(index r, index) const {
        const index first = stretches::first(r);
        const T* g = gradient + first;
        T *m_ = m + first, *v_ = v + first, *x_ = x + first;
        const auto taint = Team::template sum<1>(all.of(r), [&](auto lane) {
            using X = decltype(lane.load(g));
            X m1 = lane.load(m_), v1 = lane.load(v_), x1 = lane.load(x_);
            step(X(keep), X(clip) * lane.load(g), m1, v1, x1);
            lane.store(m_, m1);
            lane.store(v_, v1);
            lane.store(x_, x1);
            return small_array{x1 * X(T(0))};
        });
        Team::once([&] { finite[r] = taint[0]; });
    }
};

}  // namespace fprnn::cuda::detail

namespace fprnn::detail {

/// Parameters, moments and gradient stay on the device. `theta` and `memory` are copies of the training's;
/// their numbers are those of the last fetch(), and the training has those of the last hand_over(), which are
/// of one step.
template <class T>
class updates_on<T, cuda::device> {
    using device = cuda::device;

public:
    parameter_tree<T> theta;
    training_memory<T> memory;
    parameters_on<T, device> there;

    updates_on(device& on, parameter_tree<T>& theta_, training_memory<T>& memory_)
        : theta(theta_),
          memory(memory_),
          there(on, theta),
          on_(on),
          training_theta_(theta_),
          training_memory_(memory_),
          n_(theta.size()),
          m_(on, n_),
          v_(on, n_),
          last_good_(on, n_),
          per_stretch_(on, static_cast<index>(theta.entries().size()) + cuda::detail::stretches{n_}.rows()) {
        on.put(n_, memory.optimiser.first_moment().data(), m_.data());
        on.put(n_, memory.optimiser.second_moment().data(), v_.data());
        on.put(n_, memory.last_good.data(), last_good_.data());
        for (const auto& e : memory.optimiser.first_moment().entries()) {
            if (runs_.empty() || runs_.back().decay != e.decay) runs_.push_back({e.offset, 0, e.decay});
            runs_.back().count += e.shape.count();
        }
    }

    void remember() { on_.copy(n_, there.data(), last_good_.data()); }
    template <class X>
    std::optional<std::string> measure(tape<T, device, X>& t, double max_norm, double& norm) {
        const cuda::detail::stretches all{n_};
        on_.rows<T>(all.rows(), cuda::detail::squares_row<T>{all, t.parameter_bar_data(), per_stretch_.data()});
        const auto sums = on_.seen(all.rows(), per_stretch_.data());
        double sum = 0;
        for (index r = 0; r < all.rows(); ++r) sum += static_cast<double>(sums[r]);
        norm = std::sqrt(sum);
        // Squares may leave the range of T where they do not leave that of double.
        if (!math::is_finite(norm) ||
            sum < static_cast<double>(std::numeric_limits<T>::min()) * static_cast<double>(n_)) {
            const parameter_tree<T>& gradient = t.fetch_gradient();
            if (auto name = first_nonfinite(gradient)) return name;
            norm = global_norm(gradient);
        }
        clip_ = norm > max_norm && math::is_finite(norm) ? static_cast<T>(max_norm / norm) : T(1);
        return std::nullopt;
    }
    template <class X>
    std::optional<std::string> step(tape<T, device, X>& t, double learning_rate) {
        const adamw_step<T> update = memory.optimiser.next(learning_rate);
        const T* gradient = t.parameter_bar_data();
        index stretches = 0;
        for (const run& r : runs_) {
            const cuda::detail::stretches all{r.count};
            on_.rows<T>(all.rows(),
                        cuda::detail::adamw_row<T>{all, update, update.keep(r.decay), clip_, gradient + r.offset,
                                                   m_.data() + r.offset, v_.data() + r.offset, there.data() + r.offset,
                                                   per_stretch_.data() + stretches});
            stretches += all.rows();
        }
        if (!on_.any<T>(stretches, per_stretch_.data())) return std::nullopt;
        fetch();
        return first_nonfinite(theta);
    }
    void fetch() {
        const auto here = [&](const T* from, parameter_tree<T>& to) {
            const auto seen = on_.seen(n_, from);
            std::copy(seen.begin(), seen.end(), to.begin());
        };
        here(there.data(), theta);
        here(last_good_.data(), memory.last_good);
        parameter_tree<T> m = memory.optimiser.first_moment(), v = memory.optimiser.second_moment();
        here(m_.data(), m);
        here(v_.data(), v);
        memory.optimiser.restore(memory.optimiser.steps(), m, v);
    }
    void hand_over() {
        training_theta_ = theta;
        training_memory_ = memory;
    }

private:
    /// Parameters that stand together and all decay, or none does.
    struct run {
        index offset, count;
        bool decay;
    };
    using numbers = cuda::detail::numbers<T>;

    device& on_;
    parameter_tree<T>& training_theta_;
    training_memory<T>& training_memory_;
    index n_;
    numbers m_, v_, last_good_, per_stretch_;
    std::vector<run> runs_;
    T clip_ = 1;
};

}  // namespace fprnn::detail
