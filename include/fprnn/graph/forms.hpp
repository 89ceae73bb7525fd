#pragma once

#include <fprnn/expression/width.hpp>
#include <fprnn/graph/node.hpp>

#include <cstddef>
#include <string>

/// What a graph says of a width, by its type: `form` is specialised for every kind.
namespace fprnn::graph::detail {

template <class W>
struct form {
    static consteval width_form make() { return {.of = &W::of}; }
};
template <>
struct form<void> {  // known of its rule alone
    static consteval width_form make() { return {}; }
};
template <index dims::*Size>
struct form<size_width<Size>> {
    static consteval width_form make() {
        width_form f{.of = &size_width<Size>::of, .linear = true};
        for (std::size_t i = 0; i < named_sizes.size(); ++i) f.times[i] = named_sizes[i].size == Size;
        return f;
    }
};
template <class A, class B>
struct form<product_width<A, B>> {
    static std::string within(const width_form& f) {
        const std::string s = f.text();
        return s.find('+') == std::string::npos ? s : "(" + s + ")";
    }
    static std::string text() {
        static constexpr width_form a = form<A>::make(), b = form<B>::make();
        return within(a) + " " + within(b);
    }
    static consteval width_form make() { return {.of = &product_width<A, B>::of, .other = &text}; }
};
template <class Whole, class Parts>
struct form<quotient_width<Whole, Parts>> {
    static std::string text() { return form<Whole>::make().text() + " / " + form<Parts>::make().text(); }
    static consteval width_form make() { return {.of = &quotient_width<Whole, Parts>::of, .other = &text}; }
};
template <index K>
struct form<fixed_width<K>> {
    static consteval width_form make() { return {.of = &fixed_width<K>::of, .linear = true, .plus = K}; }
};
template <index K, class W>
struct form<times_width<K, W>> {
    static std::string text() { return form<product_width<fixed_width<K>, W>>::text(); }
    static consteval width_form make() {
        width_form f = form<W>::make();
        f.of = &times_width<K, W>::of;
        if (f.other) f.other = &text;
        f.plus *= K;
        for (index& factor : f.times) factor *= K;
        return f;
    }
};
template <class... W>
struct form<sum_width<W...>> {
    static std::string text() {
        std::string all;
        for (const std::string& one : {form<W>::make().text()...}) all += (all.empty() ? "" : " + ") + one;
        return all;
    }
    static consteval width_form make() {
        width_form sum{.of = &sum_width<W...>::of, .linear = true};
        const auto add = [&](const width_form& f) {
            sum.linear = sum.linear && f.linear;
            sum.plus += f.plus;
            for (std::size_t i = 0; i < sum.times.size(); ++i) sum.times[i] += f.times[i];
        };
        (add(form<W>::make()), ...);
        if (!sum.linear && (form<W>::make().has_text() && ...)) sum.other = &text;
        return sum;
    }
};

}  // namespace fprnn::graph::detail
