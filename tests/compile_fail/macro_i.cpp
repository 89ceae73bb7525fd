// expect: only I of fprnn::symbols stands before a mixer, I - Q; where <complex.h> has made I a macro, write identity - Q
#define I 1.0f  // as <complex.h> does, with an imaginary number

#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = (I - fprnn::householder<2, "Q">(in)) * prev;
