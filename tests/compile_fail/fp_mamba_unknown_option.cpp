// expect: has no non-static data member named 'decay'
#include <fprnn/models/fp_mamba.hpp>

constexpr fprnn::models::fp_mamba_options mine{.decay = 1};
auto f = fprnn::models::fp_mamba<mine>(fprnn::householder<2>);
