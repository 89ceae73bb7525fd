// expect: fp_mamba2_options: groups, of heads that share b and c, must be at least 1
#include <fprnn/models/fp_mamba2.hpp>

constexpr fprnn::models::fp_mamba2_options none{.groups = 0};
auto f = fprnn::models::fp_mamba2<none>(fprnn::householder<2>);
