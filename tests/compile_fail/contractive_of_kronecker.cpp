// expect: Q must be compact, householder or dplr
#include <fprnn/models/fp_rnn.hpp>

auto f = fprnn::models::fp_rnn(fprnn::contractive<1, 2>(fprnn::kronecker));
