#pragma once

#include "fake_runtime.hpp"
#include "host_team.hpp"

#include <fprnn/cuda/selective_scan.hpp>

/// The selective scan's kernel on threads of the host.
namespace host {

/// How often it has been started.
inline int selective_scans = 0;

}  // namespace host

namespace fprnn::cuda::detail {

// As many threads as a host bears.
template <>
inline constexpr int selective_scan_threads<float> = 8;
template <>
inline constexpr int selective_scan_threads<double> = 5;

template <int Threads, int N, int Items, class T, class S>
void selective_scan_start(const device&, index tiles, const selective_scan_sequences<T, S>& s) {
    ++host::selective_scans;
    check(fake::state.result("cudaLaunchKernelEx"), "cudaLaunchKernelEx");
    const fake::reach all;
    host::launch(1, Threads, selective_scan_shared_bytes<S, N, Items>, [&](const host::team& team) {
        for (index tile = 0; tile < tiles; ++tile) selective_scan_tile<Threads, N, Items>(team, tile, s);
    });
}

}  // namespace fprnn::cuda::detail
