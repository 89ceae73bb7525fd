#include <fprnn/backend/eigen.hpp>
#include <fprnn/expression/mixers.hpp>

#include <ops/checks.hpp>
#include <raised.hpp>

#include <algorithm>
#include <type_traits>

namespace {

using checks::random;
using fprnn::index;
using fprnn::tensor;
using fprnn::testing::raised;

/// Raw numbers of several deviations, and gates (the second row) of several means: half open, closed to zero,
/// open to one.
template <class M, class T>
void check_flags(const char* name) {
    CAPTURE(std::string(name));
    using team = fprnn::eigen::team<T>;
    for (const index D : {4, 7, 12, 33}) {
        if (std::is_same_v<M, fprnn::block_diagonal_mixer<3>> && D % 3 != 0) continue;
        for (const double deviation : {0.0, 0.1, 1.0, 50.0, 300.0})
            for (const double mean : {0.0, -150.0, 150.0})
                for (std::uint64_t seed = 0; seed < 20; ++seed) {
                    CAPTURE(D);
                    CAPTURE(deviation);
                    CAPTURE(mean);
                    CAPTURE(seed);
                    const auto sizes = M::raw_sizes(D);
                    std::vector<tensor<T>> raw, raw_bar;
                    std::vector<const T*> from;
                    std::vector<T*> to;
                    for (std::size_t k = 0; k < sizes.size(); ++k) {
                        raw.push_back(random<T>({sizes[k]}, seed + 100 * k, deviation, k == 0 ? 0 : mean));
                        raw_bar.emplace_back(fprnn::shape{sizes[k]});
                    }
                    for (std::size_t k = 0; k < sizes.size(); ++k) {
                        from.push_back(raw[k].data());
                        to.push_back(raw_bar[k].data());
                    }
                    const auto v = random<T>({D}, seed + 1), w = random<T>({D}, seed + 2),
                               out_bar = random<T>({D}, seed + 3);
                    tensor<T> q({M::size(D)}), q_bar({M::size(D)}), out({D}), v_bar({D}), w_bar({D}),
                        scratch({std::max(M::scratch(D), fprnn::mixing::prepare_scratch<M>(D)) + 1});
                    CHECK(raised([&] {
                              fprnn::mixing::prepare<M, team, T>(D, from.data(), q.data(), scratch.data());
                          }) == "");
                    CHECK(raised([&] {
                              M::template mix<team, T>(D, q.data(), v.data(), w.data(), out.data(), scratch.data());
                          }) == "");
                    CHECK(raised([&] {
                              M::template mix_back<team, T>(D, q.data(), out_bar.data(), v_bar.data(), w_bar.data(),
                                                            scratch.data());
                              M::template mix_back_q<team, T>(D, q.data(), v.data(), w.data(), out_bar.data(),
                                                              q_bar.data(), scratch.data());
                          }) == "");
                    CHECK(raised([&] {
                              fprnn::mixing::prepare_back<M, team, T>(D, from.data(), q.data(), q_bar.data(), to.data(),
                                                                      scratch.data());
                          }) == "");
                }
    }
}
template <class M>
void check_flags_of_both(const char* name) {
    SUBCASE("float") { check_flags<M, float>(name); }
    SUBCASE("double") { check_flags<M, double>(name); }
}

TEST_CASE("mixers raise no floating-point exception, whatever their gates and directions are") {
    SUBCASE("householder") { check_flags_of_both<fprnn::householder_mixer<4>>("householder"); }
    SUBCASE("dplr") { check_flags_of_both<fprnn::dplr_mixer<2>>("dplr"); }
    SUBCASE("contractive") {
        check_flags_of_both<fprnn::contractive_mixer<fprnn::householder_mixer<4>, 9, 10>>("contractive householder");
    }
    SUBCASE("contractive dplr") {
        check_flags_of_both<fprnn::contractive_mixer<fprnn::dplr_mixer<2>, 1, 2>>("contractive dplr");
    }
    SUBCASE("kronecker") { check_flags_of_both<fprnn::kronecker_mixer>("kronecker"); }
    SUBCASE("block_diagonal") { check_flags_of_both<fprnn::block_diagonal_mixer<3>>("block_diagonal"); }
    SUBCASE("selective_dense") { check_flags_of_both<fprnn::selective_dense_mixer>("selective_dense"); }
    SUBCASE("orthogonal") { check_flags_of_both<fprnn::orthogonal_mixer>("orthogonal"); }
    SUBCASE("product") {
        check_flags_of_both<fprnn::product_mixer<fprnn::kronecker_mixer, fprnn::householder_mixer<1>>>("product");
    }
}

}  // namespace
