// expect: mixers are multiplied, A * B, and not added
#include <fprnn/fprnn.hpp>

auto make() { return fprnn::householder<2> + fprnn::dplr<2>; }
