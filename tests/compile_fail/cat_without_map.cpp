// expect: cat(a, b) stands only in linear, affine and mixers such as householder: map it first
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
fprnn::layer l(sigmoid(cat(in, in)));
