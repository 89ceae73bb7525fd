// Where CUDA's headers are: chains that a device evaluates where it scans.
#if __has_include(<cuda_runtime_api.h>)

#include "host_backend.hpp"
#include "layer_expressions_check.hpp"

#include <type_traits>
#include <utility>

namespace {

using layers::index;
using namespace fprnn::symbols;
namespace cuda = fprnn::cuda;
using fprnn::tensor;

namespace plan = fprnn::cuda::detail;
using fprnn::graph::nowhere, fprnn::graph::slot;

/// Calls count(graph, scan, chain) for the chains of an expression that a device evaluates with a scan.
template <class Expression, class Count>
consteval int count_chains(const Count& count) {
    constexpr const fprnn::graph::view& g = fprnn::graph::view_of<std::remove_const_t<Expression>>;
    int n = 0;
    for (slot s = 0; s < g.size(); ++s) {
        const slot scan = g[s].what == fprnn::graph::kind::elementwise ? plan::scan_of_chain(g, s) : nowhere;
        if (scan != nowhere) n += count(g, scan, s);
    }
    return n;
}
template <class Expression>
consteval int chains_in_scans() {
    return count_chains<Expression>([](const auto&, slot, slot) { return 1; });
}
/// Whose adjoints are in those of scans.
template <class Expression>
consteval int chains_back() {
    return count_chains<Expression>(
        [](const fprnn::graph::view& g, slot scan, slot chain) { return int(plan::goes_back_with(g, scan, chain)); });
}

auto step_of(auto from) { return softplus(fprnn::affine<"delta">(from)); }
auto scan_of(auto step, auto u) {
    return fprnn::selective_scan<"ssm">(step, fprnn::linear<"b", fprnn::d_state>(in),
                                        fprnn::linear<"c", fprnn::d_state>(in), u);
}
auto scan_of(auto u) { return scan_of(step_of(in), u); }
auto mixed() {
    const auto Q = fprnn::householder<2, "Q">(cat(in, shift(prev)));
    return Q * fprnn::linear<"B">(in) + (I - Q) * prev;
}
auto z() { return fprnn::linear<"z">(in); }
auto solved(auto sum) { return fprnn::fixed_point(fprnn::layer_norm<"n">(sum)); }

// Δ sees x alone: it is there before the iteration.
static_assert(chains_in_scans<decltype(fprnn::models::fp_mamba<2>())>() == 1);
static_assert(chains_in_scans<decltype(fprnn::models::mamba())>() == 2);
static_assert(chains_back<decltype(fprnn::models::fp_mamba<2>())>() == 1);
static_assert(chains_back<decltype(fprnn::models::mamba())>() == 2);

void check(auto expression, index d_state) {
    const host::guarded_devices guard;
    const auto on = [&](index C, const fprnn::adjoint& method, index tokens) {
        layers::check_equivalent(expression, {.length = C, .tolerance = 1e-13, .ell_max = 100}, method, {3, tokens, 4},
                                 6, d_state, 1e-12);
    };
    on(1, fprnn::implicit{.tolerance = 1e-14}, 4);
    on(3, fprnn::implicit{.tolerance = 1e-14}, 5);
    on(2, fprnn::unrolled{}, 2);
}

TEST_CASE("cuda chains of scans: one behind each scan, whose values others may read, too") {
    const auto u = mixed();
    const auto S = scan_of(u);
    const auto D = fprnn::parameter<"D">();
    const auto both = fprnn::fixed_point(fprnn::layer_norm<"n">(fprnn::layer_norm<"m">(u * D + S) + S));
    const auto two =
        fprnn::fixed_point(fprnn::layer_norm<"n">(S + D * u) + fprnn::layer_norm<"m">(S + fprnn::parameter<"E">() * u));
    static_assert(chains_in_scans<decltype(both)>() == 1);
    static_assert(chains_in_scans<decltype(two)>() == 1);
    check(both, 3);
}

TEST_CASE("cuda chains of scans: what sees the iterate, a step and a gate, in registers or not") {
    static_assert(chains_in_scans<decltype(layers::gated_scan_of_iterate())>() == 2);
    static_assert(chains_back<decltype(layers::gated_scan_of_iterate())>() == 2);
    check(layers::gated_scan_of_iterate(), 3);
    check(layers::gated_scan_of_iterate(), 40);
}

TEST_CASE("cuda chains of scans: a step of the scan's input and of a vector, before the innermost loop") {
    const auto s = cat(in, shift(prev));
    const auto u = fprnn::linear<"B">(s);
    const auto step = softplus(fprnn::affine<"delta">(s) * u + fprnn::parameter<"p">());
    const auto gated = solved(sigmoid(fprnn::linear<"g">(cat(in, prev))) * scan_of(step, u));
    static_assert(chains_in_scans<decltype(gated)>() == 1);
    check(gated, 3);
}

TEST_CASE("cuda chains of scans: what is not there yet, or too much, or somebody else's, is a kernel of its own") {
    const auto u = mixed();
    const auto S = scan_of(u);
    const auto later = fprnn::linear<"l">(cat(in, prev));
    const auto step = step_of(cat(in, shift(prev)));
    const auto read_twice = scan_of(step, u) + step;
    const auto many =
        sigmoid(later) * sigmoid(fprnn::linear<"m">(cat(in, prev))) * sigmoid(fprnn::linear<"o">(cat(in, prev))) * S;
    // Of S ⊙ σ(l) the scan is evaluated before l is, of σ(l) ⊙ S after it.
    static_assert(chains_in_scans<decltype(solved(S * sigmoid(later)))>() == 0);
    static_assert(chains_in_scans<decltype(solved(sigmoid(later) * S))>() == 1);
    static_assert(chains_in_scans<decltype(solved(read_twice))>() == 1);
    static_assert(chains_in_scans<decltype(solved(many))>() == 0);
    static_assert(chains_back<decltype(solved(sigmoid(later) * S))>() == 1);
    check(solved(S * sigmoid(later)), 3);
    check(solved(sigmoid(later) * S), 3);
    check(solved(read_twice), 3);
}

void check_outside(auto expression) {
    const host::guarded_devices guard;
    for (const index tokens : {1, 2, 20})
        layers::check_equivalent(expression, {.length = 1}, fprnn::implicit{}, {3, tokens, 4}, 6, 3, 1e-13);
}

TEST_CASE("cuda chains of scans: a step that is the scan's input, too, or is made of another scan") {
    const auto v = step_of(in);
    static_assert(chains_in_scans<decltype(scan_of(v, v))>() == 0);
    check_outside(scan_of(v, v));
    const auto S = scan_of(z());
    const auto step = softplus(z() * S);  // behind S, so that it is there for the other
    const auto second = fprnn::selective_scan<"second">(step, fprnn::linear<"b", fprnn::d_state>(in),
                                                        fprnn::linear<"c", fprnn::d_state>(in), z());
    static_assert(chains_in_scans<decltype(silu(S) * second)>() == 3);
    check_outside(silu(S) * second);
}

TEST_CASE("cuda chains of scans: who would store before them what they send goes back node by node") {
    // Between S and z ⊙ S others read both; between Δ and its scan others read what Δ is of.
    const auto gate = z();
    const auto S = scan_of(fprnn::linear<"x">(in));
    const auto between = fprnn::linear<"out", fprnn::d_in>(
        cat(fprnn::layer_norm<"a">(gate), fprnn::layer_norm<"b_">(S), fprnn::linear<"g">(gate), normalise(gate * S)));
    static_assert(chains_in_scans<decltype(between)>() == 2);
    static_assert(chains_back<decltype(between)>() == 1);
    check_outside(between);
    const auto v = fprnn::linear<"v">(in);
    const auto of_step = fprnn::selective_scan<"ssm">(softplus(v), fprnn::linear<"b", fprnn::d_state>(v),
                                                      fprnn::linear<"c", fprnn::d_state>(in), z());
    static_assert(chains_in_scans<decltype(of_step)>() == 1);
    static_assert(chains_back<decltype(of_step)>() == 0);
    check_outside(of_step);
    // a ⊙ S goes back with S, before a's step does, which comes first otherwise.
    const auto a = fprnn::linear<"a">(in);
    const auto u = fprnn::linear<"x">(in);
    const auto first = scan_of(u);
    const auto second = fprnn::selective_scan<"second">(softplus(a), fprnn::linear<"b2", fprnn::d_state>(first),
                                                        fprnn::linear<"c2", fprnn::d_state>(in), u);
    const auto crossing = fprnn::linear<"out", fprnn::d_in>(cat(second, a * first, first));
    static_assert(chains_in_scans<decltype(crossing)>() == 3);
    static_assert(chains_back<decltype(crossing)>() < 3);
    check_outside(crossing);
}

TEST_CASE("cuda chains of scans: who receives after its own turn is sent to node by node") {
    const auto gated = solved(scan_of(mixed()) * sigmoid(fprnn::affine<"g">(cat(in, shift(prev)))));
    static_assert(chains_in_scans<decltype(gated)>() == 1);
    static_assert(chains_back<decltype(gated)>() == 0);
    check(gated, 3);
}

TEST_CASE("cuda chains of scans: a step that is the scan's input, to which the chain behind is the first to send") {
    const auto w = fprnn::linear<"w">(in);
    const auto gated = fprnn::linear<"out", fprnn::d_in>(w * scan_of(w, w));
    static_assert(chains_back<decltype(gated)>() == 1);
    check_outside(gated);
}

TEST_CASE("cuda chains of scans: a worker has several sequences, and vectors that several chains read") {
    const host::guarded_devices guard;
    const auto D = fprnn::parameter<"D">();
    const auto u = fprnn::linear<"x">(in);
    const auto shared = fprnn::linear<"out", fprnn::d_in>(scan_of(softplus(D * u), u) * D + D * u);
    static_assert(chains_back<decltype(shared)>() == 2);
    for (const index d_state : {3, 40})
        layers::check_equivalent(shared, {.length = 1}, fprnn::implicit{}, {19, 5, 4}, 6, d_state, 1e-12);
}

TEST_CASE("cuda chains of scans: they are in the kernels that scan, there, back and in the adjoint's iterations") {
    const auto kernels = [](auto expression, index C = 1, const fprnn::adjoint& method = fprnn::implicit{}) {
        const host::guarded_devices guard;
        const fprnn::layer layer(expression, {.length = C, .tolerance = 1e-14, .ell_max = 5}, method);
        const auto theta = fprnn::init<double>(layer, {.d_in = 4, .d_inner = 6, .d_state = 3}, fprnn::seed{4});
        const auto x = gpu::random<double>({2, 4, 4}, 1);
        const auto y_bar = gpu::random<double>({2, 4, layer.output_width(theta.widths)}, 2);
        host::selective_scans = host::selective_scans_back = 0;
        layers::differentiate(layer, theta, x, tensor<double>({2, layer.carry_width(theta.widths)}), y_bar,
                              cuda::device());
        return std::pair(host::selective_scans, host::selective_scans_back);
    };
    using of = std::pair<int, int>;
    CHECK(kernels(fprnn::models::mamba()) == of(1, 1));
    CHECK(kernels(layers::gated_scan()) == of(1, 1));
    CHECK(kernels(layers::gated_scan_of_iterate(), 4, fprnn::one_step{}) == of(5, 1));
    CHECK(kernels(layers::gated_scan_of_mixed(), 4, fprnn::implicit{.tolerance = 1e-14, .ell_max = 5}) == of(5 + 5, 1));
}

}  // namespace

#endif
