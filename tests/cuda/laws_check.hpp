#pragma once

#include "layer_check.hpp"

#include <fprnn/cuda/parameters.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

/// What layers promise, on cuda::device alone, wherever its kernels run. Of the CPU tests/laws has the same.
namespace laws {

using fprnn::chunked;
using fprnn::index;
using fprnn::shape;
using fprnn::tensor;
namespace cuda = fprnn::cuda;

/// Between calls of other sizes. Kernels that run on the host add in one order; a GPU's products need not.
#ifdef __CUDACC__
template <class T>
inline constexpr double of_sizes = layers::most_of<T>;
#else
template <class T>
inline constexpr double of_sizes = 0;
#endif
/// Between ways to one fixed point: 3.8e-14 and 4.1e-7 measured.
template <class T>
inline constexpr double of_ways = std::is_same_v<T, double> ? 1e-10 : 1e-4;

template <class T = double>
chunked chunks_of(index length) {
    return {.length = length, .tolerance = layers::adjoint_tolerance<T>, .ell_max = 400};
}

inline double dot(const tensor<double>& a, const tensor<double>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}
/// Sequences [first, first + n) of [B,…], and tokens of [B,T,D].
template <class T>
tensor<T> sequences(const tensor<T>& x, index first, index n) {
    const index each = x.size() / x.shape()[0];
    tensor<T> part(x.shape().rank() == 3 ? shape{n, x.shape()[1], x.shape()[2]} : shape{n, x.shape()[1]});
    std::copy_n(x.data() + first * each, n * each, part.data());
    return part;
}
template <class T>
tensor<T> tokens(const tensor<T>& x, index first, index n) {
    const index B = x.shape()[0], all = x.shape()[1], D = x.shape()[2];
    tensor<T> part({B, n, D});
    for (index b = 0; b < B; ++b) std::copy_n(x.data() + (b * all + first) * D, n * D, part.data() + b * n * D);
    return part;
}

/// A layer on a device, with its arguments.
template <class T, class Expression>
struct problem {
    fprnn::layer<Expression> layer;
    fprnn::layer_parameters<T> theta;
    tensor<T> x, carry, y_bar;
    cuda::device device{};

    problem(Expression expression, const chunked& schedule, const shape& s, index d_inner = 6)
        : layer(expression, schedule, fprnn::implicit{.tolerance = layers::adjoint_tolerance<T>}),
          theta(fprnn::init<T>(layer, {.d_in = s[2], .d_inner = d_inner, .d_state = 3}, fprnn::seed{3})),
          x(gpu::random<T>(s, 1)),
          carry(gpu::random<T>({s[0], layer.carry_width(theta.widths)}, 2, 0.3)),
          y_bar(gpu::random<T>({s[0], s[1], layer.output_width(theta.widths)}, 3)) {}

