// expect: normalise<part>(e): e must be made of parts of this width
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = fprnn::normalise<fprnn::d_key>(fprnn::linear<"k">(in));
