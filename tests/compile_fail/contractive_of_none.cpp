// expect: contractive<numerator, denominator>(Q): Q is a compact mixer or a function that makes one
#include <fprnn/fprnn.hpp>

auto make() { return fprnn::contractive<1, 2>(3); }
