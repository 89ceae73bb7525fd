// expect: weight_normed takes a map, linear<"W">(e) or affine<"W">(e), or a mixer
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = weight_normed(tanh(fprnn::linear<"W">(in))) + prev;
