// expect: gated_delta<n>(alpha, k, v, beta, q): v must have n times a width
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
using two = fprnn::fixed_width<2>;
auto f = fprnn::gated_delta<3>(fprnn::linear<"a", two>(in), fprnn::linear<"k", two>(in), fprnn::linear<"v">(in),
                               fprnn::linear<"b", two>(in), fprnn::linear<"q", two>(in));
