// expect: convolution, the number of tokens that it sees, must be at least 1, or 0 for none
#include <fprnn/models/fp_mamba.hpp>

auto f = fprnn::models::fp_mamba<fprnn::models::fp_mamba_options{.convolution = -1}>(fprnn::householder<2>);
