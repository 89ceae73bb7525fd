#pragma once

#include <csignal>

namespace fprnn {

/// While it lives, the first SIGINT or SIGTERM only makes requested() true, so that a loop can end in order; a second one
/// ends the program as usual. The flag belongs to the process and stays set.
class interrupt {
public:
    interrupt() {
        struct sigaction action {};
        action.sa_handler = handle;
        sigemptyset(&action.sa_mask);
        action.sa_flags = SA_RESTART;
        ::sigaction(SIGINT, &action, &before_int_);
        ::sigaction(SIGTERM, &action, &before_term_);
    }
    interrupt(const interrupt&) = delete;
    interrupt& operator=(const interrupt&) = delete;
    ~interrupt() {
        ::sigaction(SIGINT, &before_int_, nullptr);
        ::sigaction(SIGTERM, &before_term_, nullptr);
    }

    static bool requested() { return flag != 0; }

private:
    static inline volatile std::sig_atomic_t flag = 0;

    static void handle(int) {
        flag = 1;
        struct sigaction usual {};
        usual.sa_handler = SIG_DFL;
        ::sigaction(SIGINT, &usual, nullptr);
        ::sigaction(SIGTERM, &usual, nullptr);
    }

    struct sigaction before_int_ {};
    struct sigaction before_term_ {};
};

}  // namespace fprnn
