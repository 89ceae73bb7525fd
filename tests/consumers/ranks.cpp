// A program of one process or of many, where MPI is.
#include <fprnn/mpi/pieces.hpp>
#include <fprnn/mpi/scan.hpp>
#include <fprnn/mpi/world.hpp>

int main() {
    return fprnn::mpi::run([](fprnn::mpi::world& all) {
        const fprnn::tensor<double> lambda({1, 2, 1}, {0.5, 0.5}), u({1, 2, 1}, {1, 1});
        return fprnn::mpi::scan(all, lambda, u).h(0, 1, 0) < 1.5;
    });
}
