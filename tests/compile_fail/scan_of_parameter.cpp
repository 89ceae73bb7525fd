// expect: a parameter is no sequence
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = scan(fprnn::parameter<"a">(), fprnn::linear<"u">(in));
fprnn::layer l(f);
