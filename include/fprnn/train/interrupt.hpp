#pragma once

#include <csignal>

namespace fprnn {

/// While it lives, the first SIGINT, SIGTERM or SIGHUP only makes requested() true, so that a loop can end in
/// order. After it, a second SIGINT or SIGTERM ends the program as usual; a second SIGHUP does nothing,
/// because a terminal that closes often sends two. Where SIGHUP is ignored, as under nohup, it stays ignored.
/// The flag belongs to the process and stays set.
class interrupt {
public:
    interrupt() {
        struct sigaction action {};
        action.sa_handler = handle;
        sigemptyset(&action.sa_mask);
        action.sa_flags = SA_RESTART;
        ::sigaction(SIGINT, &action, &before_int_);
        ::sigaction(SIGTERM, &action, &before_term_);
        ::sigaction(SIGHUP, nullptr, &before_hup_);
        if (before_hup_.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);
    }
    interrupt(const interrupt&) = delete;
    interrupt& operator=(const interrupt&) = delete;
    ~interrupt() {
        ::sigaction(SIGINT, &before_int_, nullptr);
        ::sigaction(SIGTERM, &before_term_, nullptr);
        ::sigaction(SIGHUP, &before_hup_, nullptr);
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
    struct sigaction before_hup_ {};
};

}  // namespace fprnn
