#include "cpu_blocks.hpp"

#include <fprnn/models/fp_mamba.hpp>

namespace {

using fprnn::models::fp_mamba_options;

/// By bits: whether λ, the mixer, and b and c see y_{t−1}.
constexpr fp_mamba_options options_of(int bits) {
    return {.convolution = experiment::architecture::convolved_tokens,
            .delta_sees_y = (bits & 1) != 0,
            .b_c_see_y = (bits & 4) != 0,
            .mixer_sees = (bits & 2) != 0 ? fp_mamba_options::seen::side_by_side : fp_mamba_options::seen::x};
}

}  // namespace

experiment::blocks_on<fprnn::eigen> experiment::make_fp_mamba_dependent(const architecture& a, fp::chunked schedule,
                                                                        fp::adjoint adjoint) {
    const int bits = (a.sees_y.lambda ? 1 : 0) + (a.sees_y.mixer ? 2 : 0) + (a.sees_y.b_c ? 4 : 0);
    blocks_on<fp::eigen> result;
    const auto consider = [&]<int Bits>() {
        if (bits == Bits)
            result = make<fp::eigen>(fp::models::fp_mamba<options_of(Bits)>(fp::householder<4>), a, schedule, adjoint);
    };
    [&]<int... Bits>(std::integer_sequence<int, Bits...>) { (consider.template operator()<Bits>(), ...); }
    (std::integer_sequence<int, 0, 1, 2, 3, 4, 5, 7>{});  // 6 is fp_mamba_convolved.cpp's
    return result;
}
