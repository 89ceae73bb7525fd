// expect: stack(blocks...): there must be at least 1 block
#include <fprnn/models/sequence_model.hpp>

auto blocks = fprnn::models::stack();
