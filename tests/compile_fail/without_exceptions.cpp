// expect: fprnn reports errors by exceptions: compile without -fno-exceptions
// with: -fno-exceptions
#include <fprnn/fprnn.hpp>
