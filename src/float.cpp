#define FPRNN_COMPILES
#include <fprnn/compiled.hpp>

namespace fprnn {

FPRNN_INSTANCES(template, float)

template struct detail::compiled_for<sizeof(pack<float>), detail::multiplies_and_adds>;

}  // namespace fprnn
