// expect: Q * v and (I - Q) * w need an expression of width d_inner behind the mixer
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = fprnn::householder<2, "Q">(in) * 2.0;
