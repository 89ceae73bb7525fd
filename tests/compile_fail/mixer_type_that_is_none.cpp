// expect: M must satisfy the concept fprnn::mixer
#include <fprnn/fixed_point/layer.hpp>

struct scaling {
    static fprnn::index size(fprnn::index) { return 1; }
};
using namespace fprnn::symbols;
auto alpha = fprnn::affine<"alpha", fprnn::fixed_width<1>>(in);
fprnn::mixer_node<scaling, decltype(alpha)> Q;
auto f = Q * fprnn::linear<"v">(in) + (I - Q) * prev;
