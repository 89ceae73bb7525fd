// expect: a norm of parts: its weight is as wide as a part, which all parts share, or as wide as e
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
using channels = fprnn::product_width<fprnn::heads, fprnn::d_head>;
auto f = fprnn::layer_norm<"n", fprnn::d_head, fprnn::d_inner>(fprnn::linear<"v", channels>(in));
