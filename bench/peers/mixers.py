#!/usr/bin/env python3
"""Mixers Q v + (I - Q) w on one core in PyTorch, eager and compiled, with unit vectors, alpha and factors already computed.

What bench/mixers.cpp's rows of one thread are compared with, [16384,512] in float:

    taskset -c 1 python3 mixers.py
    taskset -c 1 bench_mixers --benchmark_filter='/1/16384'

"with adjoint" is Q v + (I - Q) w and its gradient; apply and vjp of bench/mixers.cpp together.
"""

import statistics
import sys
import time

import torch
import torch.nn.functional as F

ROWS, D = 16384, 512


def householder(u, alpha, v, w):
    d = v - w
    for i in range(u.shape[1]):
        d = d - (alpha[:, i] * (u[:, i] * d).sum(-1)).unsqueeze(-1) * u[:, i]
    return w + d


def dplr(u, alpha, v, w):
    return v - torch.einsum("bi,bid->bd", alpha * torch.einsum("bid,bd->bi", u, v - w), u)


def kronecker(K1, K2, v, w):
    a, b = K1.shape[-1], K2.shape[-1]
    return v - (K1 @ (v - w).view(-1, a, b) @ K2).view(-1, a * b)


def check():
    """Against dense matrices, in double."""
    torch.manual_seed(0)
    D = 12
    v, w = torch.randn(2, 3, D, dtype=torch.double)
    u, alpha = F.normalize(torch.randn(3, 2, D, dtype=torch.double), dim=-1), torch.rand(3, 2, dtype=torch.double)
    K1, K2 = torch.randn(3, 3, 3, dtype=torch.double), torch.randn(3, 4, 4, dtype=torch.double)
    I = torch.eye(D, dtype=torch.double)
    for t in range(3):
        E = [alpha[t, i] * torch.outer(u[t, i], u[t, i]) for i in range(2)]
        for Q, got in (
            ((I - E[1]) @ (I - E[0]), householder(u, alpha, v, w)),
            (I - E[0] - E[1], dplr(u, alpha, v, w)),
            (I - torch.kron(K1[t], K2[t].T.contiguous()), kronecker(K1, K2, v, w)),
        ):
            if (got[t] - (Q @ v[t] + (I - Q) @ w[t])).abs().max() > 1e-12:
                sys.exit("wrong result")


def milliseconds(run):
    times = []
    for i in range(9):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(times[2:])


def measure(name, f, *arrays):
    compiled = torch.compile(f, fullgraph=True, dynamic=False)
    with torch.no_grad():
        eager, alone = milliseconds(lambda: f(*arrays)), milliseconds(lambda: compiled(*arrays))
    leaves = [x.detach().requires_grad_() for x in arrays]
    out_bar = torch.randn_like(arrays[-1])

    def there_and_back():
        for x in leaves:
            x.grad = None
        compiled(*leaves).backward(out_bar)

    print(f"{name}: eager {eager:.1f} ms, compiled {alone:.1f} ms, with adjoint {milliseconds(there_and_back):.1f} ms")


def main():
    check()
    torch.set_num_threads(1)
    print(f"PyTorch {torch.__version__}, one thread, [{ROWS},{D}]")
    v, w = torch.randn(2, ROWS, D)
    for R in 1, 2, 4:
        u, alpha = F.normalize(torch.randn(ROWS, R, D), dim=-1), torch.rand(ROWS, R)
        measure(f"householder, R = {R}", householder, u, alpha, v, w)
        measure(f"dplr, R = {R}", dplr, u, alpha, v, w)
    measure("kronecker, 16 x 32", kronecker, torch.randn(ROWS, 16, 16), torch.randn(ROWS, 32, 32), v, w)


if __name__ == "__main__":
    main()
