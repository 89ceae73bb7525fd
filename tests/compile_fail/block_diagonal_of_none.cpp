// expect: block_diagonal<k>: k must be at least 1
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
auto f = fprnn::block_diagonal<0, "Q">(in) * fprnn::linear<"v">(in);
