#include <fprnn/backend/reference.hpp>
#include <fprnn/fixed_point/plan_of.hpp>
#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>

#include <doctest/doctest.h>

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
    std::vector<slot> all, iterated;
    for (const dependence d : {dependence::input, dependence::shifted, dependence::current, dependence::output}) {
        slot before = 0;
        for (const slot s : p.that_depend(d)) {
            CHECK(p.nodes[s].depends == d);
            CHECK(s >= before);
            before = s;
            all.push_back(s);
        }
    }
    CHECK(all.size() == p.nodes.size());
    for (slot s = 0; s < p.nodes.size(); ++s)
        if (p.nodes.is_iterated(s)) iterated.push_back(s);
    CHECK(list(p.iterated) == iterated);
    CHECK(list(p.that_depend(dependence::output)) == std::vector<slot>{p.nodes.fixed_point, p.nodes.root()});
    CHECK(p.that_depend(dependence::shifted)[0] == p.nodes.previous_before);
}

TEST_CASE("plan: what can be said of one-token chunks") {
    CHECK(planned(models::fp_mamba(householder<2>)).reduction != nullptr);
    CHECK(planned(models::fp_mamba(kronecker)).reduction == nullptr);
    CHECK(planned(models::fp_mamba(kronecker)).rows_are_independent);
    CHECK_FALSE(planned(models::fp_mamba(kronecker)).tokens_are_explicit);
    const auto explicit_token = fixed_point(tanh(linear<"w">(cat(in, shift(prev)))));
    CHECK(planned(explicit_token).tokens_are_explicit);
    const auto dense = fixed_point(tanh(linear<"w">(cat(in, prev))));
    CHECK_FALSE(planned(dense).rows_are_independent);
}

TEST_CASE("plan: equal operations of other expressions are the same objects") {
    const auto a = planned(fixed_point(tanh(linear<"a">(cat(in, prev)))));
    const auto b = planned(fixed_point(tanh(linear<"b">(cat(in, shift(prev), prev)))));
    CHECK(a.operations[a.nodes.solved()] == b.operations[b.nodes.solved()]);
    CHECK(a.operations[a.nodes.previous] == b.operations[b.nodes.previous]);
    CHECK(a.operations[a.nodes.input] != b.operations[b.nodes.previous]);
}

}  // namespace
