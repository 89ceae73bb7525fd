// expect: check_mixer<M>: M must satisfy the concept fprnn::mixer
#include <fprnn/mixers/check_mixer.hpp>

struct scaling {
    static fprnn::index size(fprnn::index) { return 1; }
};
auto verdict = fprnn::check_mixer<scaling>();
