#pragma once

#include <fprnn/backend/default.hpp>
#include <fprnn/expression/sequences.hpp>
#include <fprnn/fixed_point/layer_on.hpp>
#include <fprnn/fixed_point/plan_of.hpp>
#include <fprnn/graph/explain.hpp>

#include <concepts>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace fprnn {

namespace detail {
/// A carry that is left out.
struct no_carry {};
}  // namespace detail

/// An expression with a schedule and an adjoint: [B,T,d_in] → [B,T,width], solved at its fixed point.
///
///     auto layer = fixed_point(f, chunked{.length = 1}, implicit{});
///     auto theta = init<float>(layer, {.d_in = 64, .d_inner = 128}, seed{0});
///     auto sol   = layer(theta, x);                     // .value, .status, .iterations … per sequence
///     auto next  = layer(theta, x_next, sol.carry);     // goes on where the first call ended
///     auto part  = layer(theta, x, n);                  // of sequence b the first n[b] tokens
template <class Root>
class layer : public method {
public:
    static_assert(nodes_of<Root>::size > 0);  // what cannot be a layer is refused where it is named
    // What sees nothing of x would be the same sequence for every x, which is a mistake as a rule.
    static_assert(contains<typename nodes_of<Root>::types, input_node>,
                  "a layer maps sequences: its expression must contain `in`, as in tanh(linear<\"B\">(in) + f)");
    /// An argument that converts instead of deducing.
    template <class A>
    using same = std::type_identity_t<A>;
    static constexpr graph::view nodes = graph::view_of<Root>;
    static constexpr bool has_fixed_point = !nodes.stages.empty();
    /// Whether one-token chunks of every fixed point are solved in R numbers; explain(layer) says why not.
    static constexpr bool is_reduced = graph::is_reduced(nodes);
    template <class T, class Backend, class X = T>
    using solution_on = solution<T, typename Backend::template array<X>, typename Backend::template array<T>>;

    explicit layer(Root root, chunked s = {}, fprnn::adjoint a = implicit{})
        : layer(root, method{.schedule = s, .adjoint = std::move(a)}) {}
    layer(Root, const method& m) : method(m) { validate(); }

    /// Without the type of the expression. Where there is no Adjoint, it goes forward alone.
    template <class T, class Backend, class X = T, bool Adjoint = true>
    engine::layer_on<T, Backend, X> on() const {
        static_assert(has_tiles<Backend> || nodes.stages.size() <= 1,
                      "a device solves one fixed point in an expression: stack layers there, or use the CPU");
        static_assert(has_tiles<Backend> || !nodes.contains(graph::kind::attention),
                      "a device does not evaluate attention: use the CPU");
        return {plan_of<Root, T, Backend, Adjoint>, *this};
    }

    /// The parameters that the expression declares, in order. Errors: a width below 1, sizes that a node
    /// refuses.
    static std::vector<parameter_spec> declare(const dims& size) {
        size.validate();
        return graph::declare(nodes, size);
    }
    /// Errors: a width below 1.
    static index output_width(const dims& size) {
        size.validate();
        return nodes[nodes.root()].width.of(size);
    }
    /// Numbers that a sequence's carry holds: scan states, last tokens. Errors: a width below 1.
    static index carry_width(const dims& size) {
        size.validate();
        return graph::carry_width(nodes, size);
    }

    /// Solves the layer: value [B,T,output_width], carry, and for each sequence how its iteration ended; one
    /// that does not converge is reported there, not thrown. theta: of init(layer, sizes), whose widths it
    /// has. x: [B,T,d_in]. carry: [B,carry_width], or tensor<T>{} for sequences that begin, which a tensor
    /// that has been moved from stands for, too. Errors: shapes, parameters of another layer, a schedule,
    /// solver, stop or adjoint out of its range.
    template <class T, class U, backend_for<T> Backend = default_backend>
        requires(std::is_same_v<std::remove_const_t<U>, T>&& host_memory_backend<Backend, T>)
    solution<T>
    operator()(const layer_parameters<T>& theta, view<U> x, same<view<const T>> carry = {},
               Backend backend = {}) const {
        return run<T>(theta.widths, parameters_of(theta), x, carry, backend, nullptr);
    }
    template <class T, backend_for<T> Backend = default_backend>
        requires(host_memory_backend<Backend, T>)
    solution<T>
    operator()(const layer_parameters<T>& theta, const tensor<T>& x, const tensor<T>& carry = {},
               Backend backend = {}) const {
        return (*this)(theta, x.view(), carry.view(), std::move(backend));
    }
    template <class T, class U, backend_for<T> Backend = default_backend>
        requires(std::is_same_v<std::remove_const_t<U>, T>&& host_memory_backend<Backend, T>)
    solution<T>
    operator()(const layer_parameters<T>& theta, const tensor<T>& x, view<U> carry, Backend backend = {}) const {
        return (*this)(theta, x.view(), carry, std::move(backend));
    }
    template <class T, backend_for<T> Backend>
        requires(host_memory_backend<Backend, T>)
    solution<T>
    operator()(const layer_parameters<T>& theta, const tensor<T>& x, Backend backend) const {
        return (*this)(theta, x.view(), {}, std::move(backend));
    }
    /// The same of sequences of unequal lengths, of which the caller says how many tokens each has. Errors:
    /// not B numbers of [0,T].
    template <class T, host_array X, host_array Carry = tensor<T>, backend_for<T> Backend = default_backend>
        requires(std::is_same_v<element<X>, T>&& std::is_same_v<element<Carry>, T>&& host_memory_backend<Backend, T>)
    solution<T>
    operator()(const layer_parameters<T>& theta, const X& x, fprnn::lengths n, const Carry& carry = {},
               Backend backend = {}) const {
        return run<T>(theta.widths, parameters_of(theta), {x.data(), x.shape()}, {carry.data(), carry.shape()}, backend,
                      nullptr, n);
    }
    template <class T, class Array, class Carry = tensor<T>, class Backend = default_backend>
        requires(detail::array_of_other<Array, T> || detail::array_of_other<Carry, T>)
    solution<T>
    operator()(const layer_parameters<T>&, const Array&, const Carry& = {}, const Backend& = {}) const {
        static_assert(detail::never<Array>,
                      "layer(theta, x, carry): parameters, input and carry must hold numbers of one type: init<double>("
                      "layer, sizes) makes parameters of double, init<float>(layer, sizes) of float");
        return {};
    }

