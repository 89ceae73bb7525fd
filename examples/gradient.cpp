// The gradient of a fixed-point layer: one record on a tape, three adjoints, and difference quotients as the
// judge.
#include <fprnn/fprnn.hpp>

#include <cmath>
#include <cstdio>
#include <numeric>
#include <utility>

namespace fp = fprnn;

fp::tensor<double> normal(fp::shape extents, std::uint64_t stream) {
    fp::tensor<double> x(extents);
    for (fp::index i = 0; i < x.size(); ++i) x[i] = fp::random_stream(fp::seed{0}, stream).normal(i);
    return x;
}

//! [operation]
/// L = Σ weights ⊙ y on the tape: its value, and below it what it sends back, ȳ += L̄ weights.
fp::variable weighted_sum(fp::tape<double>& tape, const fp::tensor<double>& weights, fp::variable y) {
    const auto& value = tape.value(y);
    const double sum = std::inner_product(value.begin(), value.end(), weights.begin(), 0.0);
    return tape.record({{1}, {sum}}, [&weights, y](fp::tape<double>& t, fp::variable self) {
        for (fp::index i = 0; i < weights.size(); ++i) t.bar(y)[i] += t.bar(self)[0] * weights[i];
    });
}
//! [operation]

int main() {
    //! [layer]
    using namespace fp::symbols;
    auto s = cat(in, shift(prev));
    auto Q = fp::householder<2, "Q">(s);
    auto lambda = sigmoid(fp::affine<"lambda">(in));
    auto f = scan(lambda, (1 - lambda) * (Q * fp::linear<"B">(in) + (I - Q) * prev));

    // Solved to rounding: a difference quotient of y* shows its residual, divided by the step.
    auto layer = fp::fixed_point(f, fp::chunked{.length = 1, .tolerance = 1e-13, .ell_max = 1000},
                                 fp::implicit{.tolerance = 1e-13});
    auto theta = fp::init<double>(layer, {.d_in = 3, .d_inner = 5}, fp::seed{0});
    //! [layer]
    auto x = normal({2, 6, 3}, 1);              // [B,T,d_in]
    const auto weights = normal({2, 6, 5}, 2);  // [B,T,d_inner]

    bool right = true;
    const std::pair<const char*, fp::adjoint> ways[] = {
        {"implicit", fp::implicit{.tolerance = 1e-13}}, {"unrolled", fp::unrolled{}}, {"one_step", fp::one_step{}}};
    for (const auto& [name, way] : ways) {
        layer.adjoint = way;
        //! [tape]
        fp::tape<double> tape(theta);
        fp::solution<double> how;
        const fp::variable input = tape.leaf(x);
        const fp::variable y = layer(tape, theta.widths, "", input, &how);
        const fp::variable L = weighted_sum(tape, weights, y);
        const auto gradient = tape.gradient(L);  // of every parameter; tape.bar(input) is that of x
        //! [tape]

        //! [check]
        std::vector<fp::gradcheck_input> all{{"x", x, tape.bar(input)}};
        for (const auto& p : theta.entries()) all.push_back({p.name, theta[p.name], gradient[p.name]});
        const auto loss = [&] {
            const auto value = layer(theta, x).value;
            return std::inner_product(value.begin(), value.end(), weights.begin(), 0.0);
        };
        const auto worst = fp::gradcheck(loss, all, {.step = 3e-4});
        //! [check]
        std::printf("%s: %s\n", name, worst.to_string().c_str());
        right = right && how.all_converged() && how.adjoint->all_converged();
        // one_step leaves (I − J)⁻¹ out: it costs less, and is not the gradient.
        right = right && (std::holds_alternative<fp::one_step>(way) ? worst.error > 1e-3 : worst.error < 1e-7);
    }
    // The whole sequence again, in two windows of three tokens.
    layer.adjoint = fp::implicit{.tolerance = 1e-13};
    fp::tensor<double> x1({2, 3, 3}), x2({2, 3, 3}), w1({2, 3, 5}), w2({2, 3, 5});
    for (fp::index b = 0; b < 2; ++b)
        for (fp::index t = 0; t < 3; ++t) {
            for (fp::index i = 0; i < 3; ++i) x1(b, t, i) = x(b, t, i), x2(b, t, i) = x(b, t + 3, i);
            for (fp::index i = 0; i < 5; ++i) w1(b, t, i) = weights(b, t, i), w2(b, t, i) = weights(b, t + 3, i);
        }
    fp::tape<double> whole(theta);
    const auto expected = whole.gradient(weighted_sum(whole, weights, layer(whole, theta.widths, "", whole.leaf(x))));
    //! [windows]
    fp::tape<double> tape(theta);
    const auto begin = tape.leaf(fp::tensor<double>({2, layer.carry_width(theta.widths)}));
    const auto first = layer(tape, theta.widths, "", tape.leaf(x1), begin);
    const auto second = layer(tape, theta.widths, "", tape.leaf(x2), first.carry);
    //! [windows]
    const auto of_first = weighted_sum(tape, w1, first.value), of_second = weighted_sum(tape, w2, second.value);
    const auto sum = tape.record({{1}, {tape.value(of_first)[0] + tape.value(of_second)[0]}},
                                 [of_first, of_second](fp::tape<double>& t, fp::variable self) {
                                     t.bar(of_first)[0] += t.bar(self)[0];
                                     t.bar(of_second)[0] += t.bar(self)[0];
                                 });
    const auto gradient = tape.gradient(sum);
    for (const auto& p : theta.entries())
        for (fp::index i = 0; i < expected[p.name].size(); ++i)
            right = right && std::abs(gradient[p.name].data()[i] - expected[p.name].data()[i]) < 1e-10;

    std::puts(right ? "implicit and unrolled are the gradient; one_step is another direction" : "not as claimed");
    return right ? 0 : 1;
}
