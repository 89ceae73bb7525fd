#pragma once

#include <fprnn/backend/eigen.hpp>
#include <fprnn/backend/reference.hpp>

namespace fprnn {

/// Where calls run that name no backend. CUDA sources have no Eigen: there it is the reference.
#ifdef __CUDACC__
using default_backend = reference;
#else
using default_backend = eigen;
#endif

}  // namespace fprnn
