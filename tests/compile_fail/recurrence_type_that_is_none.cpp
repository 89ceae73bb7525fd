// expect: M must satisfy the concept fprnn::recurrence
#include <fprnn/fixed_point/layer.hpp>

using namespace fprnn::symbols;
struct decay {  // without back
    static constexpr const char* name = "decay";
    static constexpr std::size_t inputs = 1;
    struct sizes {
        fprnn::index D;
    };
    static sizes of(const std::array<fprnn::index, 1>& widths) { return {widths[0]}; }
    static fprnn::index state(const sizes& s) { return s.D; }
    static fprnn::index value(const sizes& s) { return s.D; }
    static fprnn::index scratch(const sizes&) { return 0; }
};
auto f = tanh(fprnn::recurrence_node<decay, fprnn::fixed_string(""), fprnn::d_in, fprnn::input_node>{});
