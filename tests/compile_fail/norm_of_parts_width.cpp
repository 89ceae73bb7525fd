// expect: a norm of parts: e must be made of parts of this width
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = fprnn::rms_norm<"n", fprnn::d_head>(fprnn::linear<"v">(in));
