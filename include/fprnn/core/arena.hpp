#pragma once

#include <fprnn/core/tensor.hpp>

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

namespace fprnn {

/// Hands out consecutive arrays of one buffer, each on a cache line. Without a buffer it only counts, so that
/// the same code first measures and then lays out.
template <class T>
class arena {
public:
    explicit arena(T* base = nullptr) : base_(base) {}

    T* take(index n) {
        T* p = base_ ? base_ + used_ : nullptr;
        constexpr index line = 64 / static_cast<index>(sizeof(T));
        used_ += (n + line - 1) / line * line;
        return p;
    }
    /// Room for n objects of another type, which nobody has made yet.
    template <class U>
    U* take_room(index n) {
        static_assert(alignof(U) <= 64);
        constexpr auto size = static_cast<index>(sizeof(T));
        return reinterpret_cast<U*>(take((n * static_cast<index>(sizeof(U)) + size - 1) / size));
    }
    index used() const { return used_; }

private:
    T* base_;
    index used_ = 0;
};

/// Buffers that are used again, the smallest that fits first. Leases that are taken and given back in the
/// same order and sizes as once before ask for no memory: what they held then is at hand, or something
/// larger.
template <class T>
class scratch_pool {
public:
    /// The one that all layers share.
    static scratch_pool& shared() {
        static auto& pool = *new scratch_pool;  // never destroyed: records may outlive everything static
        return pool;
    }
    /// Frees the buffers that are not leased.
    void clear() {
        std::lock_guard lock(mutex_);
        free_.clear();
        if (leased_ == 0) free_.shrink_to_fit();
    }

    /// A buffer of at least n numbers, not initialised, given back at the end of its life.
    class lease {
    public:
        lease(scratch_pool& pool, index n) : pool_(pool), memory_(pool.take(static_cast<std::size_t>(n))) {
#ifndef NDEBUG  // nothing may depend on what was there
            std::fill_n(memory_.data(), memory_.size(), std::numeric_limits<T>::quiet_NaN());
#endif
        }
        ~lease() { pool_.give(std::move(memory_)); }
        lease(const lease&) = delete;
        lease& operator=(const lease&) = delete;
        T* data() { return memory_.data(); }

    private:
        scratch_pool& pool_;
        buffer<T> memory_;
    };

private:
    buffer<T> take(std::size_t n) {
        std::lock_guard lock(mutex_);
        buffer<T> memory;
        if (free_.empty()) {
            free_.reserve(leased_ + 1);  // here, because giving back must not fail
        } else {
            auto best = free_.end();
            for (auto it = free_.begin(); it != free_.end(); ++it)
                if (it->size() >= n && (best == free_.end() || it->size() < best->size())) best = it;
            if (best == free_.end())
                best = std::max_element(free_.begin(), free_.end(),
                                        [](const auto& a, const auto& b) { return a.size() < b.size(); });
            memory = std::move(*best);
            free_.erase(best);
        }
        if (memory.size() < n) memory = buffer<T>(n);
        ++leased_;
        return memory;
    }
    void give(buffer<T> memory) {
        std::lock_guard lock(mutex_);
        --leased_;
        free_.push_back(std::move(memory));
    }

    std::mutex mutex_;
    std::vector<buffer<T>> free_;
    std::size_t leased_ = 0;
};

}  // namespace fprnn
