#pragma once

#include <fprnn/fixed_point/layer.hpp>
#include <fprnn/fixed_point/newton_run.hpp>

#include <span>
#include <string>
#include <type_traits>
#include <utility>

/// All tokens of a sequence at the same time, by Newton's method on what tokens hand on.
namespace fprnn {

/// y* = f(x, y*) as sequential() solves it, token by token, but of all tokens at the same time. What tokens
/// hand on is unknown: with the carries s_t and one token's map F, s_t = F(s_{t−1}, x_t), each iteration
/// evaluates F at all tokens as one batch and solves
///
///     s⁺_t = F(s_{t−1}) + J_t (s⁺_{t−1} − s_{t−1}),   s_0 the carry in,
///
/// a linear recurrence, from s = 0. J_t is ∂F/∂s of what the fixed point hands on, as far as `dense` numbers
/// go; of larger states of scans it has the factors λ_t and nothing else. After k iterations the first k
/// tokens are solved whatever J is, so that T are enough, and sequences that have converged end.
///
/// An iteration takes as much memory as B·T·dense² numbers and as much work as `dense` backward passes: it is
/// for machines that have more processors than sequences. On the CPU; x [B,T,d_in], carry [B,carry_width].
/// `iterations` counts these, `total_iterations` those of F, which a token may take as many of as the layer's
/// stop or schedule says. Where F is not finite at a solution the rest is solved token by token. Errors:
/// shapes, options out of range, attention in the expression. Sources: Lim et al. 2024, arXiv 2309.12252;
/// Gonzalez et al. 2024, arXiv 2407.19115.
template <class Root, class T, backend_for<T> Backend = default_backend>
    requires(host_memory_backend<Backend, T>)
solution<T> newton(const layer<Root>& layer, const dims& size, const T* parameters, view<const T> x,
                   std::type_identity_t<view<const T>> carry = {}, const newton_options& options = {},
                   Backend backend = {}) {
    static_assert(fprnn::layer<Root>::has_fixed_point,
                  "newton: the expression has no fixed point, one evaluation solves it");
    static_assert(!fprnn::layer<Root>::nodes.contains(graph::kind::attention),
                  "newton: attention hands on all tokens before: use the layer itself");
    options.validate();
    const auto all = layer.template on<T, Backend>();
    const shape carried{x.shape().rank() == 3 ? x.shape()[0] : 0, layer.carry_width(size)};
    require(x.shape().rank() == 3 && x.shape()[2] == size.d_in, "newton",
            [&] { return "x must be [B,T," + std::to_string(size.d_in) + "], got " + x.shape().to_string(); });
    require(carry.shape() == carried || engine::is_omitted(carry), "newton",
            [&] { return "carry must be " + carried.to_string() + ", got " + carry.shape().to_string(); });
    solution<T> result;
    engine::newton_run<T, Backend>(all, size, parameters, options, backend)(x, carry, result);
    return result;
}
template <class Root, class T, backend_for<T> Backend = default_backend>
    requires(host_memory_backend<Backend, T>)
solution<T> newton(const layer<Root>& layer, const layer_parameters<T>& theta, const tensor<T>& x,
                   const newton_options& options = {}, const tensor<T>& carry = {}, Backend backend = {}) {
    return newton<Root, T, Backend>(layer, theta.widths, layer.parameters_of(theta), x.view(), carry.view(), options,
                                    std::move(backend));
}

}  // namespace fprnn
