// expect: their quotient bounds the norm of I - Q and must lie between 0 and 1
#include <fprnn/models/fp_rnn.hpp>

auto f = fprnn::models::fp_rnn(fprnn::contractive<3, 2>(fprnn::householder<2>));
