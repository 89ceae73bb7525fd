#pragma once

#include <fprnn/core/shape.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

#include <unistd.h>

namespace fprnn {

/// Threads that share the index range of one parallel loop at a time. Which thread takes which index is not fixed:
/// work that must give the same bits for any number of threads writes to memory of its own for every index.
///
/// A process that was forked from one with a pool may use, copy and destroy it: the pool's threads do not exist there, and the first
/// loop starts others. Not promised: a fork from inside of a loop, or while another thread is in one.
class thread_pool {
public:
    /// `threads` counts the calling thread; 1 starts none. A thread that the system does not start is done without: loops
    /// do the same work on fewer, and threads() says on how many.
    explicit thread_pool(int threads) {
        require(threads >= 1, "thread_pool",
                [&] { return "threads must be at least 1, got " + std::to_string(threads); });
        crew_ = new crew(threads);
    }
    thread_pool(const thread_pool&) = delete;
    thread_pool& operator=(const thread_pool&) = delete;
    ~thread_pool() {
        crew* const last = crew_;
        if (last->is_of_this_process())
            delete last;
        else
            last->abandon();
    }

    /// Those that there are, the calling one among them: as many as asked for, or fewer.
    int threads() const { return crew_.load()->threads(); }

    /// Calls body(i), or body(i, thread), for every i in [0,n), the caller taking part. Threads are numbered from 0 as they
    /// join the loop, so `thread` is below min(n, threads()). Returns when all are done and rethrows the first exception;
    /// indices not begun by then are skipped. Loops of several callers run one after the other; a loop inside of a loop
    /// runs on its own thread alone.
    template <class Body>
    void for_each(index n, Body&& body) {
        if (n <= 0) return;
        if (n == 1 || inside || crew_.load()->threads() == 1) {
            for (index i = 0; i < n; ++i) call(body, i, 0);
            return;
        }
        loop work{n, const_cast<void*>(static_cast<const void*>(std::addressof(body))),
                  [](void* f, index i, index t) { call(*static_cast<std::remove_reference_t<Body>*>(f), i, t); }};
        here().run(work);
        if (work.failure) std::rethrow_exception(work.failure);
    }

    /// body(i, thread), or body(i) where that is all it takes.
    template <class Body>
    static void call(Body& body, index i, index thread) {
        if constexpr (std::is_invocable_v<Body&, index, index>)
            body(i, thread);
        else
            body(i);
    }

private:
    struct loop {
        index n;
        void* body;
        void (*call)(void*, index, index);
        std::atomic<index> next{0};
        std::atomic<index> joined{0};
        std::mutex failure_mutex{};
        std::exception_ptr failure{};

        void run() {
            inside = true;
            index thread = -1;  // numbered when it has an index, so that there are no more numbers than indices
            for (index i = next.fetch_add(1); i < n; i = next.fetch_add(1)) {
                if (thread < 0) thread = joined.fetch_add(1);
                try {
                    call(body, i, thread);
                } catch (...) {
                    std::lock_guard lock(failure_mutex);
                    if (!failure) failure = std::current_exception();
                    next = n;
                }
            }
            inside = false;
        }
    };

    /// The threads of one process, and what they wait for. After a fork its locks may be held by threads that are no more.
    class crew {
    public:
        explicit crew(int threads) : wanted_(threads) {
            try {
                for (int i = 1; i < threads; ++i)
                    workers_.emplace_back([this](const std::stop_token& stop) { serve(stop); });
            } catch (const std::system_error&) {
                // A limit on processes or on memory, which the next one would meet, too.
            }
        }
        bool is_of_this_process() const { return process_ == ::getpid(); }
        int threads() const { return static_cast<int>(workers_.size()) + 1; }
        int wanted() const { return wanted_; }

        void run(loop& work) {
            std::lock_guard one_at_a_time(callers_);
            {
                std::lock_guard lock(mutex_);
                current_ = &work;
                ++generation_;
            }
            wake_.notify_all();
            work.run();
            std::unique_lock lock(mutex_);
            current_ = nullptr;
            idle_.wait(lock, [&] { return running_ == 0; });
        }

        /// Threads of another process can be neither joined nor detached: they are kept for ever, where leaks are not looked for.
        void abandon() { next_abandoned_ = abandoned.exchange(this); }

    private:
        void serve(const std::stop_token& stop) {
            std::uint64_t seen = 0;
            std::unique_lock lock(mutex_);
            while (wake_.wait(lock, stop, [&] { return generation_ != seen; })) {
                seen = generation_;
                loop* work = current_;
                if (!work) continue;
                ++running_;
                lock.unlock();
                work->run();
                lock.lock();
                if (--running_ == 0) idle_.notify_one();
            }
        }

        static inline std::atomic<crew*> abandoned = nullptr;

        const ::pid_t process_ = ::getpid();
        const int wanted_;
        crew* next_abandoned_ = nullptr;
        std::mutex callers_;
        std::mutex mutex_;
        std::condition_variable_any wake_;
        std::condition_variable_any idle_;
        loop* current_ = nullptr;
        std::uint64_t generation_ = 0;
        int running_ = 0;
        std::vector<std::jthread> workers_;
    };

    /// The threads of this process.
    crew& here() {
        crew* now = crew_;
        if (now->is_of_this_process()) return *now;
        auto own = std::make_unique<crew>(now->wanted());
        if (!crew_.compare_exchange_strong(now, own.get())) return *now;  // another caller was first
        now->abandon();
        return *own.release();
    }

    static inline thread_local bool inside = false;  ///< of a loop of any pool

    std::atomic<crew*> crew_ = nullptr;
};

}  // namespace fprnn
