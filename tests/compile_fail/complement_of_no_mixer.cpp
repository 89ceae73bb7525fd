// expect: I - Q needs a mixer such as householder<4, "Q">(s)
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = (I - fprnn::linear<"Q">(in)) * prev;
