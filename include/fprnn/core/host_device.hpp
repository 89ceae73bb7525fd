#pragma once

/// Marks code that a CUDA compiler also compiles for the device: kernel bodies, functors and their mathematics.
#ifdef __CUDACC__
#define FPRNN_BOTH __host__ __device__
#else
#define FPRNN_BOTH
#endif
