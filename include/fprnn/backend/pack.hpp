#pragma once

#include <fprnn/backend/register_part.hpp>
#include <fprnn/core/math.hpp>
#include <fprnn/core/shape.hpp>
#include <fprnn/core/small_array.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#ifdef FPRNN_EIGEN
#include <Eigen/Core>

namespace fprnn {

/// Which of a register's channels meet a condition.
template <class T>
struct pack_mask {
    using packet = typename Eigen::internal::packet_traits<T>::type;

    packet p;

    friend pack_mask operator&(pack_mask a, pack_mask b) { return {Eigen::internal::pand(a.p, b.p)}; }
    /// Of a register of floats Eigen looks at bits; of doubles it adds up what may be NaN.
    friend bool any(pack_mask m) {
        using floats = typename Eigen::internal::packet_traits<float>::type;
        if constexpr (sizeof(floats) == sizeof(packet))
            return Eigen::internal::predux_any(__builtin_bit_cast(floats, m.p));
        else
            return Eigen::internal::predux_any(m.p);
    }
};

/// A register of channels with the arithmetic of a number; its operations are Eigen's packet operations.
template <class T>
struct pack {
    using traits = Eigen::internal::packet_traits<T>;
    using packet = typename traits::type;
    static constexpr index size = Eigen::internal::unpacket_traits<packet>::size;

    packet p;

    pack() = default;
    explicit pack(packet v) : p(v) {}
    pack(T x) requires(!std::same_as<packet, T>) : p(Eigen::internal::pset1<packet>(x)) {}

    static pack load(const T* from) { return pack(Eigen::internal::ploadu<packet>(from)); }
    void store(T* to) const { Eigen::internal::pstoreu(to, p); }

    friend pack operator+(pack a, pack b) { return pack(Eigen::internal::padd(a.p, b.p)); }
    friend pack operator-(pack a, pack b) { return pack(Eigen::internal::psub(a.p, b.p)); }
    friend pack operator*(pack a, pack b) { return pack(Eigen::internal::pmul(a.p, b.p)); }
    friend pack operator/(pack a, pack b) { return pack(Eigen::internal::pdiv(a.p, b.p)); }
    friend pack operator-(pack a) { return pack(Eigen::internal::pnegate(a.p)); }
    pack& operator+=(pack b) { return *this = *this + b; }
    pack& operator*=(pack b) { return *this = *this * b; }

    /// a b + c, with one rounding wherever the processor has it and never as the compiler likes.
    friend pack multiply_add(pack a, pack b, pack c) { return pack(Eigen::internal::pmadd(a.p, b.p, c.p)); }
    friend pack exp(pack a) { return pack(Eigen::internal::pexp(a.p)); }
    /// Floats in 13 instructions, where Eigen's exp takes 19 (AVX-512): within 1.2 of a last place;
    /// 0 below 2^−127, ∞ from 2^127.5 on.
    friend pack exp2(pack a) {
        if constexpr (std::same_as<T, float> && size > 1) {
            // Adding 1.5 · 2^23 rounds to whole numbers, which then stand in the last bits of the sum: n +
            // 127 there is the exponent of 2^n.
            const pack shift(12582912.0f + 127.0f);
            const pack x = minimum(maximum(a, pack(-127.0f)), pack(128.0f));
            packet sum = (x + shift).p;
            EIGEN_OPTIMIZATION_BARRIER(sum)
            packet whole = (pack(sum) - shift).p;
            EIGEN_OPTIMIZATION_BARRIER(whole)  // -ffast-math would find that x − whole is zero
            const pack f = x - pack(whole);
            pack q(1.5453163e-4f);  // (2^f − 1) / f at Chebyshev's points of [−1/2, 1/2]: 5e-9
            for (const T c : {1.3390863e-3f, 9.6180826e-3f, 5.5503571e-2f, 0.24022651f, 0.69314719f})
                q = multiply_add(q, f, pack(c));
            return multiply_add(q, f, pack(1.0f)) * pack(last_bits_as_exponent(sum));
        } else {
            return exp(a * pack(T(0.693147180559945309417)));
        }
    }
    /// From the bound on it is below the smallest normal number: zero, where those are flushed. e^{−a} does
    /// not overflow.
    friend pack logistic(pack a) {
        const pack one(T(1)), bound(T(sizeof(T) == sizeof(float) ? 88.5 : 709.5));
        return one / (one + exp(minimum(-a, bound)));
    }
    /// Of a ≥ 0.
    friend pack log1p(pack a) {
        if constexpr (traits::HasLog1p) {
            // Where 1 + a is 1, Eigen divides zero by zero before it takes a.
            const pack least(std::numeric_limits<T>::epsilon() / 2 * (1 + std::numeric_limits<T>::epsilon()));
            return select(a < least, a, pack(Eigen::internal::plog1p(maximum(a, least).p)));
        } else {
            T x[static_cast<std::size_t>(size)];
            a.store(x);
            for (T& v : x) v = std::log1p(v);
            return load(x);
        }
    }
    /// Of floats below the smallest normal number it is 0: Eigen's multiplies them by 1/√a, which is
    /// infinite.
    friend pack sqrt(pack a) {
        if constexpr (std::same_as<T, float> && size > 1) {
            const pack least(std::numeric_limits<T>::min());
            const auto tiny = (pack(T(0)) <= a) & (a < least);
            return select(tiny, pack(T(0)), pack(Eigen::internal::psqrt(select(tiny, least, a).p)));
        } else {
            return pack(Eigen::internal::psqrt(a.p));
        }
    }
    friend pack ceil(pack a) { return pack(Eigen::internal::pceil(a.p)); }
    friend pack abs(pack a) { return pack(Eigen::internal::pabs(a.p)); }
    friend pack maximum(pack a, pack b) { return pack(Eigen::internal::pmax(a.p, b.p)); }
    friend pack minimum(pack a, pack b) { return pack(Eigen::internal::pmin(a.p, b.p)); }

