#pragma once

#include <fprnn/cuda/graph.hpp>

#include <algorithm>
#include <list>
#include <optional>

namespace fprnn::cuda::detail {

/// Its address stands for calls of this type.
template <class Calls>
inline constexpr char name_of_calls = 0;

/// What is known of calls of one type, of so many tokens of so many rows, that have been made before.
struct known_calls {
    const void* name;
    index tokens, rows;
    bool is_looked_at = false;  ///< the host waits for something within
    index bytes = 0;            ///< of memory that belongs to a pass
    executable_graph graph{};
};

/// The calls that a device knows, latest last.
class all_known_calls {
public:
    static constexpr std::size_t most = 64;

    struct found {
        known_calls& calls;
        bool is_new;
    };
    found find(const void* name, index tokens, index rows) {
        const auto same = std::find_if(known_.begin(), known_.end(), [&](const known_calls& k) {
            return k.name == name && k.tokens == tokens && k.rows == rows;
        });
        if (same != known_.end()) {
            known_.splice(known_.end(), known_, same);
            return {known_.back(), false};
        }
        if (known_.size() == most) known_.pop_front();
        return {known_.emplace_back(known_calls{name, tokens, rows}), true};
    }

private:
    std::list<known_calls> known_;
};

/// A pass of tokens one by one, which is a graph unless nothing is known of it. What it calls is written down anew every time, because addresses
/// change; CUDA takes these over. When the host looks, or takes memory, what has been called so far happens, and the rest is called as it comes.
class graph_of_pass final : public pending {
public:
    graph_of_pass(const device& d, const all_known_calls::found& known)
        : device_(d), known_(known.calls), memory_(d.allocate(known_.bytes)), bytes_(known_.bytes) {
        if (!known.is_new && !known_.is_looked_at) graph_.emplace(d);
        device_.context_->pass = this;
    }
    ~graph_of_pass() { device_.context_->pass = nullptr; }
    graph_of_pass(const graph_of_pass&) = delete;
    graph_of_pass& operator=(const graph_of_pass&) = delete;

    /// Memory until the pass ends, null where there is none: there will be the next time.
    void* take(index bytes) {
        const index at = taken_;
        taken_ += (bytes + alignment - 1) / alignment * alignment;
        known_.bytes = std::max(known_.bytes, taken_);
        return taken_ <= bytes_ ? static_cast<char*>(memory_.data()) + at : nullptr;
    }
    void flush() override {
        if (graph_) known_.is_looked_at = true;
        finish();
    }
    /// What has not happened happens.
    void finish() {
        if (!graph_) return;
        const written_graph calls = graph_->end();
        graph_.reset();
        known_.graph.become(calls);
        known_.graph.start(device_);
    }

private:
    static constexpr index alignment = 256;

    const device& device_;
    known_calls& known_;
    allocation memory_;
    index bytes_, taken_ = 0;
    std::optional<capture> graph_;
};

}  // namespace fprnn::cuda::detail
