#pragma once

#include "module.hpp"

namespace ptx {

/// By its name with all that follows, as in "fma.rn.f32"; nullptr for one that is not known. Two forms of mov
/// have names of their own: mov.b64.pack from two registers, mov.b64.unpack into two.
handler handler_of(const std::string& name);

}  // namespace ptx
