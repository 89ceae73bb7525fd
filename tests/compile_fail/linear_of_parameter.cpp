// expect: a parameter is no sequence
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
fprnn::layer l(fprnn::linear<"x">(fprnn::parameter<"a">()));
