#pragma once

#include <fprnn/ops/chain.hpp>

#include <cstddef>
#include <span>
#include <string>

/// Elementwise functions and norms as text.
namespace fprnn::graph {

namespace detail {

/// How tightly a formula binds.
enum class binding { sum, product, factor };

struct formula_text {
    std::string text;
    binding binds = binding::factor;

    std::string within(binding least) const { return binds < least ? "(" + text + ")" : text; }
};

using arguments = std::span<const std::string>;

/// Of a functor of one's own.
template <class F>
struct formula_of {
    static formula_text of(arguments a) {
        std::string text;
        for (const std::string& argument : a) text += (text.empty() ? "f(" : ", ") + argument;
        return {text + ")"};
    }
};
template <int Place>
struct formula_of<chain::argument<Place>> {
    static formula_text of(arguments a) { return {a[static_cast<std::size_t>(Place)]}; }
};
template <int Numerator, int Denominator>
struct formula_of<chain::constant<Numerator, Denominator>> {
    static formula_text of(arguments) {
        if constexpr (Denominator == 1)
            return {std::to_string(Numerator)};
        else
            return {std::to_string(Numerator) + "/" + std::to_string(Denominator), binding::product};
    }
};
template <class A, class B>
struct formula_of<chain::add<A, B>> {
    static formula_text of(arguments a) {
        return {formula_of<A>::of(a).text + " + " + formula_of<B>::of(a).text, binding::sum};
    }
};
template <class A, class B>
struct formula_of<chain::subtract<A, B>> {
    static formula_text of(arguments a) {
        return {formula_of<A>::of(a).text + " - " + formula_of<B>::of(a).within(binding::product), binding::sum};
    }
};
template <class A, class B>
struct formula_of<chain::multiply<A, B>> {
    static formula_text of(arguments a) {
        return {formula_of<A>::of(a).within(binding::product) + " * " + formula_of<B>::of(a).within(binding::factor),
                binding::product};
    }
};
template <class F, class A>
struct formula_of<chain::apply<F, A>> {
    static formula_text of(arguments a) {
        if constexpr (requires { F::name; })
            return {std::string(F::name) + "(" + formula_of<A>::of(a).text + ")"};
        else
            return {"f(" + formula_of<A>::of(a).text + ")"};
    }
};
template <class A>
struct formula_of<chain::apply<chain::negate_function, A>> {
    static formula_text of(arguments a) {
        return {"-" + formula_of<A>::of(a).within(binding::factor), binding::product};
    }
};

}  // namespace detail

/// A chain's functor with its arguments called so, such as "sigmoid(x) * (y + z)".
template <class F>
std::string formula(std::span<const std::string> arguments) {
    return detail::formula_of<F>::of(arguments).text;
}

}  // namespace fprnn::graph
