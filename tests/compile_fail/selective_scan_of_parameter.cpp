// expect: a parameter is no sequence
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto b = fprnn::linear<"b", fprnn::d_state>(in);
fprnn::layer l(fprnn::selective_scan<"ssm">(fprnn::parameter<"delta">(), b, b, fprnn::linear<"x">(in)));
