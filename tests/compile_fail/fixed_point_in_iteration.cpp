// expect: in f stands the iterate of this fixed point alone, not of one around it
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
constexpr auto narrow = prev_of<fprnn::d_state>;
auto a = fixed_point(tanh(fprnn::linear<"A">(cat(in, narrow, prev))));
auto b = fixed_point(tanh(fprnn::linear<"B", fprnn::d_state>(cat(a, narrow))));
fprnn::layer l(b);
