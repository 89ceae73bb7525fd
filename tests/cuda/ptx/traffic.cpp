#include "traffic.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace ptx {
namespace {

constexpr std::uint32_t warp = 32;
constexpr std::uint64_t sector = 32, word = 4, banks = 32;

}  // namespace

void traffic_counter::global(const who& w, std::uint64_t address, std::size_t bytes, bool writes) {
    ask(w, {false, writes, bytes, {}}, {w.thread % warp, address});
}
void traffic_counter::shared(const who& w, std::uint64_t address, std::size_t bytes) {
    ask(w, {true, false, bytes, {}}, {w.thread % warp, address});
}

void traffic_counter::begin(std::uint32_t threads) {
    threads_ = threads;
    times_.clear(), open_.clear(), seen_read_.clear(), seen_written_.clear();
}
void traffic_counter::end(std::uint32_t block) {
    for (const auto& [key, r] : open_[block]) answer(r);
    open_.erase(block);
    std::erase_if(times_, [&](const auto& of) { return of.first >> 48 == block; });
}

void traffic_counter::ask(const who& w, request now, lane one) {
    const std::uint32_t time = times_[std::uint64_t(w.block) << 48 | std::uint64_t(w.thread) << 32 | w.instruction]++;
    const std::uint64_t key = std::uint64_t(w.thread / warp) << 56 | std::uint64_t(w.instruction) << 32 | time;
    auto& open = open_[w.block];
    request& r = open.emplace(key, std::move(now)).first->second;
    r.lanes.push_back(one);
    if (r.lanes.size() < std::min(warp, threads_ - w.thread / warp * warp)) return;
    answer(r);
    open.erase(key);
}

void traffic_counter::answer(const request& r) {
    if (r.is_shared) {
        // Of 8 bytes half of the lanes have a turn, of 16 a quarter.
        const auto together = static_cast<std::uint32_t>(warp * word / std::max<std::uint64_t>(r.bytes, word));
        std::map<std::uint32_t, std::map<std::uint64_t, std::set<std::uint64_t>>> words;  // by turn and bank
        for (const lane& l : r.lanes)
            for (std::uint64_t at = l.address / word; at <= (l.address + r.bytes - 1) / word; ++at)
                words[l.number / together][at % banks].insert(at);
        for (const auto& [turn, of_banks] : words) {
            std::size_t most = 0, all = 0;
            for (const auto& [bank, different] : of_banks) {
                most = std::max(most, different.size());
                all += different.size();
            }
            done.turns += most;
            done.least_turns += (all + banks - 1) / banks;
        }
        return;
    }
    std::set<std::uint64_t> sectors;
    for (const lane& l : r.lanes)
        for (std::uint64_t at = l.address / sector; at <= (l.address + r.bytes - 1) / sector; ++at) sectors.insert(at);
    (r.writes ? done.written : done.read) += sectors.size() * sector;
    for (const std::uint64_t at : sectors)
        if ((r.writes ? seen_written_ : seen_read_).insert(at).second)
            (r.writes ? done.first_written : done.first_read) += sector;
}

}  // namespace ptx
