#define FPRNN_COMPILES
#include <fprnn/compiled.hpp>

namespace fprnn {

FPRNN_INSTANCES(template, float)

template <>
const char detail::compiled_for_registers<sizeof(pack<float>)>::of_so_many_bytes = 0;

}  // namespace fprnn
