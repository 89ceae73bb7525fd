#pragma once

#include <fprnn/cuda/backend.hpp>
#include <fprnn/fixed_point/layer.hpp>

#include <span>
#include <type_traits>

namespace fprnn::cuda::detail {

/// A tensor of the host, or a view, of numbers of T.
template <class A, class T>
concept of_the_host = host_array<A> && std::is_same_v<std::remove_const_t<typename A::value_type>, T>;

/// What layer(theta, x, carry, gpu) takes and returns beside a layer's own calls.
struct device_layer_calls {
    using no_carry = fprnn::detail::no_carry;

    /// Arguments and results are the host's: the device is given copies, and gives its results back.
    template <class Root, class T, of_the_host<T> X, class Carry>
        requires(of_the_host<Carry, T> || std::is_same_v<Carry, no_carry>)
    static solution<T> call(const layer<Root>& of, const fprnn::layer_parameters<T>& theta, const X& x, lengths n,
                            const Carry& carry, device& d) {
        view<const T> carried;
        if constexpr (!std::is_same_v<Carry, no_carry>)
            if (carry.data()) carried = {carry.data(), carry.shape()};
        using here = fprnn::detail::eager<device>;
        auto theta_there = here::numbers(d, view<const T>(of.parameters_of(theta), {theta.size()}));
        auto x_there = here::numbers(d, view<const T>(x.data(), x.shape()));
        auto carry_there = here::numbers(d, carried);
        if (carried.data()) carried = {carry_there.data(), carried.shape()};
        const auto there =
            of.template run<T>(theta.widths, theta_there.data(), {x_there.data(), x.shape()}, carried, d, nullptr, n);
        return {there, copy_to_host(there.value), copy_to_host(there.carry), there.work, {}};
    }

    template <class Root, class T, of_the_host<T> X, class Carry>
        requires(of_the_host<Carry, T> || std::is_same_v<Carry, no_carry>)
    static solution<T> call(const layer<Root>& of, const fprnn::layer_parameters<T>& theta, const X& x,
                            const Carry& carry, device& d) {
        return call(of, theta, x, std::span<const index>(), carry, d);
    }

    /// Everything stays on the device: layer(gpu.copy(theta), gpu.copy(x), gpu). x may be stored as bf16
    /// where parameters are float; so is then the solution's value, while states, iterates, residuals and the
    /// carry are float.
    template <class Root, class T, class X>
        requires(may_store<X, T, device>())
    static solution<T, tensor<X>, tensor<T>> call(const layer<Root>& of, const layer_parameters<T>& theta,
                                                  const tensor<X>& x, const tensor<T>& carry, device& d) {
        d.require_here("layer", "theta", theta.values);
        d.require_here("layer", "x", x);
        if (!carry.empty()) d.require_here("layer", "carry", carry);
        const index offset = of.parameter_offset(theta.layout, theta.widths, "");
        return of.template run<T, device, X>(theta.widths, theta.data() + offset, x.view(),
                                             carry.empty() ? view<const T>{} : carry.view(), d, nullptr);
    }
    template <class Root, class T, class X>
        requires(may_store<X, T, device>())
    static solution<T, tensor<X>, tensor<T>> call(const layer<Root>& of, const layer_parameters<T>& theta,
                                                  const tensor<X>& x, no_carry, device& d) {
        return call(of, theta, x, tensor<T>(), d);
    }
};

}  // namespace fprnn::cuda::detail
