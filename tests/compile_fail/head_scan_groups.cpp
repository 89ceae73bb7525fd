// expect: head_scan<groups>: there must be at least 1 group
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = fprnn::head_scan<0>(fprnn::linear<"a", fprnn::heads>(in), fprnn::linear<"b", fprnn::d_state>(in), in,
                             fprnn::linear<"c", fprnn::d_state>(in));
