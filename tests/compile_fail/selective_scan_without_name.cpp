// expect: selective_scan has a name, that of its parameters
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto delta = softplus(fprnn::affine<"delta">(in));
auto b = fprnn::linear<"b", fprnn::d_state>(in);
auto f = fprnn::selective_scan(delta, b, b, fprnn::linear<"x">(in));
