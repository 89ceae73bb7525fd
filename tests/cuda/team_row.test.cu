#include "distance.hpp"
#include "gpu_main.hpp"

#include <fprnn/cuda/block.cuh>
#include <fprnn/cuda/launch.cuh>
#include <fprnn/cuda/team_row.hpp>
#include <fprnn/cuda/tensor.hpp>

#include "row_bodies.hpp"

#include <cmath>
#include <limits>
#include <vector>

/// The kernel bodies of the library by thread blocks: what they write is what one thread of the host writes.
namespace rows {  // a kernel's stub cannot name what has no name, as TEST_CASE_TEMPLATE has

using fprnn::index;
using fprnn::shape;
using fprnn::tensor;
namespace cuda = fprnn::cuda;

template <class T>
struct pointers {
    T* x[18];
};

template <class Body, class T, int Threads, int Items>
__global__ void run(index D, pointers<T> p) {
    T* x[18];
    for (int i = 0; i < 18; ++i) x[i] = p.x[i];
    Body::template run<cuda::team_row<T, cuda::block<Threads>, Items>, T>(D, x);
}

template <class Body, class T, int Threads, int Items = 0>
void check(const cuda::device& gpu, index D) {
    std::vector<tensor<T>> host;
    std::vector<cuda::tensor<T>> device;
    pointers<T> on_host{}, on_device{};
    for (index n : Body::sizes(D)) {
        const auto x = gpu::random<T>(shape{n}, 10 + host.size());
        device.push_back(cuda::copy(gpu, x));
        host.push_back(x);
    }
    for (std::size_t i = 0; i < host.size(); ++i) on_host.x[i] = host[i].data(), on_device.x[i] = device[i].data();
    Body::template run<fprnn::serial_team<T>, T>(D, on_host.x);
    cuda::launch(gpu, "rows", run<Body, T, Threads, Items>, 1, {Threads, 0}, D, on_device);
    for (std::size_t i = 0; i < host.size(); ++i) {
        const auto got = cuda::copy_to_host(device[i]);
        CAPTURE(D);
        CAPTURE(i);
        CHECK(gpu::distance(got, host[i]) <= 64 * std::numeric_limits<T>::epsilon());
    }
}

TEST_CASE_TEMPLATE("rows: bodies write on a GPU what they write on the host", Body, FPRNN_ROW_BODIES) {
    const cuda::device gpu;
    for (index D : {4, 5, 17, 64, 300}) {
        check<Body, float, 32>(gpu, D);
        check<Body, double, 128>(gpu, D);
    }
}

TEST_CASE_TEMPLATE("rows: bodies write the same where a row that they hold is in registers", Body,
                   FPRNN_HOLDING_BODIES) {
    const cuda::device gpu;
    for (index D : {5, 17, 300}) check<Body, float, 32, 10>(gpu, D);
}

}  // namespace rows