    template <class T, class X, std::integral Number, class... Rest>
        requires(!std::is_same_v<Number, index>)
    solution<T>
    operator()(const layer_parameters<T>&, const X&, const std::vector<Number>&, const Rest&...) const {
        static_assert(detail::never<Number>,
                      "layer(theta, x, n): n, the sequences' lengths, must be a std::vector<fprnn::index>");
        return {};
    }

    /// Of a backend that has calls of its own (Backend::layer_calls): what they take and return is said
    /// there.
    template <class Parameters, class Array, class Backend>
        requires(requires(const layer& l, const Parameters& theta, const Array& x, Backend& backend) {
            Backend::layer_calls::call(l, theta, x, detail::no_carry(), backend);
        })
    auto operator()(const Parameters& theta, const Array& x, Backend backend) const {
        return Backend::layer_calls::call(*this, theta, x, detail::no_carry(), backend);
    }
    template <class Parameters, class Array, class Carry = detail::no_carry, class Backend>
        requires(requires(const layer& l, const Parameters& theta, const Array& x, const Carry& carry,
                          Backend& backend) { Backend::layer_calls::call(l, theta, x, carry, backend); })
    auto operator()(const Parameters& theta, const Array& x, const Carry& carry, Backend backend) const {
        return Backend::layer_calls::call(*this, theta, x, carry, backend);
    }
    template <class Parameters, class Array, class Carry, class Backend>
        requires(requires(const layer& l, const Parameters& theta, const Array& x, fprnn::lengths n, const Carry& carry,
                          Backend& backend) { Backend::layer_calls::call(l, theta, x, n, carry, backend); })
    auto operator()(const Parameters& theta, const Array& x, fprnn::lengths n, const Carry& carry,
                    Backend backend) const {
        return Backend::layer_calls::call(*this, theta, x, n, carry, backend);
    }

    /// What the backward pass reads: one record, whatever the number of iterations. A record can be used
    /// again, by a layer with the schedule that made it.
    template <class T, class Backend = default_backend>
    using record = engine::record<T, Backend>;

    /// y = layer(x); fills `keep` when it is given. B and T may be 0. Errors: shapes, a schedule or an
    /// adjoint out of range. A carry that is the result's own is written sequence by sequence: where a solver
    /// or a stop of one's own throws, some of them have gone on. With `keep`, `parameters` must stay where
    /// they are, and as they are, until back() has returned, which reads them again.
    template <class T, backend_for<T> Backend, class X = T>
    solution_on<T, Backend, X> run(const dims& size, const T* parameters, same<view<const X>> x,
                                   same<view<const T>> carry, Backend& backend, same<record<T, Backend>>* keep,
                                   fprnn::lengths n = all_tokens) const {
        solution_on<T, Backend, X> result;
        run<T, Backend, X>(size, parameters, x, carry, backend, keep, result, n);
        return result;
    }

    /// The same, overwriting `result` in the memory that it has. `carry` may be the result's own: it goes on
    /// in place. Errors: x or carry are in the result's memory otherwise.
    template <class T, backend_for<T> Backend, class X = T>
    void run(const dims& size, const T* parameters, same<view<const X>> x, same<view<const T>> carry, Backend& backend,
             same<record<T, Backend>>* keep, same<solution_on<T, Backend, X>>& result,
             fprnn::lengths n = all_tokens) const {
        on<T, Backend, X, false>().run(size, parameters, x, carry, backend, keep, result, n);
    }

