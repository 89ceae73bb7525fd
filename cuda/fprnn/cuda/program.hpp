#pragma once

#include <fprnn/core/host_device.hpp>
#include <fprnn/core/shape.hpp>

#include <type_traits>

/// A token's way through its equations is some dozens of bodies, of which each is over in microseconds: as
/// kernels they would take less time than it takes to start them. So they are written down, one after the
/// other, as a program that one kernel executes for every row.
namespace fprnn::cuda::detail {

/// Where a program is executed: at row `row` of `rows`, by worker `worker`.
struct place {
    index row, rows, worker;
};

/// Executes a call of a program, which begins at `call` with the address of this function. Returns how many
/// bytes further the program goes on. On a GPU it is a function of the GPU.
using step = int (*)(const void* call, const place&);

/// A call of a program: a body, or where to go on.
template <class Body>
struct alignas(16) call_of {
    static_assert(std::is_trivially_copyable_v<Body>, "programs are copied to a GPU");
    step function;
    Body body;
};

/// Row after row of body.row<Team>(row, worker).
template <class Team, class Body>
FPRNN_BOTH int call_rows(const void* call, const place& at) {
    const Body body = static_cast<const call_of<Body>*>(call)->body;
    body.template row<Team>(at.row, at.worker);
    return sizeof(call_of<Body>);
}
/// A body of one long row: each() of Share goes over the channels that are this row's.
template <class Share, class Body>
FPRNN_BOTH int call_share(const void* call, const place&) {
    const Body body = static_cast<const call_of<Body>*>(call)->body;
    body.template row<Share>(0, 0);
    return sizeof(call_of<Body>);
}

/// Goes on behind a loop, `behind` bytes further, unless running[row] is set.
template <class T>
struct while_running {
    const T* running;
    int behind;
};
template <class T>
FPRNN_BOTH int call_while(const void* call, const place& at) {
    const auto& loop = static_cast<const call_of<while_running<T>>*>(call)->body;
    return loop.running[at.row] != T(0) ? static_cast<int>(sizeof(call_of<while_running<T>>)) : loop.behind;
}
/// Goes back to where a loop begins.
struct back_to {
    int bytes;
};
FPRNN_BOTH inline int call_back(const void* call, const place&) {
    return -static_cast<const call_of<back_to>*>(call)->body.bytes;
}

/// Executes a program for one row by a team, whose barrier() comes after each call.
template <class Barrier>
FPRNN_BOTH void execute(const char* calls, int size, const place& at, const Barrier& barrier) {
    for (int here = 0; here < size;) {
        here += (*reinterpret_cast<const step*>(calls + here))(calls + here, at);
        barrier();
    }
}

}  // namespace fprnn::cuda::detail
