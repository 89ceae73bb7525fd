#include <fprnn/core/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <thread>
#include <vector>

namespace {

using fprnn::random_stream;
using fprnn::seed;

using words = std::array<std::uint32_t, 4>;

// Philox4x32-10 from the paper (Salmon et al. 2011, section 3.3), as a second opinion on the words' order.
words philox(words c, std::uint32_t key0, std::uint32_t key1) {
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t a = 0xD2511F53ull * c[0], b = 0xCD9E8D57ull * c[2];
        c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ key0, static_cast<std::uint32_t>(b),
             static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ key1, static_cast<std::uint32_t>(a)};
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return c;
}

std::uint64_t join(std::uint32_t low, std::uint32_t high) { return std::uint64_t{high} << 32 | low; }

struct moments {
    double mean = 0, variance = 0, skewness = 0, kurtosis = 0;
};

moments measure(const std::vector<double>& x) {
    const auto n = static_cast<double>(x.size());
    moments m;
    for (double v : x) m.mean += v / n;
    for (double v : x) m.variance += (v - m.mean) * (v - m.mean) / n;
    const double deviation = std::sqrt(m.variance);
    for (double v : x) {
        const double z = (v - m.mean) / deviation;
        m.skewness += z * z * z / n;
        m.kurtosis += z * z * z * z / n;
    }
    return m;
}

constexpr std::uint64_t many = 200000;

TEST_CASE("random: the bits of counter 0 and key 0 are Random123's known answer") {
    const random_stream r({0}, 0);
    CHECK(r.bits(0) == 0xe169c58d6627e8d5u);
    CHECK(r.bits(1) == 0x9b00dbd8bc57ac4cu);
}

TEST_CASE("random: Philox4x32-10 gives Random123's three known answers") {
    CHECK(philox({0, 0, 0, 0}, 0, 0) == words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    const std::uint32_t ones = 0xffffffff;
    CHECK(philox({ones, ones, ones, ones}, ones, ones) == words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    const words pi{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344};
    CHECK(philox(pi, 0xa4093822, 0x299f31d0) == words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

    r123::Philox4x32::ctr_type counter{{pi[0], pi[1], pi[2], pi[3]}};
    const auto library = r123::Philox4x32{}(counter, r123::Philox4x32::key_type{{0xa4093822, 0x299f31d0}});
    CHECK(words{library[0], library[1], library[2], library[3]} == philox(pi, 0xa4093822, 0x299f31d0));
}

TEST_CASE("random: number, stream and seed are the counter's halves and the key, all 64 bits of each") {
    const std::uint64_t key = 0x299f31d0a4093822u, stream = 0x0370734413198a2eu;
    const random_stream r({key}, stream);
    for (const std::uint64_t i : {0x05a308d3243f6a88u, 1ul << 32, 0ul, 12345678901ul}) {
        const words w =
            philox({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32), 0x13198a2e, 0x03707344},
                   0xa4093822, 0x299f31d0);
        CHECK(r.bits(2 * i) == join(w[0], w[1]));
        CHECK(r.bits(2 * i + 1) == join(w[2], w[3]));
    }
}

TEST_CASE("random: a number is the same in every order of use and on every thread") {
    const random_stream r({7}, 9);
    std::vector<double> forward(1000), backward(1000), threaded(1000);
    for (std::uint64_t i = 0; i < 1000; ++i) forward[i] = r.normal(i);
    for (std::uint64_t i = 1000; i-- > 0;) backward[i] = random_stream({7}, 9).normal(i);
    std::thread even([&] {
        for (std::uint64_t i = 0; i < 1000; i += 2) threaded[i] = r.normal(i);
    });
    for (std::uint64_t i = 1; i < 1000; i += 2) threaded[i] = r.normal(i);
    even.join();
    CHECK(forward == backward);
    CHECK(forward == threaded);
}

TEST_CASE("random: seeds, streams and numbers give different bits") {
    std::vector<std::uint64_t> all;
    for (std::uint64_t s = 0; s < 10; ++s)
        for (std::uint64_t stream = 0; stream < 10; ++stream)
            for (std::uint64_t i = 0; i < 100; ++i) all.push_back(random_stream({s}, stream).bits(i));
    std::sort(all.begin(), all.end());
    CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
}

TEST_CASE("random: uniform numbers have the mean, variance and range of [0,1)") {
    const random_stream r({1}, 2);
    std::vector<double> x(many);
    for (std::uint64_t i = 0; i < many; ++i) x[i] = r.uniform(i);
    CHECK(*std::min_element(x.begin(), x.end()) >= 0);
    CHECK(*std::max_element(x.begin(), x.end()) < 1);
    const moments m = measure(x);  // four standard errors each
    CHECK(std::abs(m.mean - 0.5) < 4 * std::sqrt(1.0 / 12 / many));
    CHECK(std::abs(m.variance - 1.0 / 12) < 4 * std::sqrt(1.0 / 180 / many));
    CHECK(std::abs(m.kurtosis - 1.8) < 0.02);
}

TEST_CASE("random: normal numbers have the first four moments of the normal distribution") {
    const random_stream r({1}, 2);
    std::vector<double> x(many);
    double neighbours = 0;
    for (std::uint64_t i = 0; i < many; ++i) {
        x[i] = r.normal(i);
        if (i % 2 == 1) neighbours += x[i] * x[i - 1] / (many / 2);
    }
    const moments m = measure(x);  // four standard errors each
    CHECK(std::abs(m.mean) < 4 * std::sqrt(1.0 / many));
    CHECK(std::abs(m.variance - 1) < 4 * std::sqrt(2.0 / many));
    CHECK(std::abs(m.skewness) < 4 * std::sqrt(6.0 / many));
    CHECK(std::abs(m.kurtosis - 3) < 4 * std::sqrt(24.0 / many));
    CHECK(std::abs(neighbours) < 4 * std::sqrt(2.0 / many));
}

TEST_CASE("random: neighbouring streams are not correlated") {
    for (std::uint64_t stream = 0; stream < 4; ++stream) {
        const random_stream a({1}, stream), b({1}, stream + 1);
        double product = 0;
        for (std::uint64_t i = 0; i < 20000; ++i) product += a.normal(i) * b.normal(i) / 20000;
        CHECK(std::abs(product) < 4 / std::sqrt(20000.0));
    }
}

TEST_CASE("random: below(i,n) is the floor of n times the 64-bit fraction") {
    const random_stream r({3}, 4);
    std::uint64_t wrong = 0;
    for (const std::uint64_t n : {1u, 2u, 60u, 1000u, 0x80000001u, 0xffffffffu})
        for (std::uint64_t i = 0; i < 1000; ++i) {
            __extension__ using wide = unsigned __int128;
            wrong += r.below(i, n) != static_cast<std::uint64_t>(wide{r.bits(i)} * n >> 64);
        }
    CHECK(wrong == 0);
    for (std::uint64_t i = 0; i < 1000; ++i) wrong += r.below(i, 1ul << 40) >= 1ul << 40;
    CHECK(wrong == 0);
}

}  // namespace
