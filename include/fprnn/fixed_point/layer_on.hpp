#pragma once

#include <fprnn/fixed_point/batch.hpp>
#include <fprnn/operations/table.hpp>
#include <fprnn/tape/tape.hpp>

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

/// A layer without the type of its expression: compiled once for all of them.
namespace fprnn {

namespace graph {

/// Appends the parameters of a graph to a tree, as "prefix…". Errors: a name that is taken, sizes that a node
/// refuses.
template <class T>
void add_parameters(const view& g, parameter_tree<T>& theta, const dims& size, const std::string& prefix, seed s) {
    size.validate();
    for (parameter_spec& p : declare(g, size)) {
        p.name = prefix + p.name;
        theta.add(p, s);
    }
}
/// A part of a tree's numbers.
struct parameter_range {
    index first = 0, last = 0;
};
/// Where the parameters "prefix…" of a graph are in a tree. Errors: names or shapes of others.
template <class T>
parameter_range parameters_in(const view& g, const parameter_tree<T>& theta, const dims& size,
                              const std::string& prefix) {
    size.validate("layer");
    const auto specs = declare(g, size);
    if (specs.empty()) return {};
    const index offset = theta[prefix + specs.front().name].data() - theta.data();
    index at = offset;
    for (const auto& p : specs) {
        const auto found = theta[prefix + p.name];
        require(found.shape() == p.extents && found.data() == theta.data() + at, "layer", [&] {
            return "parameter '" + prefix + p.name + "' must be " + p.extents.to_string() + " at position " +
                   std::to_string(at) + ", got " + found.shape().to_string();
        });
        at += p.extents.count();
    }
    return {offset, at};
}

}  // namespace graph

/// A value and where it ended, on a tape.
struct value_and_carry {
    variable value, carry;
};

namespace engine {

/// Errors: a carry [B, carry_width], null where it is zero, from which a node cannot go on by the tokens of a
/// batch, T of them or n.
template <class Number>
void require_room(const graph::view& g, const dims& size, view<const Number> carry, index B, index T, lengths n) {
    index at = 0;
    for (graph::slot s = 0; s < g.size(); ++s) {
        for (index b = 0; g[s].check_carry && b < B; ++b) {
            const double first = carry.data() ? static_cast<double>(carry(b, at)) : 0;
            const index tokens = n.empty() ? T : n.of_sequences()[static_cast<std::size_t>(b)];
            g[s].check_carry(graph::sizes_of(g, s, size), b, first, tokens);
        }
        at += graph::carry_width(g, s, size);
    }
}

/// Whether there is none: from the beginning.
template <class Number>
bool is_omitted(view<const Number> carry) {
    return carry.data() == nullptr && carry.shape().rank() < 2;
}

/// Whether an array of a result holds numbers of an argument.
template <class Number, class Array>
bool overlap(view<const Number> argument, const Array& result) {
    const std::less<const Number*> before;
    const Number *first = argument.data(), *its = result.data();
    return first && its && before(first, its + result.size()) && before(its, first + argument.size());
}

/// A layer with numbers T on a backend, sequences stored as X: what layer<Root>::on<T, Backend, X>() makes.
/// It refers to both of its members.
template <class T, class Backend, class X = T>
struct layer_on {
    using solution = fprnn::solution<T, typename Backend::template array<X>, typename Backend::template array<T>>;
    using record = engine::record<T, Backend>;

    const plan<T, Backend>& what;  ///< without adjoints: `run` alone may be called
    const method& how;

