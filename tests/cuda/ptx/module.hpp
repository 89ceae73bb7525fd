#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

/// An interpreter of PTX, the assembly language that nvcc makes of a kernel: what a GPU's own compiler is
/// given. It covers what nvcc makes of this library; anything else is an error that names it.
namespace ptx {

struct error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct thread;
struct instruction;
using handler = void (*)(thread&, const instruction&);

/// The value of a register plus a constant: an address with its offset, a register, or a constant behind the
/// register that is zero.
struct operand {
    std::uint32_t slot = 0;
    std::uint64_t plus = 0;
};

/// Registers that every frame begins with. `frame` is the frame's own address, where its parameters and local
/// memory are.
enum special : std::uint32_t { zero, frame, sink, tid, ntid, ctaid, nctaid, laneid, specials };

struct instruction {
    handler execute = nullptr;
    std::uint32_t guard = zero;  ///< executed if this register is `when`
    std::uint64_t when = 0;
    std::array<operand, 5> at{};
    std::uint32_t target = 0;  ///< of a branch the instruction, of a call its number among the function's
    std::uint32_t number = 0;  ///< among all of the module
};

/// Bytes of a frame: a parameter, or what is handed over.
struct place {
    std::uint32_t offset = 0, bytes = 0;
};

struct call {
    std::vector<place> results, arguments;
};

struct function {
    std::string name;
    std::vector<instruction> body;
    std::vector<std::string> source;  ///< of each instruction, for messages
    std::vector<call> calls;
    std::vector<place> results, parameters;
    std::uint32_t registers = specials, frame_bytes = 0;
};

struct variable {
    std::unique_ptr<char[]> memory;
    std::size_t bytes = 0;
};

/// Where shared memory that a launch asks for begins; variables come before.
inline constexpr std::uint64_t dynamic_shared = std::uint64_t(1) << 16;

/// What a source file has been compiled to.
struct module {
    std::map<std::string, function> functions;  ///< whose addresses are those of these nodes
    std::map<std::string, variable> globals;
    std::uint32_t shared_bytes = 0;  ///< of the variables
    std::uint32_t instructions = 0;
};

/// Errors: what is not PTX, or not known here, with the line.
std::unique_ptr<module> parse(const std::string& text);

}  // namespace ptx
