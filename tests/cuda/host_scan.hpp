#pragma once

#include "fake_runtime.hpp"
#include "host_row.hpp"
#include "host_team.hpp"

#include <fprnn/cuda/scan.hpp>

/// The diagonal scan's kernel on threads of the host.
namespace host {

/// How often it has happened.
inline int scans = 0;

}  // namespace host

namespace fprnn::cuda::detail {

// So few that a host with two processors has them wait for each other thousands of times in no time.
template <>
inline constexpr scan_tuning forward_tuning<float>{8, 3, 2};
template <>
inline constexpr scan_tuning forward_tuning<double>{4, 3, 2};
template <>
inline constexpr scan_tuning back_tuning<float>{4, 3, 2};
template <>
inline constexpr scan_tuning back_tuning<double>{2, 3, 2};

template <class T>
inline constexpr scan_tuning forward_tuning<complex<T>>{4, 3, 2};
template <class T>
inline constexpr scan_tuning back_tuning<complex<T>>{2, 3, 2};

template <int Threads, int Items, int Blocks, class Recurrence>
void scan_start(const device&, const char*, const tiling& tiles, const look_back<typename Recurrence::state>& between,
                const Recurrence& recurrence) {
    start([=] {
        ++host::scans;
        host::launch(Blocks, Threads, scan_shared_bytes<typename Recurrence::state>(Threads),
                     [&](const host::team& team) { scan_tiles<Items>(team, tiles, between, recurrence); });
    });
}

}  // namespace fprnn::cuda::detail
