#pragma once

#include <fprnn/backend/backend.hpp>
#include <fprnn/core/tensor.hpp>
#include <fprnn/cuda/device.hpp>
#include <fprnn/cuda/pass.hpp>
#include <fprnn/cuda/program.hpp>
#include <fprnn/cuda/row.hpp>

#include <algorithm>
#include <cstddef>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace fprnn::cuda {

/// Iterations between two looks of the host. Who is done changes no more, and has his rows evaluated again.
inline constexpr int unseen_iterations = 4;

}  // namespace fprnn::cuda

namespace fprnn::cuda::detail {

/// Bytes that one program may have: a kernel's arguments are 4 KB, and it has others.
inline constexpr int program_bytes = 4032;

/// What executes a call, and what starts programs of such calls. Both come from one source file: a kernel
/// knows how many registers the functions of its own file need.
struct code {
    step function;
    void (*start)(const device&, index rows, const char* calls, int size);
};

/// Of body.row<Team>(row, worker), of a row's share of a body of one long row, and of the calls that go on
/// elsewhere; backend.cuh has them for a GPU, tests for threads of the host. Inlined, so that what a program
/// calls comes from the source file that has the expression.
template <class T, class Body>
[[gnu::always_inline]] inline code code_of_rows(const device& d);
template <class T, class Body>
[[gnu::always_inline]] inline code code_of_share(const device& d);
template <class T>
[[gnu::always_inline]] inline code code_of_while(const device& d);
template <class T>
[[gnu::always_inline]] inline code code_of_back(const device& d);

/// Writes down what is called for `rows` rows, and starts it as programs when somebody needs to know that it
/// has happened.
class recorder final : public pending {
public:
    recorder(const device& d, index rows) : device_(d), rows_(rows) {}
    recorder(const recorder&) = delete;
    recorder& operator=(const recorder&) = delete;

    index rows() const { return rows_; }
    /// Of one long row every row has an equal share.
    void require_whole(const char* operation, index channels) const {
        if (channels % rows_ != 0)
            throw std::logic_error(std::string("cuda: ") + operation + " of " + std::to_string(channels) +
                                   " numbers within by_rows of " + std::to_string(rows_));
    }

    template <class Body>
    void add(const code& c, const Body& body) {
        if (end() >= largest && !looping_) flush();
        write(c, body);
        if (!looping_) units_.push_back({calls_.size() - 1, calls_.size()});
    }

    /// The calls again and again for the rows whose running[row] is set.
    template <class T, class Calls>
    void repeat(const code& begin, const code& back, const T* running, const Calls& calls) {
        const int at = end();
        const std::size_t first = calls_.size();
        write(begin, while_running<T>{running, 0});
        looping_ = true;
        calls();
        looping_ = false;
        write(back, back_to{end() - at});
        reinterpret_cast<call_of<while_running<T>>*>(bytes_.data() + at)->body.behind = end() - at;
        units_.push_back({first, calls_.size(), running,
                          [](const device& d, index n, const void* x) { return d.any(n, static_cast<const T*>(x)); }});
    }

    /// Starts what has been written down.
    void flush() override {
        if (looping_) throw std::logic_error("cuda: what a loop of rows calls must be the rows' own");
        const auto units = std::exchange(units_, {});
        const auto calls = std::exchange(calls_, {});
        const auto bytes = std::exchange(bytes_, {});
        span program{0, 0, nullptr};
        const auto start = [&] {
            if (!program.start) return;
            if (graphs_of_calls* pass = pass_of_device()) pass->before_a_program();
            program.start(device_, rows_, bytes.data() + program.begin, program.end - program.begin);
            program.start = nullptr;
        };
        const auto append = [&](const span& next) {
            if (next.start != program.start || next.end - program.begin > program_bytes) {
                start();
                program = next;
            }
            program.end = next.end;
        };
        for (const unit& u : units) {
            const span *first = calls.data() + u.first, *behind = calls.data() + u.behind;
            const span all{first->begin, (behind - 1)->end, first->start};
            const bool one_program = all.end - all.begin <= program_bytes &&
                                     std::all_of(first, behind, [&](const span& s) { return s.start == all.start; });
            if (!u.any || one_program) {
                append(all);
                continue;
            }
            start();  // The host goes through a loop that is too long for a program.
            while (u.any(device_, rows_, u.running))
                for (int i = 0; i < unseen_iterations; ++i) {
                    std::for_each(first + 1, behind - 1, append);
                    start();
                }
        }
        start();
    }

    /// The workers' sums [workers, width] that are added to `to` in the end. Zeros the first time.
    template <class T>
    T* sums(index width, T* to) {
        for (const sum& s : sums_)
            if (s.to == to && s.width == width) return static_cast<T*>(s.parts);
        const index bytes = checked_product(device_.workers(rows_) * width, sizeof(T), "cuda: sums");
        sum s{to, width, nullptr, {}, [](const device& d, index workers, const sum& all) {
                  add_workers(d, all.width, workers, static_cast<T*>(all.parts), static_cast<T*>(all.to));
              }};
        if (graphs_of_calls* pass = pass_of_device()) s.parts = pass->take(bytes);
        if (!s.parts) s.parts = (s.memory = device_.allocate(bytes)).data();
        device_.clear_now(s.parts, bytes);
        return static_cast<T*>(sums_.emplace_back(std::move(s)).parts);
    }
    /// Once everything has been started.
    void add_sums() {
        for (const sum& s : sums_) s.add(device_, device_.workers(rows_), s);
    }

private:
    /// Bytes of calls that the same source file executes.
    struct span {
        int begin, end;
        void (*start)(const device&, index, const char*, int);
    };
    /// A call, or a loop of those between its first and its last.
    struct unit {
        std::size_t first, behind;
        const void* running = nullptr;
        bool (*any)(const device&, index, const void*) = nullptr;
    };
    struct sum {
        void* to;
        index width;
        void* parts;
        allocation memory;  ///< of its own, or none
        void (*add)(const device&, index, const sum&);
    };
    /// Where what is written down is started without being asked for.
    static constexpr int largest = 1 << 16;

    graphs_of_calls* pass_of_device() const { return static_cast<graphs_of_calls*>(device_.context_->pass); }
    int end() const { return static_cast<int>(bytes_.size()); }
    template <class Body>
    void write(const code& c, const Body& body) {
        static_assert(sizeof(call_of<Body>) <= program_bytes,
                      "a body is no more than what a kernel takes as arguments");
        const int at = end();
        bytes_.resize(bytes_.size() + sizeof(call_of<Body>));
        ::new (static_cast<void*>(bytes_.data() + at)) call_of<Body>{c.function, body};
        calls_.push_back({at, end(), c.start});
    }

    const device& device_;
    index rows_;
    buffer<char> bytes_;
    std::vector<span> calls_;
    std::vector<unit> units_;
    bool looping_ = false;
    std::vector<sum> sums_;
};

}  // namespace fprnn::cuda::detail
