// expect: contractive has a bound, a quotient of two whole numbers: contractive<9, 10>(Q)
#include <fprnn/fprnn.hpp>

auto make() { return fprnn::contractive(fprnn::dplr<2>); }
