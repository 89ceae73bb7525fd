#include <fprnn/backend/reference.hpp>
#include <fprnn/compiled.hpp>

namespace fprnn {
FPRNN_INSTANCES_ON(template, double, reference)
}  // namespace fprnn