    /// By bits, see math::is_finite.
    friend pack_mask<T> is_finite(pack a) {
        using bits = math::bits_of<T>;
        using word = std::make_signed_t<typename bits::type>;  // no processor before AVX-512 compares unsigned ones
        typedef word words __attribute__((vector_size(sizeof(packet))));
        const words magnitude = __builtin_bit_cast(words, a.p) & static_cast<word>(~bits::sign);
        return {__builtin_bit_cast(packet, magnitude < static_cast<word>(bits::infinity))};
    }
    friend pack_mask<T> operator<(pack a, pack b) { return {Eigen::internal::pcmp_lt(a.p, b.p)}; }
    friend pack_mask<T> operator<=(pack a, pack b) { return {Eigen::internal::pcmp_le(a.p, b.p)}; }
    friend pack select(pack_mask<T> m, pack yes, pack no) { return pack(Eigen::internal::pselect(m.p, yes.p, no.p)); }

    T sum() const { return Eigen::internal::predux(p); }

private:
    template <class Packet>
    static Packet last_bits_as_exponent(Packet p) {
        using integers = typename Eigen::internal::unpacket_traits<Packet>::integer_packet;
        const integers bits = Eigen::internal::preinterpret<integers>(p);
        return Eigen::internal::preinterpret<Packet>(Eigen::internal::plogical_shift_left<23>(bits));
    }
};

/// A full register of channels.
template <class T>
struct pack_lane {
    index channel;

    pack<T> load(const T* p) const { return pack<T>::load(p + channel); }
    void store(T* p, pack<T> v) const { v.store(p + channel); }
    void add(T* p, pack<T> v) const { (load(p) + v).store(p + channel); }
    /// Into the second cache: rows that are a page apart share a few places of the first.
    void prefetch(const T* p) const { __builtin_prefetch(p + channel, 0, 2); }
};

/// The last, partly filled register of a row; the empty places read 0 and are never written.
template <class T>
struct tail_lane {
    index channel;
    index filled;

    pack<T> load(const T* p) const { return pack<T>(register_part::load<packet>(p + channel, filled)); }
    void store(T* p, pack<T> v) const { register_part::store<packet>(p + channel, v.p, filled); }
    void add(T* p, pack<T> v) const { store(p, load(p) + v); }
    void prefetch(const T*) const {}
    /// `v` with zeros in the empty places.
    pack<T> only_filled(pack<T> v) const { return pack<T>(register_part::only<packet>(v.p, filled)); }
    /// `v` with its first channel in the empty places.
    pack<T> repeat_first(pack<T> v) const {
        T x[static_cast<std::size_t>(pack<T>::size)];
        v.store(x);
        for (index i = filled; i < pack<T>::size; ++i) x[i] = x[0];
        return pack<T>::load(x);
    }

private:
    using packet = typename pack<T>::packet;
};

/// As many registers as a register has numbers.
template <class T>
struct pack_square {
    static constexpr index width = pack<T>::size;

    pack<T> row[static_cast<std::size_t>(width)];

    void load(const T* from, index stride) {
        for (index i = 0; i < width; ++i) row[i] = pack<T>::load(from + i * stride);
    }
    void transpose() { transpose_as(row[0].p); }

private:
    /// A deduced type, so that GCC does not warn of a template argument's alignment.
    template <class Packet>
    void transpose_as(Packet) {
        Eigen::internal::PacketBlock<Packet, static_cast<int>(width)> block;
        for (index i = 0; i < width; ++i) block.packet[i] = row[i].p;
        ptranspose(block);
        for (index i = 0; i < width; ++i) row[i].p = block.packet[i];
    }
};

/// Runs bodies a register of channels at a time. Every row takes the same path whatever its address, so equal
/// rows give equal bits wherever they stand.
template <class T>
struct pack_team {
    static constexpr index width = pack<T>::size;

