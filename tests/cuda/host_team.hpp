#pragma once

#include <fprnn/cuda/team.hpp>

#include <atomic>
#include <barrier>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

/// Kernel bodies run on the host, so that tests and ThreadSanitizer see them: a team is a few threads, several teams run at
/// the same time.
namespace host {

class team {
public:
    team(int rank, int size, void* shared, std::barrier<>& all)
        : rank_(rank), size_(size), shared_(shared), all_(&all) {}

    int rank() const { return rank_; }
    int size() const { return size_; }
    void barrier() const { all_->arrive_and_wait(); }
    void* shared() const { return shared_; }

    static fprnn::index take(fprnn::cuda::counter& c) {
        return static_cast<fprnn::index>(std::atomic_ref(c).fetch_add(1, std::memory_order_relaxed));
    }
    static void publish(fprnn::cuda::flag& f) { std::atomic_ref(f).store(1, std::memory_order_release); }
    static void wait(fprnn::cuda::flag& f) {
        while (std::atomic_ref(f).load(std::memory_order_acquire) == 0) std::this_thread::yield();
    }

private:
    int rank_, size_;
    void* shared_;
    std::barrier<>* all_;
};
static_assert(fprnn::cuda::team<team>);

/// What a launch is to a GPU: body(team) on every thread of every block, all at the same time.
template <class Body>
void launch(int blocks, int of_block, std::size_t shared_bytes, const Body& body) {
    struct block {
        std::unique_ptr<std::max_align_t[]> shared;
        std::barrier<> all;
    };
    std::vector<std::unique_ptr<block>> memory;
    std::vector<std::jthread> running;
    for (int b = 0; b < blocks; ++b) {
        const std::size_t units = shared_bytes / sizeof(std::max_align_t) + 1;
        memory.push_back(std::unique_ptr<block>(
            new block{std::unique_ptr<std::max_align_t[]>(new std::max_align_t[units]), std::barrier<>(of_block)}));
        for (int rank = 0; rank < of_block; ++rank)
            running.emplace_back([&body, rank, of_block, m = memory.back().get()] {
                body(team(rank, of_block, m->shared.get(), m->all));
            });
    }
}

}  // namespace host
