#pragma once

/// All of the library for a CUDA source: layers, models and training that take an fprnn::cuda::device for
/// their backend, and the scans on its tensors. A call that names no backend runs on the reference here, see
/// fprnn/backend/default.hpp.
#include <fprnn/cuda/backend.cuh>
#include <fprnn/cuda/bf16.hpp>
#include <fprnn/cuda/scan.cuh>
#include <fprnn/cuda/selective_scan.cuh>
#include <fprnn/fprnn.hpp>
