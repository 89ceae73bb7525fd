#pragma once

#include <charconv>
#include <cmath>
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

namespace detail {
/// x for a message, in as few digits as bring back its bits. A NaN is "nan": its sign is chance, and differs between
/// instruction sets.
inline std::string number_text(double x) {
    if (std::isnan(x)) return "nan";
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, x).ptr};
}
}  // namespace detail

}  // namespace fprnn
