#pragma once

#include <fprnn/cuda/team.hpp>

#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

/// Kernel bodies run on the host, so that tests and ThreadSanitizer see them: a team is a few threads,
/// several teams run at the same time.
namespace host {

/// What the threads of a team share.
struct crew {
    struct alignas(16) term {
        unsigned char bytes[512];
    };

    crew(int number, int of_block, std::size_t shared_bytes)
        : block(number),
          size(of_block),
          all(of_block),
          shared(new std::max_align_t[shared_bytes / sizeof(std::max_align_t) + 1]),
          terms(static_cast<std::size_t>(of_block)) {}

    int block, size;
    std::barrier<> all;
    std::unique_ptr<std::max_align_t[]> shared;
    std::vector<term> terms;
};

/// One of a crew.
class team {
public:
    team() : rank_(here_.rank), crew_(here_.all) {}

    /// body() as rank `rank` of `all`.
    template <class Body>
    static void enter(int rank, crew& all, const Body& body) {
        const auto before = here_;
        here_ = {rank, &all};
        body();
        here_ = before;
    }

    int block() const { return crew_->block; }
    int rank() const { return rank_; }
    int size() const { return crew_->size; }
    void barrier() const { crew_->all.arrive_and_wait(); }
    void* shared() const { return crew_->shared.get(); }

    template <class T, class Operation>
    T reduce(T x, Operation operation) const {
        x = combine(x, operation, 0, size() - 1);
        barrier();
        return x;
    }
    template <class T, class Operation>
    T scan(T x, Operation operation, int n) const {
        return combine(x, operation, rank_ - rank_ % n, rank_);
    }

    static fprnn::index take(fprnn::cuda::counter& c) {
        return static_cast<fprnn::index>(std::atomic_ref(c).fetch_add(1, std::memory_order_relaxed));
    }
    static void publish(fprnn::cuda::flag& f) { std::atomic_ref(f).store(1, std::memory_order_release); }
    static void wait(fprnn::cuda::flag& f) {
        while (std::atomic_ref(f).load(std::memory_order_acquire) == 0) std::this_thread::yield();
    }

private:
    template <class T, class Operation>
    T combine(T x, Operation operation, int first, int last) const {
        static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(crew::term),
                      "reduce and scan: a term has more bytes than crew::term; make that larger");
        const auto at = [&](int i) { return crew_->terms[static_cast<std::size_t>(i)].bytes; };
        std::memcpy(at(rank_), &x, sizeof x);
        barrier();
        std::memcpy(&x, at(first), sizeof x);
        for (int i = first + 1; i <= last; ++i) {
            T next;
            std::memcpy(&next, at(i), sizeof next);
            x = operation(x, next);
        }
        return x;
    }

    struct place {
        int rank;
        crew* all;
    };
    static inline thread_local place here_{};
    int rank_;
    crew* crew_;
};
static_assert(fprnn::cuda::team<team>);

/// Some body, so that threads are compiled once.
struct any_body {
    const void* body;
    void (*call)(const void*, const team&);
};
inline void launch(int blocks, int of_block, std::size_t shared_bytes, any_body body) {
    const auto run = [body](int rank, crew& all) { team::enter(rank, all, [&] { body.call(body.body, team()); }); };
    if (blocks == 1 && of_block == 1) {
        crew alone(0, 1, shared_bytes);
        return run(0, alone);
    }
    std::vector<std::unique_ptr<crew>> crews;
    std::vector<std::jthread> running;
    for (int b = 0; b < blocks; ++b) {
        crews.push_back(std::make_unique<crew>(b, of_block, shared_bytes));
        for (int rank = 0; rank < of_block; ++rank) running.emplace_back(run, rank, std::ref(*crews.back()));
    }
}
/// What a launch is to a GPU: body(team) on every thread of every block, all at the same time.
template <class Body>
void launch(int blocks, int of_block, std::size_t shared_bytes, const Body& body) {
    launch(blocks, of_block, shared_bytes,
           any_body{&body, [](const void* b, const team& team) { (*static_cast<const Body*>(b))(team); }});
}

}  // namespace host
