#include "allocations.hpp"

#include <sanitized.hpp>

#include <fprnn/backend/eigen.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#if defined(__GLIBC__) && !FPRNN_SANITIZED
#define FPRNN_COUNT_MALLOC 1
#else
#define FPRNN_COUNT_MALLOC 0
#endif

namespace {

constexpr long never = std::numeric_limits<long>::max();
std::atomic<long> allocated{0}, freed{0}, fails_from{never}, fails_until{never};

/// Counts an allocation; whether it may be made.
bool begin() {
    const long number = ++allocated;
    const bool fails = number >= fails_from && number <= fails_until;
    if (fails) ++freed;
    return !fails;
}
void end(void* memory) {
    if (memory) ++freed;
}

}  // namespace

namespace allocations {

bool malloc_is_counted() { return FPRNN_COUNT_MALLOC; }
long count() { return allocated; }
long live() { return allocated - freed; }
void fail_at(long n, bool all_after) {
    const long first = allocated + n;
    fails_until = all_after ? never : first;
    fails_from = first;
}
bool stop_failing() {
    const long first = fails_from.exchange(never);
    return allocated >= first;
}

}  // namespace allocations

#if FPRNN_COUNT_MALLOC

// glibc's own names, for programs that replace malloc.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);

void* malloc(std::size_t n) { return begin() ? __libc_malloc(n) : nullptr; }
void* calloc(std::size_t n, std::size_t size) { return begin() ? __libc_calloc(n, size) : nullptr; }
void* realloc(void* old, std::size_t n) {
    if (!begin()) return nullptr;
    end(old);
    return __libc_realloc(old, n);
}
void* memalign(std::size_t alignment, std::size_t n) { return begin() ? __libc_memalign(alignment, n) : nullptr; }
void* aligned_alloc(std::size_t alignment, std::size_t n) { return memalign(alignment, n); }
int posix_memalign(void** memory, std::size_t alignment, std::size_t n) {
    *memory = memalign(alignment, n);
    return *memory ? 0 : 12;  // ENOMEM
}
void free(void* memory) {
    end(memory);
    __libc_free(memory);
}
}

#else

namespace {

void* try_allocate(std::size_t n, std::align_val_t alignment = std::align_val_t{16}) {
    if (!begin()) return nullptr;
    const auto a = static_cast<std::size_t>(alignment);
    return std::aligned_alloc(a, (n / a + 1) * a);
}
void* allocate(std::size_t n, std::align_val_t alignment = std::align_val_t{16}) {
    if (void* memory = try_allocate(n, alignment)) return memory;
    throw std::bad_alloc();
}
void give_back(void* memory) {
    end(memory);
    std::free(memory);
}

}  // namespace

// All forms, because a sanitizer has its own of each.
using size = std::size_t;
using aligned = std::align_val_t;
using quiet = const std::nothrow_t&;
void* operator new(size n) { return allocate(n); }
void* operator new[](size n) { return allocate(n); }
void* operator new(size n, aligned a) { return allocate(n, a); }
void* operator new[](size n, aligned a) { return allocate(n, a); }
void* operator new(size n, quiet) noexcept { return try_allocate(n); }
void* operator new[](size n, quiet) noexcept { return try_allocate(n); }
void* operator new(size n, aligned a, quiet) noexcept { return try_allocate(n, a); }
void* operator new[](size n, aligned a, quiet) noexcept { return try_allocate(n, a); }
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete[](void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, size) noexcept { give_back(memory); }
void operator delete[](void* memory, size) noexcept { give_back(memory); }
void operator delete(void* memory, aligned) noexcept { give_back(memory); }
void operator delete[](void* memory, aligned) noexcept { give_back(memory); }
void operator delete(void* memory, size, aligned) noexcept { give_back(memory); }
void operator delete[](void* memory, size, aligned) noexcept { give_back(memory); }
void operator delete(void* memory, quiet) noexcept { give_back(memory); }
void operator delete[](void* memory, quiet) noexcept { give_back(memory); }
void operator delete(void* memory, aligned, quiet) noexcept { give_back(memory); }
void operator delete[](void* memory, aligned, quiet) noexcept { give_back(memory); }

#endif

namespace {

void* volatile seen = nullptr;  // pairs of new and delete whose memory nobody sees may be optimised away

/// `make` returns what owns one allocation.
template <class Make>
void check_counted(Make&& make) {
    const long count = allocations::count(), live = allocations::live();
    long made = 0, alive = 0;
    {
        const auto owner = make();
        seen = const_cast<void*>(static_cast<const void*>(&*owner));
        made = allocations::count() - count;
        alive = allocations::live() - live;
    }
    const long left = allocations::live() - live;
    CHECK(made == 1);
    CHECK(alive == 1);
    CHECK(left == 0);
}

struct alignas(128) wide {
    char bytes[256];
};

TEST_CASE("allocations: every form of new is counted, and so is what Eigen takes") {
    check_counted([] { return std::unique_ptr<int>(new int); });
    check_counted([] { return std::unique_ptr<int>(new (std::nothrow) int); });
    check_counted([] { return std::make_shared<int>(); });
    check_counted([] { return std::unique_ptr<wide>(new wide); });
    check_counted([] { return std::unique_ptr<wide>(new (std::nothrow) wide); });
    check_counted([] { return std::make_optional(std::vector<int>(10)); });
    check_counted([] { return std::make_optional(fprnn::tensor<float>({3, 5})); });
    if (!allocations::malloc_is_counted()) {
        MESSAGE("skipped: a sanitizer has replaced malloc, so that what Eigen takes from it is not counted");
        return;
    }
    using from_malloc = std::unique_ptr<int, decltype(&std::free)>;
    check_counted([] { return from_malloc(static_cast<int*>(std::malloc(10)), &std::free); });
    check_counted([] { return from_malloc(static_cast<int*>(std::calloc(10, 4)), &std::free); });
    check_counted([] { return from_malloc(static_cast<int*>(std::aligned_alloc(64, 128)), &std::free); });
    check_counted([] { return std::make_optional<Eigen::VectorXd>(100); });
}

TEST_CASE("allocations: the n-th fails with std::bad_alloc, alone or with all that follow") {
    const long live = allocations::live();
    for (const bool all_after : {false, true}) {
        allocations::fail_at(2, all_after);
        bool first = true, second = false, third = false;
        const auto allocate = [] {
            try {
                const std::vector<wide> v(3);
                seen = const_cast<wide*>(v.data());
                return true;
            } catch (const std::bad_alloc&) {
                return false;
            }
        };
        first = allocate();
        second = allocate();
        if (!all_after) third = allocate();
        CHECK(allocations::stop_failing());
        CHECK(first);
        CHECK_FALSE(second);
        CHECK(third == !all_after);
    }
    CHECK_FALSE(allocations::stop_failing());
    CHECK(allocations::live() == live);
}

}  // namespace
