// expect: parameter has a name
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = fprnn::parameter() * prev;
