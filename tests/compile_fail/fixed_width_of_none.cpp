// expect: fixed_width<K>: K, a number of channels, must be at least 1
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
fprnn::layer l(fprnn::linear<"W", fprnn::fixed_width<0>>(in));
