#!/usr/bin/env python3
"""The Householder mixer Q v + (I - Q) w in PyTorch, eager and compiled.

What bench/cuda_layer.cu's mixer is compared with: R = 1, 2, 4 reflections, 16 * 2048 rows of D = 2048 channels, float32, with
unit vectors and alpha already computed.
"""

import measure
import torch
import torch.nn.functional as F

ROWS, D = 16 * 2048, 2048
EPSILON = 1e-5


def prepare(raw_u, raw_alpha, scale=1):
    """sec. parametrization-Q-Lambda: raw_u [...,R*D] -> u_bar [...,R,D] of unit length; raw_alpha -> alpha [...,R]."""
    R = raw_alpha.shape[-1]
    u = F.silu(raw_u).unflatten(-1, (R, -1))
    return F.normalize(u, dim=-1, eps=EPSILON), scale * torch.sigmoid(raw_alpha)


def mix(u_bar, alpha, v, w):
    """Q v + (I - Q) w = w + Q (v - w), reflection 0 first: u_bar [...,R,D], alpha [...,R], v, w, out [...,D]."""
    d = v - w
    for u, a in zip(u_bar.unbind(-2), alpha.unbind(-1)):
        d = d - (a * (u * d).sum(-1)).unsqueeze(-1) * u
    return w + d


def random_arrays(rows, R, D, **options):
    u_bar, alpha = prepare(torch.randn(rows, R * D, **options), 0.1 * torch.randn(rows, R, **options))
    return u_bar, alpha, torch.randn(rows, D, **options), torch.randn(rows, D, **options)


def check(device):
    rows, D = 5, 7
    for R in 1, 2, 4:
        u_bar, alpha, v, w = random_arrays(rows, R, D, dtype=torch.double, device=device)
        expected = torch.empty_like(v)
        I = torch.eye(D, dtype=v.dtype, device=device)
        for row in range(rows):
            Q = I
            for i in range(R):
                Q = (I - alpha[row, i] * torch.outer(u_bar[row, i], u_bar[row, i])) @ Q
            expected[row] = Q @ v[row] + (I - Q) @ w[row]
        measure.near(f"householder, R = {R}", mix(u_bar, alpha, v, w), expected)


def report(rate):
    compiled = torch.compile(mix, fullgraph=True, dynamic=False)
    for R in 1, 2, 4:
        size = 4 * ROWS * ((R + 3) * D + R)  # u_bar, alpha, v, w; out
        sets = [random_arrays(ROWS, R, D, device="cuda") for _ in range(measure.rotation(size))]
        measure.near(f"householder, R = {R}, compiled", compiled(*sets[0]), mix(*sets[0]), 1e-5)
        for name, f in ("eager", mix), ("compiled", compiled):
            time = measure.seconds(len(sets), lambda i, _: f(*sets[i]))
            measure.line(f"householder, R = {R}, apply [{ROWS},{D}], {name}", time, size, rate)
            measure.figure(f"R={R}/{name}", time)


if __name__ == "__main__":
    with torch.no_grad():
        measure.main(measure.arguments(__doc__).parse_args(), check, report)
