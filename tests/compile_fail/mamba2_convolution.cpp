// expect: mamba2<K, G>: K, the number of tokens that its convolutions see, must be at least 1
#include <fprnn/models/fp_mamba2.hpp>

auto f = fprnn::models::mamba2<0>();
