#pragma once

#include <cfenv>
#include <string>

namespace fprnn::testing {

/// The exceptions that `body` raises on this thread, of those that kill a program which has enabled their
/// traps; "" of none.
template <class Body>
std::string raised(Body&& body) {
    std::feclearexcept(FE_ALL_EXCEPT);
    body();
    std::string names;
    if (std::fetestexcept(FE_INVALID)) names += "invalid operation. ";
    if (std::fetestexcept(FE_DIVBYZERO)) names += "division by zero. ";
    if (std::fetestexcept(FE_OVERFLOW)) names += "overflow. ";
    return names;
}

}  // namespace fprnn::testing
