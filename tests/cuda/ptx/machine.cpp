#include "machine.hpp"

#include <algorithm>
#include <utility>

namespace ptx {
namespace {

constexpr std::size_t stack_bytes = std::size_t(1) << 18, warp = 32;

void join(clock& to, const clock& other) {
    if (to.size() < other.size()) to.resize(other.size());
    for (std::size_t i = 0; i < other.size(); ++i) to[i] = std::max(to[i], other[i]);
}

}  // namespace

void thread::enter(const function& callee) {
    if (callee.body.empty()) throw error("a call of " + callee.name + ", which has no body");
    std::uint64_t* caller = registers;
    char* begin = stack;
    if (caller) begin = frame_memory() + (f->frame_bytes + 15) / 16 * 16;
    registers = reinterpret_cast<std::uint64_t*>(begin);
    char* memory = begin + (callee.registers * sizeof(std::uint64_t) + 15) / 16 * 16;
    if (memory + callee.frame_bytes + 16 > stack_end) throw error("the stack is full, at " + callee.name);
    std::memset(memory, 0xff, callee.frame_bytes);
    if (caller) std::copy(caller, caller + specials, registers);
    registers[zero] = 0;
    registers[frame] = reinterpret_cast<std::uintptr_t>(memory);
    f = &callee;
    next = callee.body.data();
}

void thread::leave() {
    if (callers.empty()) {
        is = state::done;
        return;
    }
    const back to = callers.back();
    callers.pop_back();
    const char* from = frame_memory();
    const function& callee = *f;
    f = to.f, next = to.next, registers = to.registers;
    for (std::size_t k = 0; k < to.through->results.size(); ++k)
        std::memcpy(frame_memory() + to.through->results[k].offset, from + callee.results.at(k).offset,
                    callee.results[k].bytes);
}

bool thread::owns(const char* at, std::size_t bytes) const {
    const auto within = [&](const std::uint64_t* r, const function& its) {
        return region{reinterpret_cast<const char*>(r[frame]), its.frame_bytes}.holds(at, bytes);
    };
    return within(registers, *f) ||
           std::any_of(callers.begin(), callers.end(), [&](const back& b) { return within(b.registers, *b.f); });
}

std::string machine::where(const thread& t) const {
    const auto at = static_cast<std::size_t>(t.next - t.f->body.data());
    const auto& entry = t.callers.empty() ? *t.f : *t.callers.front().f;
    return entry.name + (t.callers.empty() ? "" : ", in " + t.f->name) + ", block " + std::to_string(t.of->number) +
           ", thread " + std::to_string(t.rank) + ": " + (at > 0 ? t.f->source[at - 1] : "its begin");
}

void machine::launch(const module& m, const function& kernel, const void* const* arguments, std::uint32_t blocks,
                     std::uint32_t threads, std::size_t shared_bytes) {
    if (blocks >= access::several || threads > 1024)
        throw error(kernel.name + ": more blocks or threads than there are");
    ++done.launches;
    module_ = &m;
    if (m.shared_bytes > dynamic_shared) throw error("variables in shared memory take more than there is");
    grid_ = blocks, size_ = threads, shared_bytes_ = shared_bytes;
    hits_.resize(std::max<std::size_t>(hits_.size(), m.instructions));
    cells_.clear(), published_.clear();
    traffic_.begin(threads);
    if (const auto bytes = resident * threads * stack_bytes; stacks_bytes_ < bytes) {
        stacks_.reset(new char[bytes]);  // of which most is never touched
        stacks_bytes_ = bytes;
    }

    std::vector<block*> active;
    std::uint32_t started = 0;
    for (; started < std::min<std::size_t>(resident, blocks); ++started) {
        active.push_back(&blocks_[started]);
        start(*active.back(), m, kernel, arguments, started);
    }
    while (!active.empty()) {
        block*& b = active[random_() % active.size()];
        if (!b->running.empty()) {
            run(b->threads[b->running[random_() % b->running.size()]], 1 + static_cast<std::uint32_t>(random_() % 64));
        } else if (b->alive > 0) {
            const auto stuck = std::find_if(b->threads.begin(), b->threads.end(),
                                            [](const thread& t) { return t.is != thread::state::done; });
            throw error(where(*stuck) + ": it waits for threads that do not come");
        } else {
            if (counts_traffic) traffic_.end(b->number);
            if (started < blocks) {
                start(*b, m, kernel, arguments, started++);
            } else {
                b = active.back();
                active.pop_back();
            }
        }
    }
    if (counts_traffic) asked[kernel.name] += std::exchange(traffic_.done, {});
}

void machine::start(block& b, const module& m, const function& kernel, const void* const* arguments,
                    std::uint32_t number) {
    const auto place = static_cast<std::size_t>(&b - blocks_.data());
    b.of = this;
    b.number = static_cast<std::uint16_t>(number);
    b.interval = 0;
    b.variables = m.shared_bytes, b.dynamic = shared_bytes_;
    b.shared.resize(std::max(b.shared.size(), dynamic_shared + b.dynamic));
    b.shared_cells.resize(b.shared.size());
    for (const auto& [begin, bytes] : {std::pair(std::size_t(0), b.variables), {dynamic_shared, b.dynamic}}) {
        std::fill_n(b.shared.data() + begin, bytes, char(0xff));
        std::fill_n(b.shared_cells.data() + begin, bytes, cell{});
    }
    b.seen.clear();
    b.alive = size_, b.waiting = 0;
    b.threads.assign(size_, {});
    b.running.resize(size_);
    for (std::uint32_t r = 0; r < size_; ++r) {
        thread& t = b.threads[r];
        b.running[r] = t.rank = static_cast<std::uint16_t>(r);
        t.of = &b;
        t.stack = stacks_.get() + (place * size_ + r) * stack_bytes;
        t.stack_end = t.stack + stack_bytes;
        t.enter(kernel);
        t.registers[tid] = r, t.registers[ntid] = size_;
        t.registers[ctaid] = number, t.registers[nctaid] = grid_;
        t.registers[laneid] = r % warp;
        for (std::size_t k = 0; k < kernel.parameters.size(); ++k)
            std::memcpy(t.frame_memory() + kernel.parameters[k].offset, arguments[k], kernel.parameters[k].bytes);
    }
}

void machine::run(thread& t, std::uint32_t turns) {
    try {
        for (; turns > 0 && t.is == thread::state::running; --turns) {
            const instruction& i = *t.next++;
            ++done.instructions;
            if (t.registers[i.guard] == i.when) i.execute(t, i);
        }
    } catch (const error& e) {
        throw error(where(t) + ": " + e.what());
    }
    if (t.is == thread::state::done) {
        --t.of->alive;
        sleep(t, t.is);
        if (t.of->waiting > 0) throw error(where(t) + ": it ends, where others wait at a barrier");
    }
}

void machine::sleep(thread& t, thread::state why) {
    t.is = why;
    auto& running = t.of->running;
    *std::find(running.begin(), running.end(), t.rank) = running.back();
    running.pop_back();
}

void machine::arrive(thread& t) {
    if (t.of->alive < t.of->threads.size()) throw error("a barrier, where other threads have ended");
    sleep(t, thread::state::at_barrier);
    if (++t.of->waiting == t.of->alive) open(*t.of);
}
void machine::open(block& b) {
    const thread& first = b.threads.front();
    for (thread& t : b.threads) {
        const bool same = t.next == first.next &&
                          std::equal(t.callers.begin(), t.callers.end(), first.callers.begin(), first.callers.end(),
                                     [](const auto& mine, const auto& its) { return mine.next == its.next; });
        if (!same) throw error("a barrier that thread 0 does not wait at, but at another one");
        join(b.seen, t.seen);
    }
    for (thread& t : b.threads) {
        t.seen = b.seen;
        t.is = thread::state::running;
        b.running.push_back(t.rank);
    }
    b.waiting = 0;
    ++b.interval;
}

/// Value, distance, the warp's segments with their last lane, and the lanes that take part.
void machine::shuffle(thread& t, const instruction& i, way w) {
    for (std::size_t k = 0; k < 4; ++k) t.shuffle[k] = t.get<std::uint32_t>(i.at[k + 1]);
    const std::uint32_t mask = t.shuffle[3];
    const std::size_t first = t.rank / warp * warp, lanes = std::min(warp, t.of->threads.size() - first);
    if (!(mask >> (t.rank - first) & 1)) throw error("a shuffle without the lane that executes it");
    sleep(t, thread::state::at_shuffle);
    thread* const all = t.of->threads.data() + first;
    for (std::size_t lane = 0; lane < lanes; ++lane)
        if (mask >> lane & 1)
            if (all[lane].is != thread::state::at_shuffle || all[lane].next != t.next || all[lane].shuffle[3] != mask)
                return;
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        if (!(mask >> lane & 1)) continue;
        const std::uint32_t segment = all[lane].shuffle[2] >> 8 & 31, last = all[lane].shuffle[2] & 31;
        const std::uint32_t limit = (lane & segment) | (last & ~segment), by = all[lane].shuffle[1] & 31;
        std::uint32_t from = lane;  // up to the limit
        if (w == way::down && lane + by <= limit) from = lane + by;
        if (w == way::up && lane >= limit + by) from = lane - by;
        if (from >= lanes || !(mask >> from & 1)) throw error("a shuffle from a lane that takes no part");
        all[lane].set(i.at[0], all[from].shuffle[0]);
    }
    for (std::uint32_t lane = 0; lane < lanes; ++lane)
        if (mask >> lane & 1) {
            all[lane].is = thread::state::running;
            t.of->running.push_back(all[lane].rank);
        }
}

