// expect: a parameter is no sequence of tokens
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = fprnn::gated_delta(fprnn::parameter<"a">(), fprnn::linear<"k">(in), fprnn::linear<"v">(in),
                            fprnn::linear<"b">(in), fprnn::linear<"q">(in));
