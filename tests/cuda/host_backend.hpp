#pragma once

#include "fake_blas.hpp"
#include "host_row.hpp"
#include "host_scan.hpp"
#include "host_selective_scan.hpp"
#include "host_team.hpp"

#include <fprnn/cuda/layer.hpp>
#include <fprnn/cuda/team_row.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

/// cuda::device on threads of the host: kernels run their bodies there, several rows at a time, as blocks of
/// a GPU do.
namespace host {

/// While it lives, devices have memory that the host cannot reach, all of which is back in the end.
class guarded_devices {
public:
    guarded_devices() {
        fake::state = {};
        fake::state.guarded = true;
    }
    ~guarded_devices() {
        CHECK(fake::state.memory.empty());
        CHECK(fake::state.overruns == 0);
        CHECK(fake::state.streams == 0);
        CHECK(fake::handles == 0);
        CHECK(fake::state.graphs == 0);
        fake::state = {};
        threads = {};
    }
    guarded_devices(const guarded_devices&) = delete;
    guarded_devices& operator=(const guarded_devices&) = delete;
};

/// Lets call after call fail of those that use() makes, which has a device of its own. Returns how many there
/// are.
template <class Use>
int check_failures(const Use& use) {
    fake::state = {};
    use();
    const int calls = fake::state.calls;
    int told = 0;
    for (int n = 0; n < calls; ++n) {
        fake::state = {};
        fake::state.failing = n;
        std::string message;
        try {
            use();
        } catch (const std::runtime_error& e) {
            message = e.what();
        }
        INFO("call ", n, ", ", fake::state.failed, ": ", message);
        const bool named = message.find(fake::state.failed) != std::string::npos &&
                           message.find(": its words (itsName)") != std::string::npos;
        // Nobody can be told of what fails in the end, when the device is cleaned up.
        const bool is_called_again = message.empty() && fake::state.is_called_again;
        CHECK((named || is_called_again || (message.empty() && n >= calls - 4)));
        told += named || is_called_again;
        CHECK(fake::state.memory.empty());
        CHECK(fake::state.streams == 0);
        CHECK(fake::state.graphs == 0);
        CHECK(fake::handles == 0);
    }
    CHECK(told >= calls - 4);
    fake::state = {};
    return calls;
}

}  // namespace host

namespace fprnn::cuda::detail {

template <class T>
struct row_team {
    using type = team_row<T, host::team>;
};

/// execute(r, worker) for n rows, a team each.
template <class Execute>
void each_row(index n, index workers, const Execute& execute) {
    const auto teams = static_cast<int>(std::min<index>(workers, host::threads.rows));
    host::launch(teams, host::threads.of_row, 0, [&](const host::team& team) {
        for (index worker = team.block(); worker < workers; worker += teams)
            for (index r = worker; r < n; r += workers) {
                execute(r, worker);
                team.barrier();
            }
    });
}

/// Of a row that a body holds a thread has at most 8 channels.
template <class T, class Body>
void start_rows(const device&, index n, index workers, const Body& body) {
    const auto with = [=]<int Items>(std::integral_constant<int, Items>) {
        using row = team_row<T, host::team, Items>;
        start([=] { each_row(n, workers, [&](index r, index worker) { body.template row<row>(r, worker); }); });
    };
    if constexpr (holds_rows<Body>)
        if (body.channels <= 8 * host::threads.of_row) return with(std::integral_constant<int, 8>());
    with(std::integral_constant<int, 0>());
}

/// A team's share of one long row.
template <class T>
struct share_of_row {
    static inline thread_local place here;

    template <class Body>
    static void each(index channels, Body&& body) {
        const index share = channels / here.rows;
        team_row<T, host::team>::each(share, [&](auto lane) { body(scalar_lane<T>{here.row * share + lane.channel}); });
    }
};

template <class T>
void start_program(const device& d, index rows, const char* bytes, int size) {
    // A kernel has its arguments, whatever becomes of what the host has.
    start([rows, size, workers = d.workers(rows), calls = std::vector<char>(bytes, bytes + size)] {
        each_row(rows, workers, [&](index r, index worker) {
            share_of_row<T>::here = {r, rows, worker};
            execute(calls.data(), size, share_of_row<T>::here, [] { host::team().barrier(); });
        });
    });
}

template <class T, class Body>
code code_of_rows(const device&) {
    return {call_rows<team_row<T, host::team>, Body>, start_program<T>};
}
template <class T, class Body>
code code_of_share(const device&) {
    return {call_share<share_of_row<T>, Body>, start_program<T>};
}
template <class T>
code code_of_while(const device&) {
    return {call_while<T>, start_program<T>};
}
template <class T>
code code_of_back(const device&) {
    return {call_back, start_program<T>};
}

}  // namespace fprnn::cuda::detail
