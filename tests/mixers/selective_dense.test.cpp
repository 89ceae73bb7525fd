#include <fprnn/mixers/selective_dense.hpp>

#include <doctest/doctest.h>

namespace {

TEST_CASE("selective_dense: widths above 256 are refused") {
    CHECK_THROWS_WITH_AS(fprnn::selective_dense_mixer::check(257),
                         "selective_dense: d_inner must be at most 256, got 257", fprnn::argument_error);
}

}  // namespace