    auto solve(const tensor<T>& input, const cuda::tensor<T>& from) const {
        return layer(device.copy(theta), device.copy(input), from, device);
    }
    tensor<T> value() const { return cuda::copy_to_host(solve(x, device.copy(carry)).value); }
    auto differentiate(const tensor<T>& input, const tensor<T>& from, const tensor<T>& bar) const {
        return layers::differentiate(layer, theta, input, from, bar, device);
    }
    auto differentiate() const { return differentiate(x, carry, y_bar); }
};

/// The adjoint's slope of ⟨ȳ, y⟩, along a direction of x and one of the parameters, is the central difference
/// of five points: 3.7e-10 measured.
template <class Expression>
void check_gradient(Expression expression, const chunked& schedule = {}) {
    CAPTURE(schedule.length);
    problem<double, Expression> p(expression, schedule, {2, 5, 4});
    const auto bars = p.differentiate();
    REQUIRE(bars.forward.all_converged());
    REQUIRE(bars.back.all_converged());
    const auto check = [&](double* at, const tensor<double>& bar, std::uint64_t stream) {
        const std::vector<double> before(at, at + bar.size());
        const auto direction = gpu::random<double>(bar.shape(), stream);
        const double h = 1e-4, weights[] = {1, -8, 8, -1}, steps[] = {-2, -1, 1, 2};
        double slope = 0;
        for (int k = 0; k < 4; ++k) {
            for (index i = 0; i < bar.size(); ++i)
                at[i] = before[static_cast<std::size_t>(i)] + steps[k] * h * direction[i];
            slope += weights[k] * dot(p.value(), p.y_bar) / (12 * h);
        }
        std::copy(before.begin(), before.end(), at);
        CHECK(std::abs(slope - dot(bar, direction)) <= 1e-8 * std::abs(slope));
    };
    check(p.x.data(), bars.x_bar, 10);
    check(p.theta.data(), bars.theta_bar, 11);
}
template <class Expression>
void check_gradients(Expression expression) {
    for (const index C : {index(1), index(3), fprnn::whole_sequence}) check_gradient(expression, chunks_of(C));
}

/// Where tokens contract there is one fixed point: all schedules reach it, and one gradient.
template <class T, class Expression>
void check_schedules(Expression expression) {
    problem<T, Expression> p(expression, chunks_of<T>(1), {3, 13, 4});
    const auto sequential = p.differentiate();
    for (const index C : {index(1), index(3), fprnn::whole_sequence}) {
        CAPTURE(C);
        p.layer.schedule = chunks_of<T>(C);
        const auto got = p.differentiate();
        CHECK(got.forward.all_converged());
        CHECK(got.back.all_converged());
        CHECK(gpu::distance(got.value, sequential.value) <= of_ways<T>);
        CHECK(gpu::distance(got.carry, sequential.carry) <= of_ways<T>);
        CHECK(gpu::distance(got.x_bar, sequential.x_bar) <= of_ways<T>);
        CHECK(gpu::distance(got.theta_bar, sequential.theta_bar) <= of_ways<T>);
    }
}

/// A sequence gives and receives what it does by itself, wherever it stands and whatever is beside it.
template <class Expression>
void check_neighbours(Expression expression, const chunked& schedule) {
    CAPTURE(schedule.length);
    constexpr index B = 3, crowd = 6;
    const problem<double, Expression> p(expression, schedule, {B, 5, 4});
    const auto all = p.differentiate();
    // Numbers of another size, and one that is none.
    auto x = gpu::random<double>({crowd, 5, 4}, 7, 30), y_bar = gpu::random<double>({crowd, 5, 4}, 8, 1e3);
    auto carry = gpu::random<double>({crowd, p.carry.shape()[1]}, 9);
    x(1, 2, 0) = NAN;
    tensor<double> theta_bar(all.theta_bar.shape());
    for (index b = 0; b < B; ++b) {
        CAPTURE(b);
        const auto check = [&](const layers::outcome& got, index place) {
            const auto apart = [&](const tensor<double>& there, const tensor<double>& alone) {
                return gpu::distance(sequences(there, place, 1), sequences(alone, b, 1));
            };
            CHECK(apart(got.value, all.value) <= of_sizes<double>);
            CHECK(apart(got.carry, all.carry) <= of_sizes<double>);
            CHECK(apart(got.x_bar, all.x_bar) <= of_sizes<double>);
            const auto at = static_cast<std::size_t>(place), nth = static_cast<std::size_t>(b);
            CHECK(got.forward.status[at] == all.forward.status[nth]);
            CHECK(layers::nearly({got.forward.iterations[at]}, {all.forward.iterations[nth]}));
        };
        const auto one = p.differentiate(sequences(p.x, b, 1), sequences(p.carry, b, 1), sequences(p.y_bar, b, 1));
        check(one, 0);
        for (index i = 0; i < theta_bar.size(); ++i) theta_bar[i] += one.theta_bar[i];

        const index place = crowd - 1 - b;
        const auto put = [&](const tensor<double>& from, tensor<double>& to) {
            const auto mine = sequences(from, b, 1);
            std::copy(mine.begin(), mine.end(), to.data() + place * mine.size());
        };
        put(p.x, x);
        put(p.carry, carry);
        put(p.y_bar, y_bar);
        check(p.differentiate(x, carry, y_bar), place);
    }
    CHECK(gpu::distance(theta_bar, all.theta_bar) <= layers::most);
}
template <class Expression>
void check_neighbours(Expression expression) {
    for (const index C : {index(1), index(3), fprnn::whole_sequence}) check_neighbours(expression, chunks_of(C));
}

/// Calls that go on from each other's carry give what one call does, which is what it gives on the CPU.
template <class T, class Expression>
void check_streaming(Expression expression, index C, const std::vector<index>& lengths, double apart) {
    CAPTURE(C);
    const problem<T, Expression> p(expression, chunks_of<T>(C), {3, 13, 4});
    auto carry = p.device.copy(p.carry);
    const auto whole = p.solve(p.x, carry);
    const auto value = cuda::copy_to_host(whole.value);
    CHECK(whole.all_converged());
    CHECK(gpu::distance(value, p.layer(p.theta, p.x, p.carry).value) <= layers::most_of<T>);
    index at = 0;
    for (const index n : lengths) {
        CAPTURE(at);
        auto part = p.solve(tokens(p.x, at, n), carry);
        CHECK(gpu::distance(cuda::copy_to_host(part.value), tokens(value, at, n)) <= apart);
        carry = std::move(part.carry);
        at += n;
    }
    CHECK(at == 13);
    CHECK(gpu::distance(cuda::copy_to_host(carry), cuda::copy_to_host(whole.carry)) <= apart);
}
/// Where calls end with a chunk, and where they do not but there is one fixed point.
template <class T, class Expression>
void check_streaming(Expression expression) {
    check_streaming<T>(expression, 1, {5, 8}, of_sizes<T>);
    check_streaming<T>(expression, 1, std::vector<index>(13, 1), of_sizes<T>);
    check_streaming<T>(expression, 3, {6, 7}, of_sizes<T>);
    check_streaming<T>(expression, 3, {5, 8}, of_ways<T>);
    check_streaming<T>(expression, fprnn::whole_sequence, {5, 1, 7}, of_ways<T>);
}

}  // namespace laws
