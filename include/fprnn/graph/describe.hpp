#pragma once

#include <fprnn/core/error.hpp>
#include <fprnn/expression/attention_sizes.hpp>
#include <fprnn/expression/mixers.hpp>
#include <fprnn/graph/chains.hpp>
#include <fprnn/graph/forms.hpp>
#include <fprnn/graph/formula.hpp>
#include <fprnn/graph/node.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

/// What a graph says of a node, by its type: `description` is specialised for every kind.
namespace fprnn::graph {

namespace detail {

inline void declare_vector(const node& n, const node_sizes& of, std::vector<parameter_spec>& to) {
    to.push_back({n.name, {of.width}, n.weight, false});
}
inline void declare_map(const node& n, const node_sizes& of, std::vector<parameter_spec>& to) {
    to.push_back({n.name, {of.width, of.columns}, n.weight, true});
    if (n.has_bias) to.push_back({std::string(n.name) + ".bias", {of.width}, n.bias, false});
}
inline void declare_map_of_parts(const node& n, const node_sizes& of, std::vector<parameter_spec>& to) {
    const index parts = n.parts.of(of.size);
    to.push_back({n.name, {parts, of.width / parts, of.columns / parts}, n.weight, true});
    if (n.has_bias) to.push_back({std::string(n.name) + ".bias", {of.width}, n.bias, false});
}
inline void declare_weight_normed(const node& n, const node_sizes& of, std::vector<parameter_spec>& to) {
    to.push_back({n.name, {of.width, of.columns}, n.weight, true});
    to.push_back({std::string(n.name) + ".scale", {of.width}, start::row_norm::value, true});
    if (n.has_bias) to.push_back({std::string(n.name) + ".bias", {of.width}, n.bias, false});
}
inline void declare_norm(const node& n, const node_sizes& of, std::vector<parameter_spec>& to) {
    const index channels = n.parts_share ? n.part.of(of.size) : of.width;
    to.push_back({std::string(n.name) + ".weight", {channels}, n.weight, false});
    if (n.has_bias) to.push_back({std::string(n.name) + ".bias", {channels}, n.bias, false});
}
inline void declare_rates(const node& n, const node_sizes& of, std::vector<parameter_spec>& to) {
    to.push_back({std::string(n.name) + ".omega", {of.size.d_state, of.width}, n.weight, false});
}
inline void require_maps(std::span<const index> expected, std::span<const index> got) {
    for (std::size_t k = 0; k < got.size(); ++k)
        require(got[k] == expected[k], "mixer", [&] {
            return "map " + std::to_string(k) + " must have width " + std::to_string(expected[k]) + ", got " +
                   std::to_string(got[k]);
        });
}
inline index one_token(const node_sizes& of) { return of.width; }
inline index matrix_state(const node_sizes& of) { return of.size.d_state * of.width; }

/// What is said of one kind of node beside its width, what it depends on and its operands.
template <class E>
struct description;
template <>
struct description<input_node> {
    static consteval node make() { return {.what = kind::input}; }
};
template <class Width>
struct description<previous_of<Width>> {
    static consteval node make() { return {.what = kind::previous}; }
};
template <auto Name, class Width, class Init>
struct description<parameter_node<Name, Width, Init>> {
    static consteval node make() {
        return {.what = kind::parameter,
                .name = Name.c_str(),
                .weight = Init::value,
                .shared = true,
                .declare = &declare_vector};
    }
};
template <class E>
struct description<shift_node<E>> {
    static consteval node make() { return {.what = kind::shift, .carry = &one_token}; }
};
template <auto Name, class E, class Width, class BiasInit, class WeightInit>
struct description<linear_node<Name, E, Width, BiasInit, WeightInit>> {
    static consteval node make() {
        node n{.what = kind::linear, .name = Name.c_str(), .weight = WeightInit::value, .declare = &declare_map};
        if constexpr (!std::is_void_v<BiasInit>) {
            n.bias = BiasInit::value;
            n.has_bias = true;
        }
        return n;
    }
};
template <auto Name, class E, class Parts, class Width, class BiasInit, class WeightInit>
struct description<linear_of_parts_node<Name, E, Parts, Width, BiasInit, WeightInit>> {
    static void check(const node_sizes& of, std::span<const index> operands) {
        const index parts = Parts::of(of.size);
        const auto divides = [&](const char* what, index width) {
            require(width % parts == 0, Name.c_str(), [&] {
                return std::to_string(parts) + " parts must divide " + what + ", got " + std::to_string(width) +
                       " channels";
            });
        };
        divides("what the map takes", operands[0]);
        divides("what it gives", of.width);
    }
    static consteval node make() {
        using as_of_all = description<linear_node<Name, E, Width, BiasInit, WeightInit>>;
        node n = as_of_all::make();
        n.what = kind::linear_of_parts;
        n.parts = form<Parts>::make();
        n.declare = &declare_map_of_parts;
        n.check = &check;
        return n;
    }
};
template <class Map>
struct description<weight_normed_node<Map>> {
    static consteval node make() {
        node n = description<Map>::make();
        n.weight_normed = true;
        n.declare = &declare_weight_normed;
        return n;
    }
};
template <template <class...> class F, class... E>
struct description<elementwise_node<F, E...>> {
    using described = elementwise_node<F, E...>;
    static consteval node make() {
        return {.what = kind::elementwise,
                .affine = is_affine_chain<described>,
                .formula = &formula<chain_functor<described>>};
    }
};
template <class Lambda, class U>
struct description<scan_node<Lambda, U>> {
    static consteval node make() {
        return {.what = kind::scan,
                .affine = Lambda::depends < dependence::current,
                .scales_state = true,
                .carry = &one_token};
    }
};
template <auto Name, class Delta, class B, class C, class U>
struct description<selective_scan_node<Name, Delta, B, C, U>> {
    static consteval node make() {
        return {.what = kind::selective_scan,
                .name = Name.c_str(),
                .weight = start::log_row::value,
                .affine = joined<Delta, B, C> < dependence::current,
                .scales_state = true,
                .declare = &declare_rates,
                .carry = &matrix_state};
    }
};
template <class M>
std::string call_formula(std::span<const std::string> operands) {
    std::string text;
    for (const std::string& o : operands) text += (text.empty() ? std::string(M::name) + "(" : ", ") + o;
    return text + ")";
}
template <class M, auto Name, class Width, class... E>
struct description<recurrence_node<M, Name, Width, E...>> {
    static typename M::sizes sizes(const dims& d) { return M::of({E::width::of(d)...}); }
    static index carry(const node_sizes& of) { return M::state(sizes(of.size)); }
    static void declare(const node& n, const node_sizes& of, std::vector<parameter_spec>& to) {
        for (parameter_spec& spec : M::declare(sizes(of.size), n.name)) to.push_back(std::move(spec));
    }
    static void check(const node_sizes& of, std::span<const index>) {
        require(M::value(sizes(of.size)) == of.width, M::name, [&] {
            return "the node's width must be " + std::to_string(M::value(sizes(of.size))) +
                   ", the channels of y, got " + std::to_string(of.width);
        });
    }
    static consteval node make() {
        node n{.what = kind::recurrence,
               .name = Name.c_str(),
               .scales_state = scaling_recurrence<M>,
               .formula = &call_formula<M>,
               .carry = &carry,
               .check = &check};
        if constexpr (recurrence_with_parameters<M>) n.declare = &declare;
        if constexpr (opening_recurrence<M>) {
            constexpr dependence depends[] = {E::depends...};
            n.affine = true;
            for (std::size_t k = 0; k < M::inputs; ++k)
                n.affine = n.affine && (k == M::open_input || depends[k] < dependence::current);
        }
        return n;
    }
};
template <positions P, class Q, class K, class V>
struct description<attention_node<P, Q, K, V>> {
    static std::string formula(std::span<const std::string> a) {
        return "attention(" + a[0] + ", " + a[1] + ", " + a[2] + ")" + (P == positions::rotary ? ", rotary" : "");
    }
    static attention_sizes sizes(const dims& d) {
        return {d.heads, Q::width::of(d) / d.heads, V::width::of(d) / d.heads, d.context};
    }
    static index carry(const node_sizes& of) { return sizes(of.size).carry(); }
    static void check(const node_sizes& of, std::span<const index> got) {
        attention_sizes::check(of.size, got[0], got[2], P == positions::rotary);
    }
    static void check_carry(const node_sizes& of, index b, double count, index tokens) {
        sizes(of.size).check_room(b, count, tokens);
    }
    static consteval node make() {
        return {.what = kind::attention,
                .formula = &formula,
                .carry = &carry,
                .check = &check,
                .check_carry = &check_carry};
    }
};
template <class Function>
std::string norm_formula(std::span<const std::string> operands) {
    if constexpr (requires { Function::name; })
        return std::string(Function::name) + "(" + operands[0] + ")";
    else
        return "norm(" + operands[0] + ")";
}
/// A formula of each part as wide as Part.
template <auto Formula, class Part>
std::string formula_of_parts(std::span<const std::string> operands) {
    return Formula(operands) + " of each " + form<Part>::make().text();
}
template <class Function, auto Name, class E, class Part, class Weights>
struct description<norm_node<Function, Name, E, Part, Weights>> {
    static consteval node make() {
        node n{.what = kind::norm,
               .name = Name.c_str(),
               .weight = start::constant<1>::value,
               .bias = start::constant<0>::value,
               .has_bias = Function::has_bias,
               .formula = &norm_formula<Function>,
               .declare = &declare_norm};
        if constexpr (!std::is_void_v<Part>) {
            n.part = form<Part>::make();
            n.parts_share = std::is_same_v<Weights, Part>;
            n.formula = &formula_of_parts<norm_formula<Function>, Part>;
        }
        return n;
    }
};
template <class E, class Times>
struct description<repeat_node<E, Times>> {
    static std::string formula(std::span<const std::string> a) {
        return "repeat(" + a[0] + ", " + form<Times>::make().text() + ")";
    }
    static consteval node make() { return {.what = kind::repeat, .formula = &formula}; }
};
template <class E, class Width>
struct description<sum_parts_node<E, Width>> {
    static std::string formula(std::span<const std::string> a) {
        return "sum_parts(" + a[0] + ", " + form<Width>::make().text() + ")";
    }
    static consteval node make() { return {.what = kind::sum_parts, .formula = &formula}; }
};
inline std::string l2_formula(std::span<const std::string> a) { return a[0] + " / |" + a[0] + "|"; }
template <class E, class Part>
struct description<l2_normalise_node<E, Part>> {
    static consteval node make() {
        node n{.what = kind::l2_normalise, .formula = &l2_formula};
        if constexpr (!std::is_void_v<Part>) {
            n.part = form<Part>::make();
            n.formula = &formula_of_parts<l2_formula, Part>;
        }
        return n;
    }
};
template <class M, class... Maps>
struct description<prepared_node<mixer_node<M, Maps...>>> {
    static_assert(std::tuple_size_v<decltype(M::raw_sizes(index()))> == sizeof...(Maps),
                  "mixer_node<M, Maps...>: M::raw_sizes(D) must have one number for each of the maps");
    /// Whole cache lines: registers that lie across two of them are slow to load, and every mix loads these
    /// rows.
    static index width(const dims& d) {
        constexpr index line = 16;
        return (M::size(d.d_inner) + line - 1) / line * line;
    }
    static void check(const node_sizes& of, std::span<const index> got) {
        if constexpr (requires { M::check(of.size.d_inner); }) M::check(of.size.d_inner);
        const auto expected = M::raw_sizes(of.size.d_inner);
        require_maps(expected, got);
    }
    static consteval node make() {
        node n{.what = kind::mixer, .width = {.of = &width}, .name = "mixer", .check = &check};
        if constexpr (requires { M::name; }) n.name = M::name;
        if constexpr (compact_mixer<M>) n.rank = M::rank;
        return n;
    }
};
template <class Q, class V, class W>
struct description<mix_node<Q, V, W>> {
    static consteval node make() { return {.what = kind::mix}; }
};
template <class F>
struct description<fixed_point_node<F>> {
    static consteval node make() { return {.what = kind::fixed_point}; }
};

}  // namespace detail

}  // namespace fprnn::graph