void machine::publish(const thread& t, std::uint64_t flag) {
    clock& c = published_[flag] = t.seen;
    if (c.size() <= t.of->number) c.resize(t.of->number + std::size_t(1));
    c[t.of->number] = std::max(c[t.of->number], t.of->interval);
}
void machine::withdraw(std::uint64_t flag) { published_.erase(flag); }
void machine::acquire(thread& t, std::uint64_t flag) {
    if (const auto found = published_.find(flag); found != published_.end()) join(t.seen, found->second);
}

/// Whether a thread has waited for what was done. What a block does, others know by its intervals.
bool machine::follows(const thread& t, const access& before) {
    if (before.block == 0) return true;
    if (before.block == t.of->number + 1) return before.thread == t.rank + 1 || before.interval < t.of->interval;
    return before.block != access::several && before.block <= t.seen.size() &&
           before.interval < t.seen[before.block - std::size_t(1)];
}

void machine::watch(const thread& t, cell* cells, std::size_t offset, std::size_t bytes, use u) {
    const access now{static_cast<std::uint16_t>(t.of->number + 1), static_cast<std::uint16_t>(t.rank + 1),
                     t.of->interval};
    const bool writes = u == use::write || u == use::atomic_write, plain = u == use::read || u == use::write;
    const char* races = nullptr;
    for (std::size_t k = offset; k < offset + bytes; ++k) {
        cell& c = cells[k];
        if (!follows(t, c.write)) races = "a race with a write";
        if (plain && !follows(t, c.atomic_write)) races = "a race with an atomic write";
        if (writes && !follows(t, c.read)) races = "a race with a read";
        if (u == use::write) c = {now, {}, {}};
        if (u == use::atomic_write) c.atomic_write = now;
        if (u != use::read) continue;
        const access before = std::exchange(c.read, now);
        if (before.block != 0 && before.block != now.block && !follows(t, before))
            c.read.block = access::several;
        else if (before.block == now.block && before.thread != now.thread && before.interval == now.interval)
            c.read.thread = access::several;
    }
    if (races) done.race(where(t) + ": " + races);
}

