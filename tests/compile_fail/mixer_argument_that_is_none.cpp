// expect: a model's mixer is a function from what it sees to a mixer: householder<4>, dplr<2>, kronecker
#include <fprnn/models/fp_mamba.hpp>

auto f = fprnn::models::fp_mamba(4);
