#pragma once

#include <fprnn/mpi/world.hpp>

namespace fprnn::testing {

/// MPI begins once in a process; it ends with the program.
inline mpi::world& all_ranks() {
    static mpi::world all;
    return all;
}

}  // namespace fprnn::testing