region machine::watched(const void* begin, std::size_t bytes) {
    auto& cells = cells_[static_cast<const char*>(begin)];
    cells.resize(bytes);
    return {static_cast<const char*>(begin), bytes, cells.data()};
}
const region& machine::region_of(const char* at, std::size_t bytes, const instruction& i) {
    hit& last = hits_[i.number];
    if (last.launch == done.launches && last.where.holds(at, bytes)) return last.where;
    const auto holds = [&](const void* begin, std::size_t n) {
        return region{static_cast<const char*>(begin), n}.holds(at, bytes);
    };
    const auto found = [&](const void* begin, std::size_t n) -> const region& {
        last = {done.launches, watched(begin, n)};
        return last.where;
    };
    const auto behind = memory_.upper_bound(const_cast<char*>(at));
    if (behind != memory_.begin())
        if (const auto& [begin, n] = *std::prev(behind); holds(begin, n)) return found(begin, n);
    for (const auto& [name, global] : module_->globals)
        if (holds(global.memory.get(), global.bytes)) return found(global.memory.get(), global.bytes);
    throw error("there is nothing of " + std::to_string(bytes) + " bytes at this address");
}

traffic_counter::who machine::who_asks(const thread& t) { return {t.of->number, t.rank, t.next[-1].number}; }

char* machine::shared_at(thread& t, std::uint64_t address, std::size_t bytes, use u) {
    block& b = *t.of;
    if (address % bytes) throw error("misaligned in shared memory");
    const bool within =
        address >= dynamic_shared ? address - dynamic_shared + bytes <= b.dynamic : address + bytes <= b.variables;
    if (!within) throw error("outside of shared memory");
    watch(t, b.shared_cells.data(), address, bytes, u);
    if (counts_traffic) traffic_.shared(who_asks(t), address, bytes);
    return b.shared.data() + address;
}
char* machine::memory_at(thread& t, std::uint64_t address, std::size_t bytes, use u, const instruction& i) {
    char* at = reinterpret_cast<char*>(address);
    const auto& shared = t.of->shared;
    if (at >= shared.data() && at < shared.data() + shared.size())
        return shared_at(t, static_cast<std::uint64_t>(at - shared.data()), bytes, u);
    if (address % bytes) throw error("misaligned");
    if (at >= t.stack && at < t.stack_end) {
        if (!t.owns(at, bytes)) throw error("outside of local memory");
        return at;
    }
    const region& here = region_of(at, bytes, i);
    watch(t, here.cells, static_cast<std::size_t>(at - here.begin), bytes, u);
    // Who waits looks again and again, by chance.
    if (counts_traffic && u != use::atomic_read) traffic_.global(who_asks(t), address, bytes, u != use::read);
    return at;
}

}  // namespace ptx
