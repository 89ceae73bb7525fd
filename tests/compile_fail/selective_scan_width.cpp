// expect: selective_scan: b and c must have width d_state: linear<"b", d_state>(s)
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto delta = softplus(fprnn::affine<"delta">(in));
auto c = fprnn::linear<"c", fprnn::d_state>(in);
auto f = fprnn::selective_scan<"ssm">(delta, fprnn::linear<"b">(in), c, fprnn::linear<"x">(in));
