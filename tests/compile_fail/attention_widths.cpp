// expect: attention(q, k, v): q and k must have the same symbolic width
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = fprnn::attention(fprnn::linear<"q">(in), fprnn::linear<"k", fprnn::d_key>(in), fprnn::linear<"v">(in));
