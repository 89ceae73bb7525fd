#pragma once

#include "host_row.hpp"
#include "host_team.hpp"

#include <fprnn/cuda/selective_scan.hpp>

/// The selective scan's kernels on threads of the host.
namespace host {

/// How often they have happened.
inline int selective_scans = 0, selective_scans_back = 0;

}  // namespace host

namespace fprnn::cuda::detail {

// So few that a host with two processors has them wait for each other thousands of times in no time.
template <>
inline constexpr int selective_scan_threads<float> = 4;
template <>
inline constexpr int selective_scan_threads<double> = 3;
template <>
inline constexpr int selective_scan_back_threads<float> = 2;
template <>
inline constexpr int selective_scan_back_threads<double> = 3;

template <class Body>
void on_a_team(int threads, std::size_t shared_bytes, index tiles, int& count, const Body& body) {
    start([=, &count] {
        ++count;
        host::launch(1, threads, shared_bytes, [&](const host::team& team) {
            for (index tile = 0; tile < tiles; ++tile) body(team, tile);
        });
    });
}
template <int Threads, int N, int Items, class Sequences>
void selective_scan_start(const device&, index tiles, const Sequences& s) {
    on_a_team(Threads, selective_scan_shared_bytes<typename Sequences::state, N, Items>, tiles, host::selective_scans,
              [s](const host::team& team, index tile) { selective_scan_tile<Threads, N, Items>(team, tile, s); });
}
template <int Threads, int N, int Items, class Adjoint>
void selective_scan_back_start(const device&, index tiles, const Adjoint& s) {
    on_a_team(Threads, selective_scan_back_shared_bytes<typename Adjoint::state, Threads, N, Items>, tiles,
              host::selective_scans_back,
              [s](const host::team& team, index tile) { selective_scan_back_tile<Threads, N, Items>(team, tile, s); });
}

}  // namespace fprnn::cuda::detail
