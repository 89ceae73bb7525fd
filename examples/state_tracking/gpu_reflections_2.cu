#include "gpu_reflections.hpp"

template state_tracking::blocks_on<fprnn::cuda::device> state_tracking::make_with_reflections<2>(const architecture&,
                                                                                                 fp::chunked,
                                                                                                 fp::adjoint);
