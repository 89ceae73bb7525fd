// expect: a device does not evaluate attention: use the CPU
#include <fprnn/fixed_point/layer.hpp>

/// As a device, without tiles.
struct machine : fprnn::reference {
private:
    static constexpr fprnn::index tile = 1;
};
using namespace fprnn::symbols;
const fprnn::layer l(fprnn::attention(in, in, in));
const auto on = l.on<float, machine>();
