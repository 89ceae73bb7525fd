#include <fprnn/graph/explain.hpp>
#include <fprnn/graph/lower.hpp>
#include <fprnn/graph/node_types.hpp>
#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>
#include <fprnn/models/lstm.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace fprnn;
using namespace fprnn::symbols;
using graph::kind;
using graph::slot;

template <class E, class List>
constexpr slot slot_in(List) {
    return std::is_same_v<E, zero_node> ? graph::nowhere : position<List, E>;
}
template <class List, class... E>
std::vector<slot> slots_in([[maybe_unused]] List all, type_list<E...>) {
    return {slot_in<E>(all)...};
}
template <class... N, class F>
void for_each_type(type_list<N...>, F&& f) {
    (f.template operator()<N>(), ...);
}

/// The graph has the nodes that the type has, in the same order.
template <class E>
void check_agrees(E) {
    using types = typename nodes_of<E>::types;
    constexpr const graph::view& g = graph::view_of<E>;
    REQUIRE(g.size() == nodes_of<E>::size);
    for_each_type(types(), [&]<class N>() {
        constexpr slot s = position<types, N>;
        CAPTURE(s);
        CHECK(g[s].depends == N::depends);
        const auto operands = g.operands(s);
        CHECK(std::vector<slot>(operands.begin(), operands.end()) == slots_in(types(), typename needs<N>::type{}));
        CHECK(graph::detail::equation(g, s).size() > 0);
        CHECK((g[s].declare != nullptr) == (*g[s].name != 0 && g[s].what != kind::mixer));
        CHECK((g.input == s) == std::is_same_v<N, input_node>);
        const graph::stage its = g.stages.empty() ? graph::stage() : g.stages[0];
        CHECK((its.previous == s) == std::is_same_v<N, previous_node>);
        CHECK((its.previous_before == s) == std::is_same_v<N, shift_node<previous_node>>);
        CHECK((its.fixed_point == s) == fprnn::detail::is_fixed_point<N>);
        CHECK(g.place_of_type(s) == s);
    });
    CHECK(g.root() == position<types, E>);
}

TEST_CASE("graph: it agrees with an expression's type") {
    SUBCASE("FP-Mamba, Householder") { check_agrees(models::fp_mamba(householder<4>)); }
    SUBCASE("FP-Mamba, Kronecker after DPLR") { check_agrees(models::fp_mamba(kronecker * dplr<2>)); }
    SUBCASE("FP-RNN, contractive") { check_agrees(models::fp_rnn(contractive<9, 10>(householder<2>))); }
    SUBCASE("FP-RNN, the same mixer for all tokens") { check_agrees(models::fp_rnn(orthogonal)); }
    SUBCASE("Mamba") { check_agrees(models::mamba()); }
    SUBCASE("LSTM") { check_agrees(models::lstm()); }
    SUBCASE("functions of parameters and half a mixer") {
        const auto Q = householder<1>(in);
        check_agrees(fixed_point(tanh(Q * affine<"u">(in)) * sigmoid(parameter<"a">()) + (I - Q) * prev));
    }
}

TEST_CASE("graph: parameters and carries of a model") {
    const auto model = models::fp_mamba(kronecker);
    constexpr const graph::view& g = graph::view_of<std::remove_const_t<decltype(model)>>;
    const dims sizes{.d_in = 5, .d_inner = 12, .d_state = 3};
    std::vector<std::string> declared;
    for (const parameter_spec& p : graph::declare(g, sizes))
        declared.push_back(p.name + " " + p.extents.to_string() + (p.decay ? " decays" : ""));
    const std::vector<std::string> expected{
        "norm.weight [5]", "x [12,5] decays",    "delta [12,12] decays", "delta.bias [12]",  "b [3,24] decays",
        "c [3,24] decays", "Q.k [16,24] decays", "Q.gate [7,24] decays", "Q.gate.bias [7]",  "ssm.omega [3,12]",
        "D [12]",          "y_norm.weight [12]", "y_norm.bias [12]",     "z [12,17] decays", "out [5,12] decays"};
    CHECK(declared == expected);
    // The state of the scan, and y_{t−1} inside and behind the iteration.
    CHECK(graph::carry_width(g, sizes) == 3 * 12 + 12 + 12);
    CHECK(g[g.root()].width.of(sizes) == 5);
}

TEST_CASE("graph: a mixer says which of its maps has a width that it cannot use") {
    using M =
        mixer_node<householder_mixer<2>, decltype(linear<"u">(in)), decltype(linear<"alpha", fixed_width<2>>(in))>;
    constexpr auto y = M{} * linear<"v">(in);
    constexpr const graph::view& g = graph::view_of<std::remove_const_t<decltype(y)>>;
    CHECK_THROWS_WITH_AS(graph::declare(g, {.d_in = 5, .d_inner = 12}), "mixer: map 0 must have width 24, got 12",
                         argument_error);
}

