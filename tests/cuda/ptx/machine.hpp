#pragma once

#include "module.hpp"
#include "traffic.hpp"

#include <cstring>
#include <map>
#include <random>
#include <type_traits>
#include <vector>

namespace ptx {

/// What is done to memory. With each other atomic accesses do not race.
enum class use : std::uint8_t { read, write, atomic_read, atomic_write };

/// An access to memory. Of several threads, or of several blocks, that is all that is kept.
struct access {
    static constexpr std::uint16_t several = 0xffff;
    std::uint16_t block = 0, thread = 0;  ///< counted from one; 0: nobody
    std::uint32_t interval = 0;           ///< how many barriers the block had behind it
};
/// The last accesses to a byte.
struct cell {
    access write, read, atomic_write;
};

/// What lies in memory, and who was there within this launch.
struct region {
    const char* begin = nullptr;
    std::size_t bytes = 0;
    cell* cells = nullptr;
    bool holds(const char* at, std::size_t n) const {
        return at >= begin && n <= bytes && static_cast<std::size_t>(at - begin) <= bytes - n;
    }
};

/// By block: how many of its intervals are over for one who has waited for it.
using clock = std::vector<std::uint32_t>;

struct block;
class machine;

struct thread {
    enum class state : std::uint8_t { running, at_barrier, at_shuffle, done };
    struct back {
        const function* f;
        const instruction* next;
        std::uint64_t* registers;
        const call* through;
    };

    std::uint64_t* registers = nullptr;  ///< of the frame
    const instruction* next = nullptr;
    const function* f = nullptr;
    state is = state::running;
    std::uint16_t rank = 0;
    block* of = nullptr;
    char *stack = nullptr, *stack_end = nullptr;
    std::vector<back> callers;
    clock seen;  ///< through what this thread has acquired
    std::array<std::uint32_t, 4> shuffle{};

    template <class T>
    T get(const operand& o) const {
        const std::uint64_t bits = registers[o.slot] + o.plus;
        if constexpr (std::is_same_v<T, bool>) return bits != 0;
        T value;
        std::memcpy(&value, &bits, sizeof value);
        return value;
    }
    template <class T>
    void set(const operand& o, T value) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, &value, sizeof value);
        registers[o.slot] = bits;
    }

    char* frame_memory() const { return reinterpret_cast<char*>(registers[frame]); }
    /// Whether these bytes are local memory or parameters, of a function that has not returned.
    bool owns(const char* at, std::size_t bytes) const;
    void enter(const function& callee);
    void leave();
};

struct block {
    machine* of = nullptr;
    std::uint16_t number = 0;
    std::uint32_t interval = 0;
    std::vector<thread> threads;
    std::vector<std::uint16_t> running;  ///< ranks
    std::size_t alive = 0, waiting = 0;
    std::vector<char> shared = std::vector<char>(dynamic_shared);
    std::vector<cell> shared_cells;
    std::size_t variables = 0, dynamic = 0;  ///< bytes of shared memory
    clock seen;                              ///< by all threads since a barrier
};

/// What launches did, and of races the first few in words.
struct report {
    std::uint64_t launches = 0, instructions = 0, races = 0;
    std::vector<std::string> words;
    void race(const std::string& what) {
        if (++races <= 5) words.push_back(what);
    }
};

/// Executes launches: a few blocks at a time, whose threads take turns at random. An access outside of an
/// allocation or a misaligned one, a barrier that not all threads of a block reach and one that they reach at
/// different places are errors. Races are counted: accesses to the same byte, one of them a write and one not
/// atomic, by threads of which neither has waited for the other, at a barrier or by acquiring what was
/// released. What a block does before its last barrier is released; a thread's own writes since then count as
/// not, which is more than PTX asks for, as is that a write follows the reads of several blocks by itself
/// having waited for each.
class machine {
public:
    static constexpr std::size_t resident = 3;

    machine(const std::map<void*, std::size_t>& memory, unsigned seed) : memory_(memory), random_(seed) {}

    /// Errors: ptx::error with kernel, block, thread and instruction.
    void launch(const module& m, const function& kernel, const void* const* arguments, std::uint32_t blocks,
                std::uint32_t threads, std::size_t shared_bytes);

    report done;
    /// What kernels ask of memory, by their names; counted if `counts_traffic`, which takes time.
    std::map<std::string, traffic> asked;
    bool counts_traffic = false;

    // For instructions.

    /// Where an address of a thread is, which has just been checked.
    char* memory_at(thread& t, std::uint64_t address, std::size_t bytes, use u, const instruction& i);
    char* shared_at(thread& t, std::uint64_t address, std::size_t bytes, use u);
    void arrive(thread& t);
    enum class way { up, down };
    void shuffle(thread& t, const instruction& i, way w);
    void publish(const thread& t, std::uint64_t flag);
    void withdraw(std::uint64_t flag);
    void acquire(thread& t, std::uint64_t flag);

private:
    struct hit {
        std::uint64_t launch = 0;
        region where;
    };

    void start(block& b, const module& m, const function& kernel, const void* const* arguments, std::uint32_t number);
    void run(thread& t, std::uint32_t turns);
    void sleep(thread& t, thread::state why);
    void open(block& b);
    void watch(const thread& t, cell* cells, std::size_t offset, std::size_t bytes, use u);
    static traffic_counter::who who_asks(const thread& t);
    static bool follows(const thread& t, const access& before);
    const region& region_of(const char* at, std::size_t bytes, const instruction& i);
    region watched(const void* begin, std::size_t bytes);
    std::string where(const thread& t) const;

    const std::map<void*, std::size_t>& memory_;
    std::minstd_rand random_;
    const module* module_ = nullptr;
    std::array<block, resident> blocks_;
    std::uint32_t grid_ = 0, size_ = 0;
    std::size_t shared_bytes_ = 0;
    std::vector<hit> hits_;  ///< where an instruction was last
    std::map<const char*, std::vector<cell>> cells_;
    std::map<std::uint64_t, clock> published_;
    traffic_counter traffic_;
    std::unique_ptr<char[]> stacks_;
    std::size_t stacks_bytes_ = 0;
};

}  // namespace ptx
