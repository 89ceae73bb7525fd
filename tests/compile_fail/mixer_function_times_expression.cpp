// expect: a product of mixers, A * B, is of two functions that make them, such as kronecker * dplr<2>
#include <fprnn/fprnn.hpp>

auto make() { return fprnn::householder<2> * fprnn::symbols::in; }