    template <class Body>
    static void each(index channels, Body&& body) {
        index i = 0;
        for (; i + width <= channels; i += width) body(pack_lane<T>{i});
        if (i < channels) body(tail_lane<T>{i, channels - i});
    }
    template <std::size_t K, class Body>
    static small_array<T, K> sum(index channels, Body&& body) {
        small_array<pack<T>, K> total;
        for (auto& t : total.values) t = pack<T>(T(0));
        index i = 0;
        for (; i + width <= channels; i += width) {
            const auto part = body(pack_lane<T>{i});
            for (std::size_t k = 0; k < K; ++k) total[k] += part[k];
        }
        if (i < channels) {
            const tail_lane<T> lane{i, channels - i};
            const auto part = body(lane);
            for (std::size_t k = 0; k < K; ++k) total[k] += lane.only_filled(part[k]);
        }
        return sums(total);
    }
    template <class Body>
    static T max(index channels, Body&& body) {
        pack<T> largest(-std::numeric_limits<T>::infinity());
        pack<T> taint(T(0));  // not finite when an x is not; shares of finite ones do not add up to infinity
        constexpr T share = T(1) / T(std::uint64_t{1} << 32);
        each(channels, [&](auto lane) {
            pack<T> v = body(lane);
            if constexpr (requires { lane.filled; }) v = lane.repeat_first(v);
            largest = maximum(largest, v);
            taint += v * pack<T>(share);
        });
        return math::is_finite(taint.sum()) ? Eigen::internal::predux_max(largest.p)
                                            : std::numeric_limits<T>::quiet_NaN();
    }
    template <class Body>
    static void once(Body&& body) {
        body();
    }
    /// h_t = λ_t h_{t−1} + u_t of numbers that lie one behind the other, from h_{−1} = before. A square of as
    /// many registers as a register has numbers is transposed, so that each number of a register walks a
    /// stretch of time of its own; what each stretch makes of its beginning is a multiplication more.
    static void scan_line(index tokens, const T* lambda, const T* u, T before, T* h) {
        index t = 0;
        if constexpr (width > 1)
            for (; t + width * width <= tokens; t += width * width) {
                pack_square<T> product, sum;
                product.load(lambda + t, width);
                sum.load(u + t, width);
                product.transpose();
                sum.transpose();
                for (index j = 1; j < width; ++j) {
                    sum.row[j] = multiply_add(product.row[j], sum.row[j - 1], sum.row[j]);
                    product.row[j] *= product.row[j - 1];
                }
                T factors[width], terms[width], begin[width];
                product.row[width - 1].store(factors);
                sum.row[width - 1].store(terms);
                for (index i = 0; i < width; ++i) {
                    begin[i] = before;
                    before = factors[i] * before + terms[i];
                }
                for (index j = 0; j < width; ++j)
                    sum.row[j] = multiply_add(product.row[j], pack<T>::load(begin), sum.row[j]);
                sum.transpose();
                for (index i = 0; i < width; ++i) sum.row[i].store(h + t + i * width);
            }
        for (; t < tokens; ++t) h[t] = before = lambda[t] * before + u[t];
    }

private:
    /// A register folded until it has at most four numbers.
    template <class Packet>
    static auto folded(Packet p) {
        if constexpr (Eigen::internal::unpacket_traits<Packet>::size > 4)
            return folded(Eigen::internal::predux_half_dowto4(p));
        else
            return p;
    }
    /// The sum of every register, four at a time: half of the shuffles that four sums take by themselves.
    template <std::size_t K>
    static small_array<T, K> sums(const small_array<pack<T>, K>& total) {
        using quarter = decltype(folded(total[0].p));
        constexpr std::size_t rest = K % 4, fours = K - (rest < 3 ? rest : 0);
        small_array<T, K> result;
        std::size_t k = 0;
        if constexpr (Eigen::internal::unpacket_traits<quarter>::size == 4)
            for (; k < fours; k += 4) {
                Eigen::internal::PacketBlock<quarter, 4> four;
                for (std::size_t i = 0; i < 4; ++i) four.packet[i] = folded(total[std::min(k + i, K - 1)].p);
                Eigen::internal::ptranspose(four);
                const quarter s = Eigen::internal::padd(Eigen::internal::padd(four.packet[0], four.packet[1]),
                                                        Eigen::internal::padd(four.packet[2], four.packet[3]));
                T x[4];
                Eigen::internal::pstoreu(x, s);
                for (std::size_t i = 0; i < 4 && k + i < K; ++i) result[k + i] = x[i];
            }
        for (; k < K; ++k) result[k] = total[k].sum();
        return result;
    }
};

}  // namespace fprnn

#endif
