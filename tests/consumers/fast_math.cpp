// What -ffast-math must not take away: the rounding in powers of two, without which all decays of a selective scan are wrong.
#include <fprnn/backend/eigen.hpp>

#include <cmath>
#include <cstdio>

int main() {
    using pack = fprnn::pack<float>;
    double worst = 0;
    for (int i = -120 * 64; i < 120 * 64; ++i) {
        const float x = static_cast<float>(i) / 64;
        float powers[static_cast<std::size_t>(pack::size)];
        exp2(pack(x)).store(powers);
        const double exact = std::exp2(static_cast<double>(x));
        worst = std::fmax(worst, std::abs(static_cast<double>(powers[0]) / exact - 1));
    }
    std::printf("the largest error of a power of two is %g of it\n", worst);
    return worst > 0 && worst < 2e-7 ? 0 : 1;
}
