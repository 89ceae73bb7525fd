// expect: only 1 may be written as a literal: use constant<2>() or constant<1,2>()
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = 2 - sigmoid(in);
