#!/usr/bin/env python3
"""The FP-Mamba block of one sequence on a CPU: 20 iterations over all of its tokens, in JAX and in PyTorch.

What one_sequence_fp_mamba of bench/fixed_point.cpp is compared with, [1,1024,64], N = 16, float:

    taskset -c 0,1 python3 one_sequence.py
    bench_fixed_point --benchmark_filter=one_sequence

JAX compiles the whole solve; its recurrence is lax.scan, its decays are computed once. PyTorch is eager, its recurrence a loop over tokens, or a
scan by doubling, both measured, and its decays are computed once, too. All must give the same y.
"""

import os
import time

import fp_mamba
import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import lax

T, D, N, ITERATIONS, RUNS = 1024, 64, 16, 20, 9


def unit(v):
    return v / jnp.maximum(jnp.linalg.norm(v, axis=-1, keepdims=True), fp_mamba.EPSILON)


def centred(v):
    v = v - v.mean(-1, keepdims=True)
    return v / jnp.sqrt((v**2).mean(-1, keepdims=True) + fp_mamba.EPSILON)


def shift(y):
    return jnp.concatenate([jnp.zeros_like(y[:1]), y[:-1]])


def solve_jax(theta, x_in):
    """y [T,D] after ITERATIONS, of x_in [T,D]; as FpMamba of fp_mamba.py. What does not change is outside of the loop."""
    R = len(theta["Q.alpha"])
    u = x_in / jnp.sqrt((x_in**2).mean(-1, keepdims=True) + fp_mamba.EPSILON) * theta["norm.weight"]
    x = u @ theta["x"].T
    delta = jax.nn.softplus(x @ theta["delta"].T + theta["delta.bias"])
    decay = jnp.exp(-jnp.exp(theta["ssm.omega"]) * delta[:, None, :])
    given = {name: x @ theta[name][:, :D].T for name in ("Q.u", "Q.alpha", "b", "c")}

    def f(y):
        before = shift(y)
        of = {name: given[name] + before @ theta[name][:, D:].T for name in given}
        directions = unit(jax.nn.silu(of["Q.u"]).reshape(T, R, D))
        alpha = jax.nn.sigmoid(of["Q.alpha"] + theta["Q.alpha.bias"])
        d = x - y
        for r in range(R):
            d = d - (alpha[:, r, None] * (directions[:, r] * d).sum(-1, keepdims=True)) * directions[:, r]
        mixed = y + d

        def step(H, token):
            decay, b, c, u = token
            H = decay * H + b[:, None] * u
            return H, c @ H

        _, read = lax.scan(step, jnp.zeros((N, D)), (decay, unit(of["b"]), unit(of["c"]), delta * mixed))
        return centred(read + theta["D"] * mixed) * theta["y_norm.weight"] + theta["y_norm.bias"]

    def iterate(_, state):
        y, _ = state
        to = f(y)
        return to, (jnp.abs(to - y).max(-1) / (jnp.abs(to).max(-1) + 1e-8)).max()

    return lax.fori_loop(0, ITERATIONS, iterate, (jnp.zeros_like(x), jnp.float32(0)))[0]


def doubling(decay, u):
    """h_t = decay_t * h_{t-1} + u_t in log2(T) steps: [1,T,N,D]."""
    step = 1
    while step < T:
        u = torch.cat([u[:, :step], u[:, step:] + decay[:, step:] * u[:, :-step]], 1)
        decay = torch.cat([decay[:, :step], decay[:, step:] * decay[:, :-step]], 1)
        step *= 2
    return u


def loop(decay, u):
    h = torch.empty_like(u)
    state = torch.zeros_like(u[:, 0])
    for t in range(T):
        state = torch.addcmul(u[:, t], decay[:, t], state, out=h[:, t])
    return h


def solve_torch(theta, x_in, scan):
    block = fp_mamba.FpMamba(theta, None)
    p = block.given(x_in)
    decay = torch.exp(-torch.exp(theta["ssm.omega"]) * p.delta.unsqueeze(2))

    def selective_scan(_, delta, b, c, u):
        H = scan(decay, b.unsqueeze(3) * (delta * u).unsqueeze(2))
        return (c.unsqueeze(3) * H).sum(2)

    block.selective_scan = selective_scan
    y = torch.zeros_like(p.x)
    for _ in range(ITERATIONS):
        to = block.f(p, y)
        ((to - y).abs().amax(2) / (to.abs().amax(2) + 1e-8)).amax(1)
        y = to
    return y


def best(run):
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return f"{min(times) * 1e3:.2f} ms"


if __name__ == "__main__":
    threads = len(os.sched_getaffinity(0))
    torch.set_num_threads(threads)
    torch.manual_seed(4)
    for R in 1, 4:
        theta = fp_mamba.start(D, D, N, R, "cpu")
        x_in = torch.randn(1, T, D)
        arrays = {name: jnp.asarray(p.numpy()) for name, p in theta.items()}
        x = jnp.asarray(x_in[0].numpy())
        compiled = jax.jit(solve_jax)
        with torch.no_grad():
            y = np.asarray(compiled(arrays, x))
            print(f"R = {R}, {threads} threads, JAX: {best(lambda: compiled(arrays, x).block_until_ready())}")
            for scan in loop, doubling:
                apart = np.abs(solve_torch(theta, x_in, scan)[0].numpy() - y).max() / np.abs(y).max()
                if not apart < 1e-2:  # twenty iterations need not contract: differences grow
                    raise SystemExit(f"JAX and PyTorch have to agree, and are {apart:.1e} apart")
                time_of = best(lambda: solve_torch(theta, x_in, scan))
                print(f"R = {R}, {threads} threads, PyTorch, {scan.__name__}: {time_of}, {apart:.1e} from JAX", flush=True)
