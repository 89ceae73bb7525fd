#pragma once

#include <fprnn/backend/eigen.hpp>
#include <fprnn/backend/reference.hpp>

namespace fprnn {

/// Where calls run that name no backend: the reference in CUDA sources, which do without Eigen.
#ifdef FPRNN_EIGEN
using default_backend = eigen;
#else
using default_backend = reference;
#endif

}  // namespace fprnn
