// The laws of mixers on a GPU, as far as a layer shows them.
#include "gpu_main.hpp"

#include <fprnn/cuda/backend.cuh>

#include "mixer_laws_check.hpp"

namespace laws {

TEST_CASE("cuda laws: householder is a mixer where a layer is one") {
    check_mixer<2, 1>();
    check_mixer<3, 2>();
}

}  // namespace laws