TEST_CASE("graph: equal expressions are one node") {
    const auto u = linear<"u">(in);
    const auto y = sigmoid(u) * linear<"v">(u) + linear<"u">(in);
    constexpr graph::view g = graph::graph_of<std::remove_const_t<decltype(y)>>;
    CHECK(g.size() == 4);  // in, u, v, and the function
    CHECK(g[3].operands == 2);
    const std::vector<std::string> names{"u", "v"};
    CHECK(g[3].formula(names) == "sigmoid(u) * v + u");
}

TEST_CASE(
    "graph: iterated nodes of one type are one node in each fixed point, what is not iterated is one node in all") {
    constexpr auto w = linear<"w">(cat(in, shift(prev)));
    constexpr auto u = linear<"u">(in);
    constexpr auto y1 = fixed_point(tanh(w) * u);
    constexpr auto y2 = fixed_point(tanh(w) + y1 * u * prev);
    constexpr auto y = y1 + y2;
    constexpr const graph::view& g = graph::view_of<std::remove_const_t<decltype(y)>>;
    using types = types_by_slot<std::remove_const_t<decltype(y)>>;
    REQUIRE(g.stages.size() == 2);
    REQUIRE(length<types> == g.size());
    std::vector<std::size_t> stages_of_w, stages_of_u, stages_of_in;
    for (slot s = 0; s < g.size(); ++s) {
        if (std::string(g[s].name) == "w") stages_of_w.push_back(g[s].stage);
        if (std::string(g[s].name) == "u") stages_of_u.push_back(g[s].stage);
        if (g[s].what == kind::input) stages_of_in.push_back(g[s].stage);
        if (!g.is_iterated(s)) CHECK(g[s].same_type == graph::nowhere);
        if (g[s].what == kind::linear && g.is_iterated(s)) CHECK(g.operand(s, 1) == g.stage_of(s).previous_before);
    }
    CHECK(stages_of_w == std::vector<std::size_t>{0, 1});
    CHECK(stages_of_u == std::vector<std::size_t>{0});
    CHECK(stages_of_in == std::vector<std::size_t>{0});
    slot s = 0;
    for_each_type(types(), [&]<class N>() {
        CHECK(g[s].depends == N::depends);
        CHECK(g[s].operands == length<typename needs<N>::type>);
        CHECK((g.stages[0].fixed_point == s) == std::is_same_v<N, std::remove_const_t<decltype(y1)>>);
        CHECK((g.stages[1].fixed_point == s) == std::is_same_v<N, std::remove_const_t<decltype(y2)>>);
        CHECK((g[s].what == kind::previous) == (s == g.stages[0].previous || s == g.stages[1].previous));
        ++s;
    });
    CHECK(g[g.stages[0].fixed_point].stage == 1);
    CHECK(g[g.stages[1].fixed_point].stage == 2);
    CHECK(g[g.root()].stage == 2);
    CHECK(graph::declare(g, {.d_in = 2, .d_inner = 3}).size() == 2);
    // y_{t−1} of both.
    CHECK(graph::carry_width(g, {.d_in = 2, .d_inner = 3}) == 2 * 3);
}

template <int Depth, class E>
constexpr auto nested(E e) {
    if constexpr (Depth == 0)
        return e;
    else
        return nested<Depth - 1>(normalise(e));
}

TEST_CASE("graph: a deep expression has as many nodes as it says") {
    constexpr graph::view g = graph::graph_of<decltype(nested<100>(in))>;
    CHECK(g.size() == 101);
    CHECK(g.operands(100)[0] == 99);
}

TEST_CASE("graph: widths are forms in named sizes") {
    CHECK(graph::detail::form<times_width<3, sum_width<d_inner, d_state, fixed_width<2>>>>::make().text() ==
          "3 d_inner + 3 d_state + 6");
    CHECK(graph::detail::form<d_in>::make().text() == "d_in");
    CHECK(graph::detail::form<fixed_width<1>>::make().text() == "1");
    CHECK_FALSE(graph::detail::form<fprnn::detail::raw_width<kronecker_mixer, 0>>::make().linear);
}

TEST_CASE("graph: a formula has the parentheses that it needs") {
    const auto of = [](auto e) {
        const std::vector<std::string> names{"a", "b", "c"};
        return graph::graph_of<decltype(e)>.nodes.back().formula(names);
    };
    const auto a = linear<"a">(in);
    const auto b = linear<"b">(in);
    const auto c = linear<"c">(in);
    CHECK(of((a + b) * c) == "(a + b) * c");
    CHECK(of(a - (b - c)) == "a - (b - c)");
    CHECK(of((1 - a) * b) == "(1 - a) * b");
    CHECK(of(a + b * c) == "a + b * c");
    CHECK(of(-(a + b)) == "-(a + b)");
    CHECK(of(constant<1, 2>() * silu(a)) == "1/2 * silu(a)");
}

}  // namespace
