// expect: householder<R>: reflection_scale is 1 (paper) or 2 (the authors' code)
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = fprnn::householder<2, "Q", 3>(in) * fprnn::linear<"v">(in);
