// expect: check_recurrence<M>: M must satisfy the concept fprnn::recurrence
#include <fprnn/recurrences/check_recurrence.hpp>

struct decay {
    static constexpr std::size_t inputs = 1;
    struct sizes {};
};
auto verdict = fprnn::check_recurrence<decay>({.widths = {{1}}});
