#pragma once

#include <fprnn/core/host_device.hpp>
#include <fprnn/core/shape.hpp>

#include <cstdint>

#ifdef FPRNN_EIGEN
#include <Eigen/Core>

/// The first `filled` numbers of a register, 0 < filled < its size: rows whose width is no multiple of it end
/// with one. Processors with masks load and store them at once; through an array every load waits for stores
/// that are shorter than it.
namespace fprnn::register_part {

template <class Packet>
inline constexpr index size = Eigen::internal::unpacket_traits<Packet>::size;
template <class Packet>
using number = typename Eigen::internal::unpacket_traits<Packet>::type;

/// The numbers that `from` begins with, then zeros. What lies behind them is not read.
template <class Packet>
Packet load(const number<Packet>* from, index filled) {
    number<Packet> x[static_cast<std::size_t>(size<Packet>)] = {};
    for (index i = 0; i < filled; ++i) x[i] = from[i];
    return Eigen::internal::ploadu<Packet>(x);
}
template <class Packet>
void store(number<Packet>* to, const Packet& p, index filled) {
    number<Packet> x[static_cast<std::size_t>(size<Packet>)];
    Eigen::internal::pstoreu(x, p);
    for (index i = 0; i < filled; ++i) to[i] = x[i];
}
/// p with zeros behind the first `filled`.
template <class Packet>
Packet only(const Packet& p, index filled) {
    number<Packet> x[static_cast<std::size_t>(size<Packet>)] = {};
    store(x, p, filled);
    return Eigen::internal::ploadu<Packet>(x);
}

#if defined(EIGEN_VECTORIZE_AVX512)

inline std::uint16_t mask_of(index filled) { return static_cast<std::uint16_t>((1u << filled) - 1u); }

template <>
inline __m512 load<__m512>(const float* from, index filled) {
    return _mm512_maskz_loadu_ps(mask_of(filled), from);
}
template <>
inline void store<__m512>(float* to, const __m512& p, index filled) {
    _mm512_mask_storeu_ps(to, mask_of(filled), p);
}
template <>
inline __m512 only<__m512>(const __m512& p, index filled) {
    return _mm512_maskz_mov_ps(mask_of(filled), p);
}
template <>
inline __m512d load<__m512d>(const double* from, index filled) {
    return _mm512_maskz_loadu_pd(static_cast<__mmask8>(mask_of(filled)), from);
}
template <>
inline void store<__m512d>(double* to, const __m512d& p, index filled) {
    _mm512_mask_storeu_pd(to, static_cast<__mmask8>(mask_of(filled)), p);
}
template <>
inline __m512d only<__m512d>(const __m512d& p, index filled) {
    return _mm512_maskz_mov_pd(static_cast<__mmask8>(mask_of(filled)), p);
}

#elif defined(EIGEN_VECTORIZE_AVX)

template <class Mask, index Size>
inline __m256i mask_of(index filled) {
    static constexpr Mask ones[2 * Size] = {Mask(-1),
                                            Mask(-1),
                                            Mask(-1),
                                            Mask(-1),
                                            Size > 4 ? Mask(-1) : Mask(0),
                                            Size > 4 ? Mask(-1) : Mask(0),
                                            Size > 4 ? Mask(-1) : Mask(0),
                                            Size > 4 ? Mask(-1) : Mask(0)};
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(ones + Size - filled));
}

template <>
inline __m256 load<__m256>(const float* from, index filled) {
    return _mm256_maskload_ps(from, mask_of<std::int32_t, 8>(filled));
}
template <>
inline void store<__m256>(float* to, const __m256& p, index filled) {
    _mm256_maskstore_ps(to, mask_of<std::int32_t, 8>(filled), p);
}
template <>
inline __m256 only<__m256>(const __m256& p, index filled) {
    return _mm256_and_ps(p, _mm256_castsi256_ps(mask_of<std::int32_t, 8>(filled)));
}
template <>
inline __m256d load<__m256d>(const double* from, index filled) {
    return _mm256_maskload_pd(from, mask_of<std::int64_t, 4>(filled));
}
template <>
inline void store<__m256d>(double* to, const __m256d& p, index filled) {
    _mm256_maskstore_pd(to, mask_of<std::int64_t, 4>(filled), p);
}
template <>
inline __m256d only<__m256d>(const __m256d& p, index filled) {
    return _mm256_and_pd(p, _mm256_castsi256_pd(mask_of<std::int64_t, 4>(filled)));
}

#endif

}  // namespace fprnn::register_part

#endif