    /// Adds to x_bar [B,T,d_in] and to `gradient` (laid out as the layer's parameters) what y_bar [B,T,width]
    /// sends back; with `carries`, also what the cotangent of the carry out sends, and to that of the carry
    /// in. Errors: a record of another layer, x or cotangents of other shapes than the forward pass had,
    /// cotangents of carries that are not [B, carry_width].
    template <class T, backend_for<T> Backend, class X = T>
    void back(record<T, Backend>& kept, same<view<const X>> x, same<view<const X>> y_bar, same<view<X>> x_bar,
              T* gradient, Backend& backend, const engine::carry_bars<same<T>>& carries = {}) const {
        on<T, Backend, X>().back(kept, x, y_bar, x_bar, gradient, backend, carries);
    }

    /// The layer as one record of a tape. Its parameters are those of the tape whose names begin with
    /// `prefix`; x: [B,T,d_in]. `how`, when given, receives the convergence of the solve, in the memory that
    /// it has; the value stays on the tape.
    template <class T, backend_for<T> Backend, class X>
    variable operator()(tape<T, Backend, X>& t, const dims& size, const std::string& prefix, variable x,
                        same<solution_on<T, Backend, X>>* how = nullptr) const {
        return (*this)(t, size, prefix, x, all_tokens, how);
    }
    /// The same of sequences of unequal lengths, which are copied. Errors: not B numbers of [0,T].
    template <class T, backend_for<T> Backend, class X>
    variable operator()(tape<T, Backend, X>& t, const dims& size, const std::string& prefix, variable x,
                        fprnn::lengths n, same<solution_on<T, Backend, X>>* how = nullptr) const {
        return on<T, Backend, X>().record_on(t, size, prefix, x, n, how);
    }

    /// The same from a carry in [B, carry_width], a variable of the tape: gradients go back through it, so
    /// that a sequence may be recorded window by window, as far back as its records are kept (truncated
    /// back-propagation through time). The first carry is a leaf of zeros, or of what an earlier tape's
    /// `carry` was.
    template <class T, backend_for<T> Backend>
    value_and_carry operator()(tape<T, Backend, T>& t, const dims& size, const std::string& prefix, variable x,
                               variable carry, same<solution_on<T, Backend>>* how = nullptr) const {
        return (*this)(t, size, prefix, x, all_tokens, carry, how);
    }
    /// The same of windows of unequal lengths; one of no tokens hands its carry on.
    template <class T, backend_for<T> Backend>
    value_and_carry operator()(tape<T, Backend, T>& t, const dims& size, const std::string& prefix, variable x,
                               fprnn::lengths n, variable carry, same<solution_on<T, Backend>>* how = nullptr) const {
        return on<T, Backend>().record_on(t, size, prefix, x, n, carry, how);
    }

    /// Where the parameters "prefix…" of this layer begin in a tree.
    template <class T>
    static index parameter_offset(const parameter_tree<T>& theta, const dims& size, const std::string& prefix) {
        return graph::parameters_in(nodes, theta, size, prefix).first;
    }
    /// The parameters, when they are this layer's own. Errors: names or shapes of another.
    template <class T>
    static const T* parameters_of(const layer_parameters<T>& theta) {
        const auto own = graph::parameters_in(nodes, theta, theta.widths, "");
        require(own.first == 0 && own.last == theta.size(), "layer", [&] {
            return "the parameters must be this layer's own, " + std::to_string(own.last - own.first) +
                   " numbers, got " + std::to_string(theta.size());
        });
        return theta.data();
    }

private:
    static constexpr std::span<const index> all_tokens{};
};

/// y* = f(x, y*) as a node: gates, read-outs and other fixed points may read it. Fixed points in f are solved
/// before this one; `prev` in one of them is its own iterate, so that no iteration is in another.
template <expression E>
constexpr auto fixed_point(E) {
    static_assert(
        detail::is_as_wide_as_prev<E>(),
        "fixed_point(f): f must have width d_inner, the width of prev, or that of prev_of<width>; in f stands "
        "the iterate of this fixed point alone, not of one around it");
    static_assert(E::depends == dependence::shifted || E::depends == dependence::current,
                  "fixed_point(f): f must contain prev outside of the fixed points in it");
    return fixed_point_node<E>{};
}
/// The layer y* = f(x, y*).
template <expression E>
auto fixed_point(E f, chunked schedule, adjoint a = implicit{}) {
    return layer(fixed_point(f), schedule, a);
}

/// The same with a solver and a stop, one's own if need be.
template <expression E>
auto fixed_point(E f, const method& how) {
    return layer(fixed_point(f), how);
}

/// A layer's parameters, initialised by their declarations and the seed; argument_error when a width is not
/// positive, a node refuses the sizes or two nodes share a name.
template <class T = float, class Root>
layer_parameters<T> init(const layer<Root>&, const dims& size, seed s = {}) {
    layer_parameters<T> theta;
    theta.widths = size;
    graph::add_parameters<T>(graph::view_of<Root>, theta, size, "", s);
    return theta;
}

/// What a layer computes and how often, node by node, and whether its tokens are solved in R numbers, or why
/// not: text for a reader, a line a node.
template <class Root>
std::string explain(const layer<Root>&) {
    return graph::explain(graph::view_of<Root>);
}

}  // namespace fprnn
