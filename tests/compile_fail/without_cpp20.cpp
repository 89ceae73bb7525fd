// expect: fprnn is written in C++20: compile with -std=c++20 or later
// with: -std=c++17
#include <fprnn/fprnn.hpp>
