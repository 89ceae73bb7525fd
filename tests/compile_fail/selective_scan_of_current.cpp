// expect: selective_scan: Δ, b and c may depend on shift(prev) but not on prev
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto delta = softplus(fprnn::affine<"delta">(prev));
auto b = fprnn::linear<"b", fprnn::d_state>(in);
auto f = fprnn::selective_scan<"ssm">(delta, b, b, fprnn::linear<"x">(in));
