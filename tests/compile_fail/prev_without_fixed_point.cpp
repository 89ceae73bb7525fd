// expect: the expression still contains prev: wrap the iteration in fixed_point(f)
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
fprnn::layer l(fprnn::linear<"W">(cat(in, prev)));
