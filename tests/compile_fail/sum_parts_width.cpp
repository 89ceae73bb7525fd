// expect: sum_parts<part>(e): e must have width product_width<number, part>
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = fprnn::sum_parts<fprnn::d_head>(fprnn::linear<"v">(in));
