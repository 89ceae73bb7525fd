#pragma once

// Nearly all headers begin with this one. A header that is not there ends the compilation, which #error does
// not.
#if __cplusplus < 202002L
#error "fprnn is written in C++20: compile with -std=c++20 or later"
#include <no-headers-without-Cpp20>
#elif !defined(__cpp_exceptions)
#error "fprnn reports errors by exceptions: compile without -fno-exceptions (-fno-rtti is fine)"
#include <no-headers-without-exceptions>
#endif

#include <fprnn/core/number_text.hpp>

#include <stdexcept>
#include <string>
#include <string_view>

namespace fprnn {

/// A mistake in a call: the message names the operation, the argument, what was expected and what was given.
class argument_error : public std::invalid_argument {
public:
    using std::invalid_argument::invalid_argument;
};

/// Throws argument_error with "operation: message" unless `ok`. The message is only built when it is needed.
template <class Message>
void require(bool ok, std::string_view operation, Message&& message) {
    if (!ok) throw argument_error(std::string(operation) + ": " + std::string(message()));
}

}  // namespace fprnn
