// expect: a mixer is made of what it sees, an expression: kronecker(in)
#include <fprnn/fprnn.hpp>

auto make() { return fprnn::kronecker(3); }