    /// See layer::run.
    void run(const dims& size, const T* parameters, view<const X> x, view<const T> carry, Backend& backend,
             record* keep, solution& result, lengths n) const;
    /// See layer::back.
    void back(record& kept, view<const X> x, view<const X> y_bar, view<X> x_bar, T* gradient, Backend& backend,
              const carry_bars<T>& carries) const;
    /// As one record of a tape, whose parameters are those that begin with `prefix`; `observed`, where it is
    /// not null, receives the convergence of the solve, in the memory that it has.
    variable record_on(tape<T, Backend, X>& t, const dims& size, const std::string& prefix, variable x, lengths n,
                       solution* observed) const;
    /// The same from a carry on, which has a gradient, too.
    value_and_carry record_on(tape<T, Backend, X>& t, const dims& size, const std::string& prefix, variable x,
                              lengths n, variable carry, solution* observed) const requires(std::is_same_v<X, T>);

private:
    /// What a tape keeps from step to step.
    struct tape_record : record {
        std::string prefix;
        index offset = 0;     ///< of the parameters in the tape's tree
        solution unobserved;  ///< where nobody asks for it
    };
    tape_record& record_of(tape<T, Backend, X>& t, const dims& size, const std::string& prefix) const;
};

// Outside of the class, because what is defined inside is compiled in each program to be inlined there.
template <class T, class Backend, class X>
void layer_on<T, Backend, X>::run(const dims& size, const T* parameters, view<const X> x, view<const T> carry,
                                  Backend& backend, record* keep, solution& result, lengths n) const {
    size.validate("layer");
    const solving by(how);
    fprnn::detail::planning_of<Backend>::type::check(by, n);
    require(x.shape().rank() == 3 && x.shape()[2] == size.d_in, "layer",
            [&] { return "x must be [B,T," + std::to_string(size.d_in) + "], got " + x.shape().to_string(); });
    const graph::view& g = what.nodes;
    const index B = x.shape()[0], tokens = x.shape()[1], carried = graph::carry_width(g, size);
    n.require_of(B, tokens, "layer");
    require(carry.shape() == shape{B, carried} || is_omitted(carry), "layer", [&] {
        return "carry must be " + shape{B, carried}.to_string() + ", got " + carry.shape().to_string();
    });
    const bool goes_on_in_place = carry.data() && carry.data() == result.carry.data();
    require(!overlap<T>(carry, result.carry) || goes_on_in_place, "layer",
            [] { return std::string("carry is a part of the result's carry: expected all of it, or other memory"); });
    require(!overlap<X>(x, result.value), "layer",
            [] { return std::string("x is the result's value: expected other memory, or another result"); });
    if constexpr (std::is_same_v<X, T>) {
        require(!overlap<X>(x, result.carry), "layer",
                [] { return std::string("x is the result's carry: expected other memory, or another result"); });
        require(!overlap<T>(carry, result.value), "layer",
                [] { return std::string("carry is the result's value: expected other memory, or another result"); });
    }
    if constexpr (has_tiles<Backend>) require_room(g, size, carry, B, tokens, n);
    result.begin(B, g.stages.size());
    backend.assign(result.value, {B, tokens, g[g.root()].width.of(size)});
    if (!goes_on_in_place) backend.assign(result.carry, {B, carried});
    result.work = {};
    if (carry.data() && !goes_on_in_place) backend.copy(carry.size(), carry.data(), result.carry.data());
    if (keep) {
        keep->of(g, size, x.shape(), how.schedule, parameters);
        keep->lengths.assign(n.of_sequences().begin(), n.of_sequences().end());
        keep->adjoint_convergence->begin(B == 0 || tokens == 0 ? B : 0, g.stages.size());
    }
    if (B == 0 || tokens == 0) return;
    batch_forward(what, by, size, parameters, x, n.of_sequences(), backend, keep, result);
}
template <class T, class Backend, class X>
void layer_on<T, Backend, X>::back(record& kept, view<const X> x, view<const X> y_bar, view<X> x_bar, T* gradient,
                                   Backend& backend, const carry_bars<T>& carries) const {
    const graph::view& g = what.nodes;
    require(kept.nodes == g.nodes.data(), "layer.back",
            [] { return std::string("expected a record of this layer's forward pass, got none or another layer's"); });
    const shape& s = kept.inputs;
    const shape of_y{s[0], s[1], g[g.root()].width.of(kept.size)};
    for (const auto& [name, extents, expected] : {std::tuple("x", x.shape(), s), std::tuple("x_bar", x_bar.shape(), s),
                                                  std::tuple("y_bar", y_bar.shape(), of_y)})
        require(extents == expected, "layer.back", [&, name_ = name, got = extents, wanted = expected] {
            return std::string(name_) + " must be " + wanted.to_string() + " as in the forward pass, got " +
                   got.to_string();
        });
    const index chunk = std::min(how.schedule.length, s[1]);
    require(chunk == kept.chunk, "layer.back", [&] {
        return "expected the schedule of the forward pass, chunks of " + std::to_string(kept.chunk) + " tokens, got " +
               std::to_string(chunk);
    });
    require(kept.kept.has_value() || s[0] == 0 || s[1] == 0, "layer.back",
            [] { return std::string("the record has been used: expected one backward pass for each forward pass"); });
    const shape carried{s[0], graph::carry_width(g, kept.size)};
    for (const auto& [name, data, extents] :
         {std::tuple("carries.out", carries.out.data(), carries.out.shape()),
          std::tuple("carries.in", static_cast<const T*>(carries.in.data()), carries.in.shape())})
        require(data == nullptr || extents == carried, "layer.back", [&, name_ = name, s = extents] {
            return std::string(name_) + " must be " + carried.to_string() + ", got " + s.to_string();
        });
    if (x.shape()[0] == 0) return;
    if (x.shape()[1] == 0) {  // the carry went through
        if (carries.out.data() && carries.in.data() && carried.count() > 0)
            backend.template row<T>(body::add<T>{carried.count(), carries.out.data(), carries.in.data()});
        return;
    }
    batch_backward(what, solving(how), kept, x, y_bar, x_bar, carries, gradient, backend);
}

template <class T, class Backend, class X>
variable layer_on<T, Backend, X>::record_on(tape<T, Backend, X>& t, const dims& size, const std::string& prefix,
                                            variable x, lengths n, solution* observed) const {
    if (observed) observed->adjoint.reset();  // before the record asks whether anybody holds that of the step before
    tape_record& kept = record_of(t, size, prefix);
    solution& result = observed ? *observed : kept.unobserved;
    result.value = t.make({0});
    run(size, t.parameters_there().data() + kept.offset, t.value(x).view(), {}, t.backend(), &kept, result, n);
    if (observed) observed->adjoint = kept.adjoint_convergence;
    return t.record(std::move(result.value), [&kept, x, &plan = what, m = how](tape<T, Backend, X>& tp, variable self) {
        layer_on{plan, m}.back(kept, tp.value(x).view(), std::as_const(tp.bar(self)).view(), tp.bar(x).view(),
                               tp.parameter_bar_data() + kept.offset, tp.backend(), {});
        kept.kept.reset();  // for the next step, which begins with the pool as this one did
    });
}
template <class T, class Backend, class X>
value_and_carry layer_on<T, Backend, X>::record_on(tape<T, Backend, X>& t, const dims& size, const std::string& prefix,
                                                   variable x, lengths n, variable carry, solution* observed) const
    requires(std::is_same_v<X, T>) {
    tape_record& kept = record_of(t, size, prefix);
    solution result;
    run(size, t.parameters_there().data() + kept.offset, t.value(x).view(), std::as_const(t.value(carry)).view(),
        t.backend(), &kept, result, n);
    if (observed) {
        static_cast<convergence&>(*observed) = result;
        observed->value = {};
        t.backend().assign(observed->carry, result.carry.shape());
        t.backend().copy(result.carry.size(), std::as_const(result.carry).data(), observed->carry.data());
        observed->work = result.work;
        observed->adjoint = kept.adjoint_convergence;
    }
    // Recorded first, so that its cotangent is complete when the value's adjoint reads it.
    const variable carry_out = t.record(std::move(result.carry), [](tape<T, Backend, X>&, variable) {});
    const variable value = t.record(std::move(result.value), [&kept, x, carry, carry_out, &plan = what, m = how](
                                                                 tape<T, Backend, X>& tp, variable self) {
        layer_on{plan, m}.back(kept, tp.value(x).view(), std::as_const(tp.bar(self)).view(), tp.bar(x).view(),
                               tp.parameter_bar_data() + kept.offset, tp.backend(),
                               {std::as_const(tp.bar(carry_out)).view(), tp.bar(carry).view()});
        kept.kept.reset();
    });
    return {value, carry_out};
}

template <class T, class Backend, class X>
typename layer_on<T, Backend, X>::tape_record& layer_on<T, Backend, X>::record_of(tape<T, Backend, X>& t,
                                                                                  const dims& size,
                                                                                  const std::string& prefix) const {
    auto& kept = t.template keep<tape_record>();
    if (kept.nodes != what.nodes.nodes.data() || kept.size != size || kept.prefix != prefix) {
        kept.nodes = nullptr;  // what fails here is looked up again
        kept.offset = graph::parameters_in(what.nodes, t.parameters(), size, prefix).first;
        kept.prefix = prefix;
    }
    if (kept.adjoint_convergence.use_count() > 1) kept.adjoint_convergence = std::make_shared<convergence>();
    return kept;
}

}  // namespace engine

}  // namespace fprnn
