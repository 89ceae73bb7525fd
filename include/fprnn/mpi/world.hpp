#pragma once

#include <fprnn/train/ranks.hpp>

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace fprnn::mpi {

/// The processes of an MPI program. MPI is initialised where it is not, and then finalised with this; what
/// a program has initialised itself stays its own. One thread at a time uses it. Errors:
/// std::runtime_error, with operation and MPI's own text, when MPI has been finalised or a call fails.
class world final : public ranks {
public:
    /// A message of more bytes is sent in several; MPI counts with an int.
    static constexpr std::size_t most_bytes = std::size_t{1} << 30;

    explicit world(MPI_Comm all = MPI_COMM_WORLD, std::size_t largest_message = most_bytes)
        : largest_message_(std::clamp<std::size_t>(largest_message, 1, most_bytes)) {
        int ended = 0, begun = 0;
        MPI_Finalized(&ended);
        if (ended) throw std::runtime_error("fprnn::mpi::world: MPI has been finalised, and cannot begin again");
        MPI_Initialized(&begun);
        if (!begun) {
            int provided = 0;
            check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
            finalises_ = true;
        }
        if (all == MPI_COMM_NULL)
            throw std::runtime_error("fprnn::mpi::world: expected a communicator, got MPI_COMM_NULL");
        check(MPI_Comm_dup(all, &messages_), "MPI_Comm_dup");
        check(MPI_Comm_dup(all, &failures_), "MPI_Comm_dup");
        MPI_Comm_set_errhandler(messages_, MPI_ERRORS_RETURN);
        MPI_Comm_rank(messages_, &rank_);
        MPI_Comm_size(messages_, &size_);
    }
    ~world() override {
        int ended = 0;
        MPI_Finalized(&ended);
        if (ended) return;
        MPI_Comm_free(&messages_);
        MPI_Comm_free(&failures_);
        if (finalises_) MPI_Finalize();
    }

    index rank() const override { return rank_; }
    index size() const override { return size_; }

    void send(std::span<const std::byte> bytes, index to) override {
        in_parts(bytes, [&](auto part) {
            check(MPI_Send(part.data(), static_cast<int>(part.size()), MPI_BYTE, static_cast<int>(to), 0, messages_),
                  "MPI_Send");
        });
    }
    void receive(std::span<std::byte> bytes, index from) override {
        in_parts(bytes, [&](auto part) {
            check(MPI_Recv(part.data(), static_cast<int>(part.size()), MPI_BYTE, static_cast<int>(from), 0, messages_,
                           MPI_STATUS_IGNORE),
                  "MPI_Recv");
        });
    }
    void broadcast(std::span<std::byte> bytes) override { broadcast_from(0, bytes); }
    std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes) override {
        const auto n = static_cast<std::size_t>(size_);
        const auto mine = static_cast<std::uint64_t>(bytes.size());
        std::vector<std::uint64_t> sizes(n);
        check(MPI_Allgather(&mine, 1, MPI_UINT64_T, sizes.data(), 1, MPI_UINT64_T, messages_), "MPI_Allgather");
        std::vector<std::vector<std::byte>> all(n);
        if (std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}) <= largest_message_)
            gather_at_once(bytes, sizes, all);
        else
            for (std::size_t r = 0; r < n; ++r) {
                all[r].resize(sizes[r]);
                if (r == static_cast<std::size_t>(rank_)) std::copy(bytes.begin(), bytes.end(), all[r].begin());
                broadcast_from(static_cast<int>(r), all[r]);
            }
        return all;
    }

    /// Ends the program after an error of this rank. Where all ranks fail before the time is over, a second
    /// and a tenth more for each rank below this one (at most 50), rank 0 alone prints `what` and the result
    /// is main's; otherwise this rank prints it and MPI_Abort ends all. Nothing is printed of an empty text.
    int fail(const std::string& what) noexcept {
        MPI_Request all_failed = MPI_REQUEST_NULL;
        MPI_Ibarrier(failures_, &all_failed);
        // A lower rank is to be the one that says it.
        const auto last =
            std::chrono::steady_clock::now() + std::chrono::milliseconds(1000 + 100 * std::min(rank_, 50));
        int done = 0;
        while (MPI_Test(&all_failed, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done &&
               std::chrono::steady_clock::now() < last)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (!what.empty() && (!done || rank_ == 0))
            std::fprintf(stderr, "rank %d of %d: %s\n", rank_, size_, what.c_str());
        if (!done) MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
        return EXIT_FAILURE;
    }

private:
    static void check(int code, const char* operation) {
        if (code == MPI_SUCCESS) return;
        char text[MPI_MAX_ERROR_STRING];
        int letters = 0;
        MPI_Error_string(code, text, &letters);
        throw std::runtime_error("fprnn::mpi::world: " + std::string(operation) + ": " +
                                 std::string(text, text + letters));
    }
    template <class Bytes, class Call>
    void in_parts(Bytes bytes, Call call) const {
        for (; bytes.size() > largest_message_; bytes = bytes.subspan(largest_message_))
            call(bytes.first(largest_message_));
        call(bytes);
    }
    void broadcast_from(int root, std::span<std::byte> bytes) {
        in_parts(bytes, [&](auto part) {
            check(MPI_Bcast(part.data(), static_cast<int>(part.size()), MPI_BYTE, root, messages_), "MPI_Bcast");
        });
    }
    void gather_at_once(std::span<const std::byte> bytes, const std::vector<std::uint64_t>& sizes,
                        std::vector<std::vector<std::byte>>& all) {
        std::vector<int> counts(sizes.begin(), sizes.end()), places(sizes.size());
        std::exclusive_scan(counts.begin(), counts.end(), places.begin(), 0);
        std::vector<std::byte> together(static_cast<std::size_t>(places.back() + counts.back()));
        check(MPI_Allgatherv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, together.data(), counts.data(),
                             places.data(), MPI_BYTE, messages_),
              "MPI_Allgatherv");
        for (std::size_t r = 0; r < all.size(); ++r) {
            const auto first = together.begin() + places[r];
            all[r].assign(first, first + counts[r]);
        }
    }

    std::size_t largest_message_;
    bool finalises_ = false;
    MPI_Comm messages_ = MPI_COMM_NULL;
    MPI_Comm failures_ = MPI_COMM_NULL;  ///< apart: a rank that has failed meets no call of the others
    int rank_ = 0, size_ = 1;
};

/// The body of main: what body(world&) returns, or EXIT_FAILURE after world::fail when it throws. A rank that
/// returns something else than 0 while others work ends them, too.
///
///     int main() {
///         return fprnn::mpi::run([](fprnn::mpi::world& all) { …; return 0; });
///     }
template <std::invocable<world&> Body>
int run(Body&& body) {
    std::optional<world> all;
    try {
        all.emplace();
        const int status = std::forward<Body>(body)(*all);
        if (status != 0) all->fail({});
        return status;
    } catch (const std::exception& e) {
        if (all) return all->fail(e.what());
        std::fprintf(stderr, "%s\n", e.what());
    } catch (...) {
        if (all) return all->fail("an exception that is no std::exception");
    }
    return EXIT_FAILURE;
}

}  // namespace fprnn::mpi
