#pragma once

#include <fprnn/core/shape.hpp>
#include <fprnn/mixers/mixer.hpp>
#include <fprnn/mixers/row_algebra.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <tuple>

namespace fprnn {

/// Q = A B, B applied first: the authors' mixture of mixers is a product of several. Raw and prepared: those
/// of A, then those of B. It is FPRNN_BOTH where A and B are, A::size and B::size, too.
/// Guaranteed: ‖Q‖₂ ≤ ‖A‖₂ ‖B‖₂. A product of contractions need not be one: ‖I − AB‖₂ ≤ ‖I − A‖₂ + ‖A‖₂ ‖I −
/// B‖₂.
template <class A, class B>
struct product_mixer {
    static constexpr const char* name = "product";
    static_assert(is_mixer<A> && is_mixer<B>, "product_mixer<A, B>: A and B must satisfy the concept fprnn::mixer");

    static void check(index D) {
        if constexpr (requires { A::check(D); }) A::check(D);
        if constexpr (requires { B::check(D); }) B::check(D);
        (void)checked_sum(A::size(D), B::size(D), "product: the prepared numbers of its factors");
    }
    static auto raw_sizes(index D) {
        const auto a = A::raw_sizes(D);
        const auto b = B::raw_sizes(D);
        std::array<index, of_A + std::tuple_size_v<decltype(b)>> all{};
        std::copy(b.begin(), b.end(), std::copy(a.begin(), a.end(), all.begin()));
        return all;
    }
    FPRNN_BOTH static constexpr index size(index D) { return A::size(D) + B::size(D); }
    static index scratch(index D) { return 3 * D + std::max(A::scratch(D), B::scratch(D)); }
    static index prepare_scratch(index D) {
        return std::max(mixing::prepare_scratch<A>(D), mixing::prepare_scratch<B>(D));
    }

    template <class Team, class T>
    FPRNN_BOTH static void prepare(index D, const T* const* raw, T* q, T* scratch) {
        mixing::prepare<A, Team>(D, raw, q, scratch);
        mixing::wait<Team>();
        mixing::prepare<B, Team>(D, raw + of_A, q + A::size(D), scratch);
    }
    template <class Team, class T>
    FPRNN_BOTH static void prepare_back(index D, const T* const* raw, const T* q, const T* q_bar, T* const* raw_bar,
                                        T* scratch) {
        const index b = A::size(D);
        mixing::prepare_back<A, Team>(D, raw, q, q_bar, raw_bar, scratch);
        mixing::wait<Team>();
        mixing::prepare_back<B, Team>(D, raw + of_A, q + b, q_bar + b, raw_bar + of_A, scratch);
    }

    template <class Team, class T>
    FPRNN_BOTH static void mix(index D, const T* q, const T* v, const T* w, T* out, T* scratch) {
        T *const d = scratch, *const rest = scratch + 3 * D;
        mixing::difference<Team>(D, v, w, w, d);
        mixing::wait<Team>();
        B::template mix<Team, T>(D, q + A::size(D), d, nullptr, d, rest);
        mixing::wait<Team>();
        A::template mix<Team, T>(D, q, d, nullptr, d, rest);
        mixing::wait<Team>();
        mixing::add_rest<Team>(D, static_cast<const T*>(d), w, out);
    }
    template <class Team, class T>
    FPRNN_BOTH static void mix_back(index D, const T* q, const T* out_bar, T* v_bar, T* w_bar, T* scratch) {
        T *const g = scratch, *const bar = scratch + D, *const rest = scratch + 3 * D;
        zero<Team>(D, g);
        zero<Team>(D, bar);
        mixing::wait<Team>();
        A::template mix_back<Team, T>(D, q, out_bar, g, nullptr, rest);
        mixing::wait<Team>();
        B::template mix_back<Team, T>(D, q + A::size(D), g, bar, nullptr, rest);
        mixing::wait<Team>();
        mixing::add_bars<Team>(D, static_cast<const T*>(bar), out_bar, v_bar, w_bar);
    }
    template <class Team, class T>
    FPRNN_BOTH static void mix_back_q(index D, const T* q, const T* v, const T* w, const T* out_bar, T* q_bar,
                                      T* scratch) {
        T *const d = scratch, *const Bd = scratch + D, *const g = scratch + 2 * D, *const rest = scratch + 3 * D;
        const index b = A::size(D);
        mixing::difference<Team>(D, v, w, w, d);
        zero<Team>(D, g);
        mixing::wait<Team>();
        B::template mix<Team, T>(D, q + b, d, nullptr, Bd, rest);
        mixing::wait<Team>();
        A::template mix_back_q<Team, T>(D, q, Bd, nullptr, out_bar, q_bar, rest);
        mixing::wait<Team>();
        A::template mix_back<Team, T>(D, q, out_bar, g, nullptr, rest);
        mixing::wait<Team>();
        B::template mix_back_q<Team, T>(D, q + b, d, nullptr, g, q_bar + b, rest);
    }

private:
    static constexpr std::size_t of_A = std::tuple_size_v<decltype(A::raw_sizes(index{}))>;

    template <class Team, class T>
    FPRNN_BOTH static void zero(index D, T* to) {
        Team::each(D, [&](auto lane) { lane.store(to, decltype(lane.load(to))(T(0))); });
    }
};

}  // namespace fprnn
