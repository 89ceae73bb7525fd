// expect: error: calling a __host__ function("void of_the_host
#include <fprnn/cuda/backend.cuh>

#include <fprnn/fixed_point/layer.hpp>

/// Without FPRNN_BOTH, which nvcc by itself would only warn of.
struct of_the_host : fprnn::householder_mixer<1> {
    template <class Team, class T>
    static void mix(fprnn::index, const T*, const T*, const T*, T*, T*) {}
};
void mix(fprnn::cuda::device& gpu) { gpu.rows<double>(1, fprnn::body::mix<of_the_host, double>{}); }
