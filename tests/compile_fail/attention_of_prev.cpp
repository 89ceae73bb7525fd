// expect: attention(q, k, v): q, k and v may depend on `in` and on fixed points that are solved
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = fprnn::attention(fprnn::linear<"q">(in), fprnn::linear<"k">(shift(prev)), fprnn::linear<"v">(in));
