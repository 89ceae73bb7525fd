// expect: delta_options: steps, the number of keys of a token, must be at least 1
#include <fprnn/models/delta_product.hpp>

constexpr fprnn::models::delta_options none{.steps = 0};
auto f = fprnn::models::delta_product<none>();
