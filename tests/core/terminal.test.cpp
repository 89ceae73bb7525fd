#include "locales.hpp"

#include <fprnn/core/terminal.hpp>

#include <doctest/doctest.h>

namespace {

using fprnn::wrapped;

TEST_CASE("terminal: words are in lines of at most so many columns, whatever parts them") {
    CHECK(wrapped("", 10) == "");
    CHECK(wrapped("  one\ttwo \n three  ", 80) == "one two three");
    CHECK(wrapped("one two three", 7) == "one two\nthree");
    CHECK(wrapped("one two three", 6) == "one\ntwo\nthree");
    CHECK(wrapped("a longer-than-it-may-be word", 6) == "a\nlonger-than-it-may-be\nword");
    CHECK(wrapped("ℓ ≤ λ", 5) == "ℓ ≤ λ");
}

TEST_CASE("terminal: no locale takes a byte within a character for a space") {
    fprnn::testing::with_decimal_commas([] { CHECK(wrapped("voil\u00e0 tout", 80) == "voil\u00e0 tout"); });
}

}  // namespace
