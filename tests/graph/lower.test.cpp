#include <fprnn/graph/explain.hpp>
#include <fprnn/graph/lower.hpp>
#include <fprnn/models/fp_mamba.hpp>
#include <fprnn/models/fp_rnn.hpp>
#include <fprnn/models/lstm.hpp>
#include <fprnn/program/rules.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace fprnn;
using namespace fprnn::symbols;
using graph::kind;
using graph::slot;

template <class P, class E>
constexpr slot slot_of() {
    return std::is_same_v<E, zero_node> ? graph::nowhere : P::template slot<E>;
}
template <class P, class... E>
std::vector<slot> slots(type_list<E...>) {
    return {slot_of<P, E>()...};
}

/// The graph says of every node what its type says and its rule does.
template <class E>
void check_agrees(E) {
    using P = program<E>;
    constexpr graph::view g = graph::graph_of<E>;
    const dims sizes{.d_in = 5, .d_inner = 12, .d_state = 3, .d_out = 7};
    REQUIRE(g.size() == P::size);
    for_each_node(typename P::nodes{}, [&]<class N>() {
        constexpr slot s = P::template slot<N>;
        CAPTURE(s);
        CHECK(g[s].depends == N::depends);
        const auto operands = g.operands(s);
        CHECK(std::vector<slot>(operands.begin(), operands.end()) == slots<P>(typename needs<N>::type{}));
        if (g[s].what != kind::mixer) CHECK(g[s].width.of(sizes) == rule<N>::width(sizes));
        CHECK(g[s].affine == rule<N>::affine);
        CHECK(g[s].shared == rule<N>::broadcast);

        std::vector<parameter_spec> declared;
        rule<N>::declare(sizes, declared);
        CHECK((declared.size() > 0) == (*g[s].name != 0 && g[s].what != kind::mixer));
        if (declared.empty()) return;
        CHECK(std::string_view(declared[0].name).starts_with(g[s].name));
        CHECK(declared[0].init == g[s].weight);
        CHECK(declared.size() == (g[s].has_bias ? 2 : 1));
        if (g[s].has_bias) CHECK(declared[1].init == g[s].bias);
    });
    for_each_node(typename P::nodes{}, [&]<class N>() {
        constexpr slot s = P::template slot<N>;
        CHECK(graph::detail::equation(g, s).size() > 0);
    });
    if constexpr (std::is_void_v<typename P::fixed_point>)
        CHECK(g.fixed_point == graph::nowhere);
    else
        CHECK(g.fixed_point == P::template slot<typename P::fixed_point>);
}

TEST_CASE("graph: it agrees with an expression's type and with the rules of its nodes") {
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

TEST_CASE("graph: equal expressions are one node") {
    const auto u = linear<"u">(in);
    const auto y = sigmoid(u) * linear<"v">(u) + linear<"u">(in);
    constexpr graph::view g = graph::graph_of<std::remove_const_t<decltype(y)>>;
    CHECK(g.size() == 4);  // in, u, v, and the function
    CHECK(g[3].operands == 2);
    const std::vector<std::string> names{"u", "v"};
    CHECK(g[3].formula(names) == "sigmoid(u) * v + u");
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
