#!/usr/bin/env python3
"""The scan of Mamba-2 and the gated delta rule on a CPU in JAX, forward and backward.

What bench/recurrences.cpp is compared with, [8,512] tokens, 8 heads of 32 channels, 32 states, float, one core, in turns:

    taskset -c 0 python3 recurrences.py
    taskset -c 0 bench/recurrences

Both are jitted lax.scan over tokens, vectorised over sequences and heads. The backward pass is jax.vjp's with jax.checkpoint of 16 tokens at a
time, as the library keeps one state in 16; without checkpoints it is measured, too. The two must agree.
"""

import os
import time

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

B, T, H, P, N, BLOCK, RUNS = 8, 512, 8, 32, 32, 16, 9


def head_scan_step(S, token):
    a, b, u, c = token
    S = a[..., None, None] * S + b[:, None, :, None] * u[:, :, None, :]
    return S, jnp.einsum("bn,bhnp->bhp", c, S)


def gated_delta_step(S, token):
    alpha, k, v, beta, q = token
    S = alpha[..., None, None] * S
    r = v - jnp.einsum("bhk,bhkv->bhv", k, S)
    S = S + (beta[..., None] * k)[..., None] * r[..., None, :]
    return S, jnp.einsum("bhk,bhkv->bhv", q, S)


def over_tokens(step):
    def run(*x):
        return lax.scan(step, jnp.zeros((B, H, N, P), x[0].dtype), x)[1]

    return run


def over_blocks(step):
    """The same; states inside of a block of tokens are computed again in the backward pass."""

    @jax.checkpoint
    def block(S, x):
        return lax.scan(step, S, x)

    def run(*x):
        blocks = [v.reshape(T // BLOCK, BLOCK, *v.shape[1:]) for v in x]
        y = lax.scan(block, jnp.zeros((B, H, N, P), x[0].dtype), blocks)[1]
        return y.reshape(T, *y.shape[2:])

    return run


def median_of(f, *x):
    jax.block_until_ready(f(*x))
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        jax.block_until_ready(f(*x))
        times.append(time.perf_counter() - start)
    return np.median(times)


def inputs():
    random = np.random.default_rng(0)
    draw = lambda low, high, *shape: random.uniform(low, high, (T, B, *shape)).astype(np.float32)
    unit = lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True)
    head_scan = draw(0.9, 1, H), draw(-1, 1, N), draw(-1, 1, H, P), draw(-1, 1, N)
    delta = draw(0.9, 1, H), unit(draw(-1, 1, H, N)), draw(-1, 1, H, P), draw(0, 1, H), unit(draw(-1, 1, H, N))
    return {"head_scan": (head_scan_step, head_scan), "gated_delta": (gated_delta_step, delta)}


def main():
    y_bar = np.random.default_rng(1).uniform(-1, 1, (T, B, H, P)).astype(np.float32)
    for name, (step, x) in inputs().items():
        plain, checkpointed = over_tokens(step), over_blocks(step)
        forward = jax.jit(plain)
        gradients = {}
        for way, f in [("checkpointed", checkpointed), ("all states kept", plain)]:
            gradients[way] = jax.jit(lambda y_bar, *x, f=f: jax.vjp(f, *x)[1](y_bar))
        a, b = (g(y_bar, *x) for g in gradients.values())
        assert all(np.allclose(p, q, rtol=1e-3, atol=1e-3) for p, q in zip(a, b)), "two gradients"
        print(f"{name}_forward {1e3 * median_of(forward, *x):.2f} ms")
        for way, g in gradients.items():
            print(f"{name}_backward, {way}: {1e3 * median_of(g, y_bar, *x):.2f} ms")


if __name__ == "__main__":
    main()
