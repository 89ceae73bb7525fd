#pragma once

#include <fprnn/cuda/graph.hpp>

#include <algorithm>
#include <list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace fprnn::cuda::detail {

/// Its address stands for calls of this type.
template <class Calls>
inline constexpr char name_of_calls = 0;

/// What is known of calls of one type and of these sizes that have been made before.
struct known_calls {
    const void* name;
    std::vector<index> sizes;
    bool is_loaded = false;                  ///< they have been called to their end
    bool is_only_called = false;             ///< the host waits for something within, or they could not be captured
    index bytes = 0;                         ///< of memory that a pass asks for
    std::vector<executable_graph> graphs{};  ///< one after the other

    /// Of calls that are one graph.
    executable_graph& graph() {
        graphs.resize(1);
        return graphs.front();
    }
};

/// The calls that a device knows, latest last.
class known_graphs final : public kept_graphs {
public:
    static constexpr std::size_t most = 64;

    known_calls& find(const void* name, std::span<const index> sizes) {
        const auto same = std::find_if(known_.begin(), known_.end(), [&](const known_calls& k) {
            return k.name == name && std::equal(sizes.begin(), sizes.end(), k.sizes.begin(), k.sizes.end());
        });
        if (same != known_.end()) {
            known_.splice(known_.end(), known_, same);
            return known_.back();
        }
        if (known_.size() == most) known_.pop_front();
        return known_.emplace_back(known_calls{name, {sizes.begin(), sizes.end()}});
    }
    static known_graphs& of(const device& d) {
        auto& mine = d.context_->graphs;
        if (!mine) mine = std::make_shared<known_graphs>();
        return static_cast<known_graphs&>(*mine);
    }
    /// calls() as one graph: it is started, or nothing of it is. Without graphs, and where it cannot be
    /// captured, it is called.
    template <class Calls>
    static void call_at_once(const device& d, const Calls& calls) {
        d.flush();
        if (!d.context_->options.graphs || d.context_->is_captured) return calls();
        written_graph written;
        try {
            written = written_down(d, calls);
        } catch (const error& e) {  // a driver that cannot load a kernel now may do so when it is called
            if (!is_of_capture(e.code())) throw;
            return calls();
        }
        executable_graph& all = of(d).find(&name_of_calls<Calls>, {}).graph();
        all.become(d, written);
        all.start(d);
    }
    bool forget() override {
        bool any = false;
        for (known_calls& k : known_) {
            any = any || !k.graphs.empty();
            k.graphs.clear();
        }
        return any;
    }

private:
    std::list<known_calls> known_;
};

/// Programs of a graph. The next ones are written down while the GPU is busy with these.
inline constexpr int programs_of_a_graph = 32;
/// Graphs of a pass, of 4 KB a program. Those that come after them take their places, which what has been
/// started does not see.
inline constexpr std::size_t graphs_of_a_pass = 16;

/// A pass of tokens one by one, which is graphs once it has been called. What it calls is written down anew
/// every time, because addresses change; CUDA takes these over. When the host looks, or takes memory, what
/// has been called so far happens, and the rest is called as it comes.
class graphs_of_calls final : public called_pass {
public:
    graphs_of_calls(const device& d, known_calls& known)
        : device_(d), known_(known), memory_(d.allocate(known.bytes)), bytes_(known.bytes) {
        capture_next();
        device_.context_->pass = this;
    }
    ~graphs_of_calls() {
        device_.context_->pass = nullptr;
        graph_.reset();
        free_now();
    }
    graphs_of_calls(const graphs_of_calls&) = delete;
    graphs_of_calls& operator=(const graphs_of_calls&) = delete;

    /// Memory until the pass ends, null where there is none: there will be the next time.
    void* take(index bytes) {
        const index at = taken_;
        taken_ += (bytes + alignment - 1) / alignment * alignment;
        known_.bytes = std::max(known_.bytes, taken_);
        return taken_ <= bytes_ ? static_cast<char*>(memory_.data()) + at : nullptr;
    }
    void before_a_program() {
        if (!graph_ || programs_++ < programs_of_a_graph) return;
        finish();
        programs_ = 1;
        capture_next();
    }
    /// After all calls.
    void end() {
        finish();
        known_.is_loaded = true;
    }
    /// After an error, whether all may be called again: it was a capture that failed, with which nothing has
    /// happened of what it wrote down. Until then the calls are those of before, so that graphs that have
    /// been started are captured again and forgotten. The rest is called.
    bool begins_again() {
        if (!graph_) return false;
        known_.is_only_called = true;
        graph_.reset();
        happened_ = std::exchange(started_, 0);
        taken_ = 0;
        programs_ = 0;
        capture_next();
        return true;
    }

    void finish() override {
        if (!graph_) return;
        const written_graph calls = graph_->end();
        graph_.reset();
        const std::size_t number = started_++, place = number % graphs_of_a_pass;
        if (number < happened_) return;
        known_.graphs.resize(std::max(known_.graphs.size(), place + 1));
        executable_graph& mine = known_.graphs[place];
        mine.become(device_, calls);
        mine.start(device_);
        free_now();
    }
    void look() override {
        if (graph_) known_.is_only_called = true;
        finish();
    }
    bool frees(void* data) noexcept override {
        if (!graph_) return false;
        try {
            to_free_.push_back(data);
        } catch (...) {  // it is lost, which is better than what still uses it
        }
        return true;
    }

private:
    static constexpr index alignment = 256;

    /// What is called next, where it is known how or has happened.
    void capture_next() {
        if ((known_.is_loaded && !known_.is_only_called) || started_ < happened_) graph_.emplace(device_);
    }
    void free_now() {
        for (void* data : to_free_) (void)cudaFreeAsync(data, device_.stream());
        to_free_.clear();
    }

    const device& device_;
    known_calls& known_;
    allocation memory_;
    index bytes_, taken_ = 0;
    std::optional<capture> graph_;
    std::size_t started_ = 0, happened_ = 0;  ///< graphs, and those of before that all was called again
    int programs_ = 0;
    std::vector<void*> to_free_;
};

}  // namespace fprnn::cuda::detail
