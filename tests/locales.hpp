#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <locale>
#include <string>

namespace fprnn::testing {

/// C++'s locale while it lives: decimal commas, digits in groups of three, and the byte 0xa0, which ends the
/// à of UTF-8, is a space. No such locale need be installed.
struct comma_streams {
    std::locale before;

    comma_streams() : before(std::locale::global({{std::locale::classic(), new commas}, new spaces})) {}
    comma_streams(const comma_streams&) = delete;
    ~comma_streams() { std::locale::global(before); }

private:
    struct commas : std::numpunct<char> {
        char do_decimal_point() const override { return ','; }
        char do_thousands_sep() const override { return '.'; }
        std::string do_grouping() const override { return "\3"; }
    };
    struct spaces : std::ctype<char> {
        spaces() : std::ctype<char>(table()) {}
        static const mask* table() {
            static mask all[table_size];
            std::copy_n(classic_table(), table_size, all);
            all[0xa0] |= space;
            return all;
        }
    };
};

/// C's locale while it lives: decimal commas, in a locale that is installed or, where its source is, compiled
/// for it. There may be none, which is said.
struct comma_printf {
    std::string before = std::setlocale(LC_ALL, nullptr);
    bool there = false;

    comma_printf() {
        for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "es_ES.UTF-8", "pt_BR.UTF-8"})
            if (try_it(name)) return;
        const auto folder = std::filesystem::temp_directory_path() / "fprnn_test_locale_XXXXXX";
        std::string name = folder.string();
        if (::mkdtemp(name.data()) == nullptr) return;
        if (std::system(("localedef -i de_DE -f UTF-8 " + name + "/de_DE.UTF-8 >/dev/null 2>&1").c_str()) == 0) {
            const char* path = std::getenv("LOCPATH");
            const std::string path_before = path ? path : "";
            ::setenv("LOCPATH", name.c_str(), 1);
            try_it("de_DE.UTF-8");
            path ? ::setenv("LOCPATH", path_before.c_str(), 1) : ::unsetenv("LOCPATH");
        }
        std::filesystem::remove_all(name);
        if (!there) MESSAGE("skipped: there is no locale with a decimal comma, nor one that localedef could make");
    }
    comma_printf(const comma_printf&) = delete;
    ~comma_printf() { std::setlocale(LC_ALL, before.c_str()); }

private:
    bool try_it(const char* name) {
        there = std::setlocale(LC_ALL, name) != nullptr && *std::localeconv()->decimal_point == ',';
        if (!there) std::setlocale(LC_ALL, before.c_str());
        return there;
    }
};

/// Calls test() with decimal commas in C++'s locale, and then in C's.
template <class Test>
void with_decimal_commas(Test&& test) {
    {
        const comma_streams streams;
        test();
    }
    if (const comma_printf numbers; numbers.there) test();
}

}  // namespace fprnn::testing
