#include <fprnn/backend/reference.hpp>
#include <fprnn/fixed_point/plan_of.hpp>
#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>

#include <doctest/doctest.h>

#include <span>
#include <type_traits>
#include <vector>

namespace {

using namespace fprnn;
using namespace fprnn::symbols;
using graph::slot;

template <class E, class T = double>
constexpr const plan<T, reference>& planned(E) {
    return plan_of<E, T, reference>;
}
std::vector<slot> list(std::span<const slot> s) { return {s.begin(), s.end()}; }

TEST_CASE("plan: nodes are told apart by when they are evaluated, in their order") {
    const auto Q = householder<4>(cat(in, shift(prev)));
    const auto u = (1 - sigmoid(affine<"lambda">(in))) * (Q * linear<"B">(in) + (I - Q) * prev);
    const auto& p = planned(linear<"out">(fixed_point(u)));
    REQUIRE(p.stages.size() == 2);
    const auto& its = p.stages[0];
    const auto& behind = p.stages[1];
    CHECK(its.has_fixed_point());
    CHECK_FALSE(behind.has_fixed_point());
    std::vector<slot> all, iterated;
    const auto check = [&](std::span<const slot> nodes, dependence d) {
        slot before = 0;
        for (const slot s : nodes) {
            CHECK(p.nodes[s].depends == d);
            CHECK(s >= before);
            before = s;
            all.push_back(s);
        }
    };
    check(its.outside, dependence::input);
    check(its.shifted, dependence::shifted);
    check(its.current, dependence::current);
    check(behind.outside, dependence::output);
    CHECK(all.size() == p.nodes.size());
    for (slot s = 0; s < p.nodes.size(); ++s)
        if (p.nodes.is_iterated(s)) iterated.push_back(s);
    CHECK(list(its.iterated) == iterated);
    CHECK(list(behind.outside) == std::vector<slot>{its.fixed_point, p.nodes.root()});
    CHECK(its.shifted[0] == its.previous_before);
    CHECK(behind.iterated.empty());
}

TEST_CASE("plan: a stage is a fixed point, with what is evaluated before it and after the one before") {
    constexpr auto y1 = fixed_point(tanh(linear<"w">(cat(in, shift(prev)))));
    constexpr auto Q = householder<2>(cat(in, shift(prev)));
    constexpr auto y2 = fixed_point(Q * linear<"v">(y1) + (I - Q) * prev);
    const auto& p = planned(linear<"out">(y2) + y1);
    REQUIRE(p.stages.size() == 3);
    CHECK(p.fixed_points() == 2);
    std::size_t all = 0;
    for (std::size_t k = 0; k < 3; ++k) {
        const auto& its = p.stages[k];
        all += its.outside.size() + its.shifted.size() + its.current.size();
        CHECK(its.iterated.size() == its.shifted.size() + its.current.size());
        for (const slot s : its.outside) {
            CHECK_FALSE(p.nodes.is_iterated(s));
            for (const slot o : p.nodes.operands(s)) CHECK(p.nodes[o].stage <= k);
        }
        for (const slot s : its.iterated) CHECK((p.nodes.is_iterated(s) && p.nodes[s].stage == k));
    }
    CHECK(all == p.nodes.size());
    CHECK(p.stages[1].outside[0] == p.stages[0].fixed_point);
    CHECK(p.stages[2].outside[0] == p.stages[1].fixed_point);
    // Each is asked for itself.
    CHECK(p.stages[0].tokens_are_explicit);
    CHECK(p.stages[0].reduction == nullptr);
    CHECK_FALSE(p.stages[1].tokens_are_explicit);
    CHECK(p.stages[1].reduction != nullptr);
}

TEST_CASE("plan: what can be said of one-token chunks") {
    const auto stage_of = [](auto e) { return planned(e).stages[0]; };
    CHECK(stage_of(models::fp_mamba(householder<2>)).reduction != nullptr);
    CHECK(stage_of(models::fp_mamba(kronecker)).reduction == nullptr);
    CHECK(stage_of(models::fp_mamba(kronecker)).rows_are_independent);
    CHECK_FALSE(stage_of(models::fp_mamba(kronecker)).tokens_are_explicit);
    const auto explicit_token = fixed_point(tanh(linear<"w">(cat(in, shift(prev)))));
    CHECK(stage_of(explicit_token).tokens_are_explicit);
    const auto dense = fixed_point(tanh(linear<"w">(cat(in, prev))));
    CHECK_FALSE(stage_of(dense).rows_are_independent);
}

TEST_CASE("plan: equal operations of other expressions are the same objects") {
    const auto a = planned(fixed_point(tanh(linear<"a">(cat(in, prev)))));
    const auto b = planned(fixed_point(tanh(linear<"b">(cat(in, shift(prev), prev)))));
    CHECK(a.operations[a.nodes.solved()] == b.operations[b.nodes.solved()]);
    CHECK(a.operations[a.stages[0].previous] == b.operations[b.stages[0].previous]);
    CHECK(a.operations[a.nodes.input] != b.operations[b.stages[0].previous]);
}

}  // namespace
