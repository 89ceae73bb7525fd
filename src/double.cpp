#define FPRNN_COMPILES
#include <fprnn/compiled.hpp>

namespace fprnn {

FPRNN_INSTANCES(template, double)

}  // namespace fprnn
