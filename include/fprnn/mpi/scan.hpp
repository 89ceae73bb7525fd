#pragma once

#include <fprnn/mpi/agree.hpp>
#include <fprnn/ops/scan.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

namespace fprnn::mpi {

namespace detail {

/// h ↦ factor ⊙ h + term, both [B,D]: what tokens make of the state before them.
template <class T>
struct affine_map {
    tensor<T> factor, term;

    /// The identity.
    explicit affine_map(const shape& s) : factor(s), term(s) { std::fill(factor.begin(), factor.end(), T(1)); }

    /// What it makes of h, in place; of 0 the term, also where the factor has overflowed.
    void apply(tensor<T>& h) const {
        for (index i = 0; i < h.size(); ++i) h[i] = h[i] == T(0) ? term[i] : factor[i] * h[i] + term[i];
    }
};

/// That of a rank's tokens: forward λ and u, or, of the adjoint, conj(λ) from the other end, where a term is
/// multiplied as well: g ↦ conj(λ_t) ⊙ (ḣ_t + g).
template <bool Adjoint, class T, class Backend>
affine_map<T> map_of(view<const T> lambda, view<const T> term, direction d, Backend& backend) {
    using team = typename Backend::template team<T>;
    const index B = lambda.shape()[0], tokens = lambda.shape()[1], D = lambda.shape()[2];
    affine_map<T> map({B, D});
    const direction walked = (d == direction::forward) != Adjoint ? direction::forward : direction::reversed;
    if (tokens > 0)
        fprnn::detail::for_each_scan(backend, B, D, [&](index b, index first, index channels) {
            const fprnn::detail::sequence_walk s(b, tokens, D, walked);
            T *factor = map.factor.data() + b * D + first, *sum = map.term.data() + b * D + first;
            for (index t = 0; t < tokens; ++t) {
                const index at = s.begin + first + t * s.stride;
                team::each(channels, [&](auto lane) {
                    const auto l = lane.load(lambda.data() + at), x = lane.load(term.data() + at);
                    if constexpr (Adjoint) {
                        lane.store(factor, kernel::conjugate(l) * lane.load(factor));
                        lane.store(sum, kernel::conjugate(l) * (x + lane.load(sum)));
                    } else {
                        lane.store(factor, l * lane.load(factor));
                        lane.store(sum, l * lane.load(sum) + x);
                    }
                });
            }
        });
    return map;
}

/// What comes to this rank when `from` [B,D], zero when null, goes through the maps of the ranks before it,
/// which are those with lower numbers, or with higher ones.
template <class T>
tensor<T> through_ranks(ranks& all, const affine_map<T>& mine, view<const T> from, bool upwards) {
    fprnn::detail::packed bytes;
    bytes.put(std::vector<T>(mine.factor.begin(), mine.factor.end()))
        .put(std::vector<T>(mine.term.begin(), mine.term.end()))
        .put(std::vector<T>(from.begin(), from.end()));
    auto gathered = all.gather(bytes.bytes());
    tensor<T> h(mine.factor.shape());
    affine_map<T> map(h.shape());
    const index size = all.size();
    for (index k = 0; k < size; ++k) {
        const index r = upwards ? k : size - 1 - k;
        fprnn::detail::packed one(std::move(gathered[static_cast<std::size_t>(r)]));
        for (tensor<T>* to : {&map.factor, &map.term}) {
            const auto numbers = one.template get_vector<T>();
            std::copy(numbers.begin(), numbers.end(), to->begin());
        }
        if (k == 0) {
            const auto numbers = one.template get_vector<T>();
            std::copy(numbers.begin(), numbers.end(), h.begin());
        }
        if (r == all.rank()) break;
        map.apply(h);
    }
    return h;
}

/// All ranks have pieces of as many sequences and channels.
template <class Check>
void agree_on_pieces(ranks& all, const char* operation, const shape& piece, Check check) {
    agree(all, operation, message_of(check));
    agree_on(all, operation, "[B,·,D] of B = " + std::to_string(piece[0]) + " and D = " + std::to_string(piece[2]));
}

}  // namespace detail

/// A rank's part of a scan over all ranks.
template <class T>
struct scanned_piece {
    tensor<T> h;      ///< [B,T,D], of this rank's tokens
    tensor<T> carry;  ///< [B,D], the state before them: scan_back's carry
};

/// fprnn::scan of sequences whose tokens lie on consecutive ranks, any number on each: what a rank's tokens
/// make of the state before them is one affine map of [B,D], and these are composed over the ranks (eq.
/// intro_rnn, whose maps are a monoid). A rank reads its own tokens twice; 2 B D numbers of each rank are
/// exchanged. lambda, u: this rank's [B,T,D]; carry: that of the whole sequences, [B,D], zero when left
/// out, which the rank of the first token gives (reversed: of the last). Errors: those of scan, by rank, on
/// all of them; ranks with other B or D.
template <host_array A, host_memory_backend<element<A>> Backend = reference>
scanned_piece<element<A>> scan(ranks& all, const A& lambda, reads<A> u, reads<A> carry = {},
                               direction d = direction::forward, Backend backend = {}) {
    using T = element<A>;
    detail::agree_on_pieces(all, "mpi::scan", lambda.shape().rank() == 3 ? lambda.shape() : shape{0, 0, 0}, [&] {
        fprnn::detail::require_rank("scan", "lambda", lambda.shape(), 3, "[B,T,D]");
        fprnn::detail::require_same("scan", "lambda", lambda.shape(), "u", u.shape());
        fprnn::detail::require_optional("scan", "carry", carry, {u.shape()[0], u.shape()[2]});
    });
    const auto map = detail::map_of<false, T>(fprnn::detail::read(lambda), u, d, backend);
    scanned_piece<T> piece;
    piece.carry = detail::through_ranks<T>(all, map, carry, d == direction::forward);
    piece.h = fprnn::scan(lambda, u, piece.carry, d, backend);
    return piece;
}

/// Its adjoint, as fprnn::scan_back. h, carry: of the scanned_piece; h_bar: this rank's [B,T,D]; carry_bar:
/// the cotangent of the carry out of the whole sequences, [B,D] or left out, which the rank of the last
/// token gives (reversed: of the first). Adds to `into` this rank's, where into.carry is the cotangent of
/// its own piece's carry: on the rank of the first token that of the whole sequences' carry.
template <host_array A, host_memory_backend<element<A>> Backend = reference>
void scan_back(ranks& all, const A& lambda, reads<A> h, reads<A> carry, reads<A> h_bar, reads<A> carry_bar,
               scan_cotangents<element<A>>& into, direction d = direction::forward, Backend backend = {}) {
    using T = element<A>;
    detail::agree_on_pieces(all, "mpi::scan_back", lambda.shape().rank() == 3 ? lambda.shape() : shape{0, 0, 0}, [&] {
        fprnn::detail::require_rank("scan_back", "lambda", lambda.shape(), 3, "[B,T,D]");
        fprnn::detail::require_same("scan_back", "lambda", lambda.shape(), "h", h.shape());
        fprnn::detail::require_same("scan_back", "lambda", lambda.shape(), "h_bar", h_bar.shape());
        const shape of_carry{h.shape()[0], h.shape()[2]};
        fprnn::detail::require_shape("scan_back", "carry", carry.shape(), of_carry);
        fprnn::detail::require_optional("scan_back", "carry_bar", carry_bar, of_carry);
    });
    const auto map = detail::map_of<true, T>(fprnn::detail::read(lambda), h_bar, d, backend);
    const tensor<T> arriving = detail::through_ranks<T>(all, map, carry_bar, d == direction::reversed);
    fprnn::scan_back(lambda, h, carry, h_bar, arriving, into, d, backend);
}

}  // namespace fprnn::mpi
