// expect: dplr<R>: R must be at least 1
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = fprnn::dplr<0, "Q">(in) * fprnn::linear<"v">(in);
