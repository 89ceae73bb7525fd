#pragma once

#include <locale.h>

namespace fprnn::detail {

/// While it lives, this thread's C functions are in the locale "C", whatever setlocale has said: a parser of
/// JSON asks strtod for numbers and localeconv for the point in them.
class c_locale {
public:
    c_locale() : c_(::newlocale(LC_ALL_MASK, "C", locale_t{})), before_(::uselocale(c_)) {}
    c_locale(const c_locale&) = delete;
    c_locale& operator=(const c_locale&) = delete;
    ~c_locale() {
        ::uselocale(before_);
        if (c_ != locale_t{}) ::freelocale(c_);
    }

private:
    locale_t c_, before_;
};

}  // namespace fprnn::detail
