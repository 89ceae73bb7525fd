#pragma once

#include <fprnn/backend/reference.hpp>
#include <fprnn/compiled.hpp>

/// The engine on the reference backend, which many tests compare with, is compiled in reference.cpp alone.
#ifdef FPRNN_COMPILED
namespace fprnn {
FPRNN_INSTANCES_ON(extern template, double, reference)
}  // namespace fprnn
#endif
