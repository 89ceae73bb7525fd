// expect: slstm(i, f, z, o): all four must have the same symbolic width
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = fprnn::slstm(in, in, in, fprnn::linear<"o">(in));
