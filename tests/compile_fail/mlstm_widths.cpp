// expect: mlstm(i, f, k, v, q): i and f must have the same symbolic width
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = fprnn::mlstm(fprnn::linear<"i", fprnn::heads>(in), fprnn::linear<"f">(in), fprnn::linear<"k">(in),
                      fprnn::linear<"v">(in), fprnn::linear<"q">(in));
