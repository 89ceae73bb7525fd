// Where CUDA's headers are: sums S + D ⊙ u that a device forms where it scans.
#if __has_include(<cuda_runtime_api.h>)

#include "host_backend.hpp"
#include "layer_check.hpp"

#include <type_traits>

namespace {

using layers::index;
using namespace fprnn::symbols;
namespace cuda = fprnn::cuda;

/// How many nodes of an expression a backend forms together with a scan.
template <class Expression, class Backend = cuda::device>
consteval int sums_in_scans() {
    using program = fprnn::program<std::remove_const_t<Expression>>;
    using frame = fprnn::frame<program, double, Backend>;
    return []<class... E>(fprnn::type_list<E...>) {
        return (0 + ... + fprnn::is_formed_by_scan<frame, E>);
    }(typename program::nodes{});
}

template <class U>
auto scan_of(U u) {
    return fprnn::selective_scan<"ssm">(softplus(fprnn::affine<"delta">(in)), fprnn::linear<"b", fprnn::d_state>(in),
                                        fprnn::linear<"c", fprnn::d_state>(in), u);
}
auto mixed() {
    const auto Q = fprnn::householder<2, "Q">(cat(in, shift(prev)));
    return Q * fprnn::linear<"B">(in) + (I - Q) * prev;
}

static_assert(sums_in_scans<decltype(fprnn::models::fp_mamba<2>())>() == 1);
static_assert(sums_in_scans<decltype(fprnn::models::mamba())>() == 1);
static_assert(sums_in_scans<decltype(fprnn::models::fp_mamba<2>()), fprnn::default_backend>() == 0);
// A sequence is no vector.
static_assert(sums_in_scans<decltype(fprnn::fixed_point(scan_of(mixed()) + fprnn::linear<"g">(in) * mixed()))>() == 0);

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

TEST_CASE("cuda skip: in the kernel of scans, from either side, of a scan that others read, too") {
    const auto u = mixed();
    const auto S = scan_of(u);
    const auto D = fprnn::parameter<"D">();
    const auto one = fprnn::fixed_point(fprnn::layer_norm<"n">(S + u * D));
    const auto both = fprnn::fixed_point(fprnn::layer_norm<"n">(fprnn::layer_norm<"m">(S + D * u) + S));
    const auto two =
        fprnn::fixed_point(fprnn::layer_norm<"n">(S + D * u) + fprnn::layer_norm<"m">(S + fprnn::parameter<"E">() * u));
    static_assert(sums_in_scans<decltype(one)>() == 1);
    static_assert(sums_in_scans<decltype(both)>() == 1);
    static_assert(sums_in_scans<decltype(two)>() == 1);
    check(one, 3);
    check(both, 3);
    check(two, 3);
}

TEST_CASE("cuda skip: where states are more than a thread has registers for") {
    const auto u = mixed();
    check(fprnn::fixed_point(fprnn::layer_norm<"n">(scan_of(u) + fprnn::parameter<"D">() * u)), 40);
}

TEST_CASE("cuda skip: a scan outside of the iteration has it, too") {
    const host::guarded_devices guard;
    for (const index tokens : {1, 2, 20})
        layers::check_equivalent(fprnn::models::mamba(), {.length = 1}, fprnn::implicit{}, {3, tokens, 4}, 6, 3, 1e-13);
}

}  // namespace

#endif
