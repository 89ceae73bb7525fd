#include <fprnn/expression/mixers.hpp>
#include <fprnn/graph/lower.hpp>
#include <fprnn/graph/reduce.hpp>
#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>

#include <doctest/doctest.h>

namespace {

using namespace fprnn;
using namespace fprnn::symbols;
using graph::kind;
using graph::obstacle;

template <class E>
constexpr graph::view graph_of(E) {
    return graph::graph_of<E>;
}
template <class E>
constexpr graph::reduction reduced(E e) {
    return graph::reduce(graph_of(e));
}

constexpr auto Q = householder<2>(cat(in, shift(prev)));
constexpr auto v = linear<"v">(in);
constexpr auto mix = Q * v + (I - Q) * prev;
constexpr auto lambda = sigmoid(affine<"lambda">(in));

TEST_CASE("reduce: scans, sums, products and one norm at the end are solved in R numbers") {
    constexpr auto y = fixed_point(layer_norm<"n">(scan(lambda, (1 - lambda) * mix + v)));
    constexpr auto r = reduced(y);
    CHECK(r.why_not == obstacle::none);
    CHECK(r.rank == 2);
    CHECK(graph_of(y)[r.mix].what == kind::mix);
    CHECK(graph_of(y)[r.norm].what == kind::norm);
    CHECK(reduced(fixed_point(scan(lambda, mix))).norm == graph::nowhere);
    CHECK(reduced(fixed_point((I - Q) * prev + scan(lambda, v))).why_not == obstacle::none);
    CHECK(reduced(models::fp_mamba(dplr<4>)).rank == 4);
    CHECK(reduced(models::fp_rnn(contractive<1, 2>(householder<1>))).rank == 1);
}

TEST_CASE("reduce: what stands in the way is named, with its node") {
    CHECK(reduced(scan(lambda, v)).why_not == obstacle::no_iteration);
    CHECK(reduced(fixed_point(tanh(linear<"R">(prev) + v))).why_not == obstacle::no_compact_mix);
    CHECK(reduced(models::fp_rnn(kronecker)).why_not == obstacle::no_compact_mix);
    SUBCASE("v changes with prev") {
        const auto y = fixed_point(Q * tanh(prev) + (I - Q) * prev);
        CHECK(reduced(y).why_not == obstacle::no_compact_mix);
    }
    SUBCASE("a function that is not affine") {
        constexpr auto y = fixed_point(tanh(mix));
        CHECK(reduced(y).why_not == obstacle::not_affine);
        CHECK(graph_of(y)[reduced(y).where].what == kind::elementwise);
    }
    SUBCASE("a map behind the mix") {
        constexpr auto y = fixed_point(linear<"R">(mix));
        CHECK(reduced(y).why_not == obstacle::not_affine);
        CHECK(graph_of(y)[reduced(y).where].what == kind::linear);
    }
    SUBCASE("a norm that is not at the end") {
        constexpr auto y = fixed_point(scan(lambda, layer_norm<"n">(mix)));
        CHECK(reduced(y).why_not == obstacle::not_affine);
        CHECK(graph_of(y)[reduced(y).where].what == kind::norm);
    }
    SUBCASE("prev beside the mix") {
        constexpr auto y = fixed_point(scan(lambda, mix + prev));
        CHECK(reduced(y).why_not == obstacle::prev_beside);
    }
    SUBCASE("two mixes") {
        constexpr auto P = dplr<1, "P">(in);
        constexpr auto y = fixed_point(scan(lambda, mix + (P * v + (I - P) * prev)));
        CHECK(reduced(y).why_not == obstacle::prev_beside);
    }
}

}  // namespace
