#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace ptx {

/// What the warps of launches ask of memory. An instruction of a warp asks for whole sectors of 32 bytes of
/// global memory, each of them once, and for words of shared memory, of which a turn brings one from each of
/// 32 banks. What a thread spills does not count.
struct traffic {
    std::uint64_t read = 0, written = 0;  ///< bytes of global memory
    std::uint64_t first_read = 0,
                  first_written =
                      0;  ///< bytes of different sectors, launch by launch: what has to move without a cache's help
    std::uint64_t turns = 0,
                  least_turns =
                      0;  ///< of shared memory: with banks as they are, and as many as there were without conflicts

    traffic& operator+=(const traffic& other) {
        for_each(other, [](std::uint64_t& a, std::uint64_t b) { a += b; });
        return *this;
    }
    friend traffic operator-(traffic later, const traffic& earlier) {
        later.for_each(earlier, [](std::uint64_t& a, std::uint64_t b) { a -= b; });
        return later;
    }

private:
    template <class F>
    void for_each(const traffic& other, const F& f) {
        for (auto member : {&traffic::read, &traffic::written, &traffic::first_read, &traffic::first_written,
                            &traffic::turns, &traffic::least_turns})
            f(this->*member, other.*member);
    }
};

/// Counts it. Lanes are taken to execute an instruction together that each of them executes for the same
/// time, as they do unless they diverge.
class traffic_counter {
public:
    traffic done;

    /// Of a block, a thread and an instruction of it, whose numbers are small.
    struct who {
        std::uint32_t block, thread, instruction;
    };
    void global(const who& w, std::uint64_t address, std::size_t bytes, bool writes);
    void shared(const who& w, std::uint64_t address, std::size_t bytes);
    /// A launch begins: of blocks of so many threads, and with nothing read yet.
    void begin(std::uint32_t threads);
    /// A block has ended.
    void end(std::uint32_t block);

private:
    struct lane {
        std::uint32_t number;
        std::uint64_t address;
    };
    struct request {
        bool is_shared, writes;
        std::size_t bytes;
        std::vector<lane> lanes;
    };
    void ask(const who& w, request now, lane one);
    void answer(const request& r);

    std::uint32_t threads_ = 0;
    std::unordered_map<std::uint64_t, std::uint32_t> times_;  ///< by block, thread and instruction
    std::unordered_map<std::uint32_t, std::unordered_map<std::uint64_t, request>>
        open_;  ///< by block; of a warp, an instruction and a time
    std::unordered_set<std::uint64_t> seen_read_, seen_written_;
};

}  // namespace ptx
