#pragma once

#include <fprnn/core/hash.hpp>
#include <fprnn/core/shape.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace fprnn {

/// Processes that work on one training or evaluation together, with the same program, and as one of them
/// sees it. All of them make the same calls of broadcast and gather in the same order; messages between two
/// of them arrive in the order in which they were sent.
class ranks {
public:
    ranks() = default;
    ranks(const ranks&) = delete;
    ranks& operator=(const ranks&) = delete;
    virtual ~ranks() = default;

    /// This process, in [0,size).
    virtual index rank() const = 0;
    virtual index size() const = 0;
    virtual void send(std::span<const std::byte> bytes, index to) = 0;
    /// Overwrites all of `bytes`, as many as were sent.
    virtual void receive(std::span<std::byte> bytes, index from) = 0;
    /// Overwrites `bytes`, as many everywhere, with those of rank 0.
    virtual void broadcast(std::span<std::byte> bytes) = 0;
    /// What every rank gives, in their order.
    virtual std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes) = 0;
};

namespace detail {

/// The bytes of numbers that lie one behind the other.
template <class Numbers>
auto bytes_of(Numbers& numbers) {
    const std::span all(numbers);
    static_assert(std::is_trivially_copyable_v<typename decltype(all)::value_type>);
    if constexpr (std::is_const_v<typename decltype(all)::element_type>)
        return std::as_bytes(all);
    else
        return std::as_writable_bytes(all);
}

/// Vectors and numbers one behind the other as bytes, of a process that others understand: they run the same
/// program on machines of the same kind.
class packed {
public:
    packed() = default;
    explicit packed(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}

    std::span<const std::byte> bytes() const { return bytes_; }

    template <class N>
    requires std::is_trivially_copyable_v<N> packed& put(const N& value) {
        return append(std::as_bytes(std::span(&value, 1)));
    }
    template <class N>
    packed& put(const std::vector<N>& values) {
        put(values.size());
        return append(bytes_of(values));
    }
    packed& put(std::string_view text) {
        put(text.size());
        return append(std::as_bytes(std::span(text)));
    }

    /// In the order in which they were put.
    template <class N>
        requires std::is_trivially_copyable_v<N> N get() {
            N value;
            read(std::as_writable_bytes(std::span(&value, 1)));
            return value;
        }
    template <class N>
    std::vector<N> get_vector() {
        std::vector<N> values(get<std::size_t>());
        read(std::as_writable_bytes(std::span(values)));
        return values;
    }
    std::string get_text() {
        const auto letters = get_vector<char>();
        return {letters.begin(), letters.end()};
    }

private:
    packed& append(std::span<const std::byte> bytes) {
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
        return *this;
    }
    void read(std::span<std::byte> to) {
        if (!to.empty()) std::memcpy(to.data(), bytes_.data() + at_, to.size());
        at_ += to.size();
    }

    std::vector<std::byte> bytes_;
    std::size_t at_ = 0;
};

/// Of the bytes of numbers, so that ranks can tell whether theirs are the same: FNV-1a over words of 64 bits.
template <class Numbers>
std::uint64_t checksum(const Numbers& numbers) {
    auto bytes = std::as_bytes(std::span(numbers.begin(), numbers.end()));
    std::uint64_t sum = fnv1a_start;
    while (!bytes.empty()) {
        std::uint64_t word = 0;
        const std::size_t n = std::min(bytes.size(), sizeof word);
        std::memcpy(&word, bytes.data(), n);
        sum = (sum ^ word) * fnv1a_prime;
        sum ^= sum >> 32;
        bytes = bytes.subspan(n);
    }
    return sum;
}

/// Consecutive ones of `items` things that a rank has: as many as the others, or one more. The division does
/// not overflow.
struct share_of_rank {
    index first, last;
};
inline index first_of_share(index items, index shares, index share) {
    return items / shares * share + items % shares * share / shares;
}
inline share_of_rank share_of(index items, index size, index rank) {
    return {first_of_share(items, size, rank), first_of_share(items, size, rank + 1)};
}
/// Whose share an item is in.
inline index owner_of(index item, index items, index size) {
    index rank = 0;
    while (first_of_share(items, size, rank + 1) <= item) ++rank;
    return rank;
}

}  // namespace detail

}  // namespace fprnn
