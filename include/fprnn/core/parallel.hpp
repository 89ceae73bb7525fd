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

#include <pthread.h>

namespace fprnn {

/// Threads that share the index range of one parallel loop at a time. Which thread takes which index is not
/// fixed: work that must give the same bits for any number of threads writes to memory of its own for every
/// index.
///
/// fork() waits for the loops of other threads and ends all workers; the next loop starts them again, in the
/// parent and in the child. Not promised: a fork while a loop's body makes or ends a pool, and one from
/// inside of a loop, whose child may only call what POSIX allows it, such as execve and _exit.
class thread_pool {
public:
    /// `threads` counts the calling thread; 1 starts none. A thread that the system does not start is done
    /// without: loops do the same work on fewer, and threads() says on how many.
    explicit thread_pool(int threads) {
        require(threads >= 1, "thread_pool",
                [&] { return "threads must be at least 1, got " + std::to_string(threads); });
        if (threads == 1) return;
        const std::lock_guard lock(pools_);
        if (!ends_workers_at_fork()) return;
        start(threads - 1);
        threads_ = static_cast<int>(workers_.size()) + 1;
        if (threads_ == 1) return;
        next_ = first_;
        if (next_) next_->previous_ = this;
        first_ = this;
    }
    ~thread_pool() {
        if (threads_ == 1) return;
        {
            const std::lock_guard lock(pools_);
            (previous_ ? previous_->next_ : first_) = next_;
            if (next_) next_->previous_ = previous_;
        }
        workers_.clear();
    }
    thread_pool(const thread_pool&) = delete;
    thread_pool& operator=(const thread_pool&) = delete;

    /// Those that there are, the calling one among them: as many as asked for, or fewer.
    int threads() const { return threads_; }

    /// Calls body(i), or body(i, thread), for every i in [0,n), the caller taking part. Threads are numbered
    /// from 0 as they join the loop, so `thread` is below min(n, threads()). Returns when all are done and
    /// rethrows the first exception; indices not begun by then are skipped. Loops of several callers run one
    /// after the other; a loop inside of a loop runs on its own thread alone.
    template <class Body>
    void for_each(index n, Body&& body) {
        if (n <= 0) return;
        if (threads_ == 1 || n == 1 || inside) {
            for (index i = 0; i < n; ++i) call(body, i, 0);
            return;
        }
        loop work{n, const_cast<void*>(static_cast<const void*>(std::addressof(body))),
                  [](void* f, index i, index t) { call(*static_cast<std::remove_reference_t<Body>*>(f), i, t); }};
        std::lock_guard one_at_a_time(callers_);
        if (workers_.empty()) start(threads_ - 1);  // ended by a fork
        {
            std::lock_guard lock(mutex_);
            current_ = &work;
            ++generation_;
        }
        wake_.notify_all();
        work.run();
        {
            std::lock_guard lock(mutex_);
            current_ = nullptr;
        }
        if (!soon([&] { return running_ == 0; })) {
            std::unique_lock lock(mutex_);
            idle_.wait(lock, [&] { return running_ == 0; });
        }
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

    void start(int workers) {
        try {
            for (int i = 0; i < workers; ++i)
                workers_.emplace_back([this](const std::stop_token& stop) { serve(stop); });
        } catch (const std::system_error&) {
            // A limit on processes or on memory, which the next one would meet, too.
        }
    }

    /// Asks the system once; without its consent pools have no workers.
    static bool ends_workers_at_fork() {
        static const bool noted = ::pthread_atfork(before_fork, after_fork, after_fork) == 0;
        return noted;
    }
    static void before_fork() {
        if (inside) return;
        pools_.lock();
        for (auto* pool = first_; pool; pool = pool->next_) {
            pool->callers_.lock();
            pool->workers_.clear();
        }
    }
    static void after_fork() {
        if (inside) return;
        for (auto* pool = first_; pool; pool = pool->next_) pool->callers_.unlock();
        pools_.unlock();
    }

    void serve(const std::stop_token& stop) {
        std::uint64_t seen = 0;
        const auto is_next = [&] { return generation_ != seen; };
        std::unique_lock lock(mutex_);
        while (wake_.wait(lock, stop, is_next)) {
            seen = generation_;
            if (loop* work = current_) {
                ++running_;
                lock.unlock();
                work->run();
                lock.lock();
                if (--running_ == 0) idle_.notify_one();
            }
            lock.unlock();
            (void)soon(is_next);  // loops that follow each other closely find their threads awake
            lock.lock();
        }
    }
    static void pause() {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
    }
    /// Waits for a short time, in which a thread is not put to sleep, until `condition` holds; says whether
    /// it does.
    template <class Condition>
    static bool soon(const Condition& condition) {
        constexpr int turns = 2000;
        for (int i = 0; i < turns; ++i) {
            if (condition()) return true;
            pause();
        }
        return condition();
    }

    static inline thread_local bool inside = false;  ///< of a loop of any pool

    // Pools with workers. Nothing here has a destructor, so that forks may come as late as they like.
    static inline std::mutex pools_;
    static inline thread_pool* first_ = nullptr;
    thread_pool* next_ = nullptr;
    thread_pool* previous_ = nullptr;

    int threads_ = 1;
    std::mutex callers_;  ///< held in a loop, and where workers start and end
    std::mutex mutex_;
    std::condition_variable_any wake_;
    std::condition_variable_any idle_;
    loop* current_ = nullptr;
    std::atomic<std::uint64_t> generation_ = 0;
    std::atomic<int> running_ = 0;
    std::vector<std::jthread> workers_;
};

}  // namespace fprnn
