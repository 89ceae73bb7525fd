// expect: weight_normed takes a map, such as linear<"W">(e), a mixer, or a function that makes one
#include <fprnn/fprnn.hpp>

auto make() { return fprnn::weight_normed(3); }
