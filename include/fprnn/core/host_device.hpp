#pragma once

/// Marks code that a CUDA compiler also compiles for the device: kernel bodies, functors and their
/// mathematics.
#ifdef __CUDACC__
#define FPRNN_BOTH __host__ __device__
#else
#define FPRNN_BOTH
#define FPRNN_EIGEN  // CUDA sources do without Eigen and its packs: on these nvcc is slow
#endif

// Where a body of a device calls a function of the host, such as that of a mixer without FPRNN_BOTH, nvcc
// warns, leaves the call out and succeeds, and the device computes garbage. From here on it is an error, in
// every source that sees this library.
#if defined(__NVCC__) && defined(__CUDACC__)
#pragma nv_diag_error 20011, 20012, 20013, 20014, 20015
#endif
