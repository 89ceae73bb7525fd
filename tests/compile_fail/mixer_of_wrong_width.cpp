// expect: Q * v and (I - Q) * w need operands of width d_inner
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = fprnn::householder<2, "Q">(in) * in;
