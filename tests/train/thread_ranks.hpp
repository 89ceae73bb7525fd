#pragma once

#include <fprnn/train/ranks.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace fprnn::testing {

/// Ranks that are threads of one process.
class thread_ranks final : public ranks {
public:
    using bytes = std::vector<std::byte>;

    /// What all of them have in common: messages that have not been received.
    struct hub {
        std::mutex mutex;
        std::condition_variable arrived;
        std::map<std::pair<index, index>, std::deque<bytes>> messages;  ///< by from and to
    };

    thread_ranks(std::shared_ptr<hub> all, index rank, index size) : hub_(std::move(all)), rank_(rank), size_(size) {}

    index rank() const override { return rank_; }
    index size() const override { return size_; }
    void send(std::span<const std::byte> what, index to) override {
        const std::lock_guard lock(hub_->mutex);
        hub_->messages[{rank_, to}].emplace_back(what.begin(), what.end());
        hub_->arrived.notify_all();
    }
    void receive(std::span<std::byte> what, index from) override {
        const bytes message = next_from(from);
        require(message.size() == what.size(), "receive", [] { return std::string("a message of another size"); });
        std::copy(message.begin(), message.end(), what.begin());
    }
    void broadcast(std::span<std::byte> what) override {
        if (rank_ > 0) return receive(what, 0);
        for (index r = 1; r < size_; ++r) send(what, r);
    }
    std::vector<bytes> gather(std::span<const std::byte> what) override {
        for (index r = 0; r < size_; ++r) send(what, r);
        std::vector<bytes> all;
        for (index r = 0; r < size_; ++r) all.push_back(next_from(r));
        return all;
    }

private:
    bytes next_from(index from) {
        std::unique_lock lock(hub_->mutex);
        auto& queue = hub_->messages[{from, rank_}];
        hub_->arrived.wait(lock, [&] { return !queue.empty(); });
        bytes message = std::move(queue.front());
        queue.pop_front();
        return message;
    }

    std::shared_ptr<hub> hub_;
    index rank_, size_;
};

/// Calls body(ranks&) on so many of them; throws what the lowest rank has thrown, when all are at their ends.
template <class Body>
void on_ranks(index size, Body body) {
    const auto all = std::make_shared<thread_ranks::hub>();
    std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(size));
    std::vector<std::thread> threads;
    for (index r = 0; r < size; ++r)
        threads.emplace_back([&, r] {
            thread_ranks mine(all, r, size);
            try {
                body(mine);
            } catch (...) {
                thrown[static_cast<std::size_t>(r)] = std::current_exception();
            }
        });
    for (std::thread& t : threads) t.join();
    for (const auto& e : thrown)
        if (e) std::rethrow_exception(e);
}

}  // namespace fprnn::testing
