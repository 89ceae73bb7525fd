#!/usr/bin/env python3
"""The diagonal scan h_t = lambda_t * h_{t-1} + u_t by PyTorch's associative_scan, compiled.

What bench/cuda_scan.cu is compared with: [16,2048,2048], float32 and bfloat16. Backward is the adjoint of docs/equations.md, by
the same scan in reverse; PyTorch's own differentiation of the operation is measured besides, if its result is right.
"""

import measure
import torch
from torch._higher_order_ops.associative_scan import associative_scan

SHAPE = 16, 2048, 2048  # B, T, D


def scan_loop(decay, u):
    """eq. intro_rnn, one token after the other: decay (the paper's lambda), u, h [B,T,...]; h_{-1} = 0."""
    h, hs = torch.zeros_like(u[:, 0]), []
    for t in range(u.shape[1]):
        h = decay[:, t] * h + u[:, t]
        hs.append(h)
    return torch.stack(hs, 1)


def then(earlier, later):
    """(a, b) stands for h -> a h + b: two stretches of time, one after the other."""
    (a, b), (a_later, b_later) = earlier, later
    return a_later * a, a_later * b + b_later


def scan(decay, u, reverse=False):
    """scan_loop's result by an associative scan: pointwise where a GPU's code is generated, generic elsewhere."""
    mode = "pointwise" if u.is_cuda else "generic"
    return associative_scan(then, (decay, u), dim=1, reverse=reverse, combine_mode=mode)[1]


def scan_back(decay, h, h_bar):
    """(lambda_bar, u_bar): g_t = h_bar_t + lambda_{t+1} * g_{t+1} is u_bar_t, and g_t * h_{t-1} is lambda_bar_t."""
    none = torch.zeros_like(h[:, :1])
    g = scan(torch.cat([decay[:, 1:], none], 1), h_bar, reverse=True)
    return g * torch.cat([none, h[:, :-1]], 1), g


compiled_scan = torch.compile(scan, fullgraph=True, dynamic=False)
compiled_scan_back = torch.compile(scan_back, fullgraph=True, dynamic=False)


def random_arrays(shape, **options):
    """lambda in [0.9,1), u in [0,1): as in cuda_scan.cu."""
    return 0.9 + 0.1 * torch.rand(shape, **options), torch.rand(shape, **options)


def autograd(f, decay, u, h_bar):
    """(lambda_bar, u_bar) of <h_bar, f(lambda, u)>."""
    decay, u = (x.detach().requires_grad_() for x in (decay, u))
    return torch.autograd.grad(f(decay, u), (decay, u), h_bar)


def what_is_wrong_with_autograd(device):
    """None where this PyTorch differentiates the pointwise associative_scan as it differentiates the loop."""

    def pointwise(decay, u):
        return associative_scan(then, (decay, u), dim=1, combine_mode="pointwise")[1]

    options = {"dtype": torch.double, "device": device}
    arrays = *random_arrays((2, 13, 5), **options), torch.randn(2, 13, 5, **options)
    try:
        got = autograd(compiled_scan if device == "cuda" else pointwise, *arrays)
    except Exception as e:  # a prototype, which refuses in more than one way
        return f"{type(e).__name__}: {str(e).strip().partition(chr(10))[0]}"
    for name, a, b in zip(("lambda_bar", "u_bar"), got, autograd(scan_loop, *arrays)):
        error = ((a - b).abs().max() / b.abs().max()).item()
        if not error <= 1e-10:
            return f"its {name} is off by {error:.1e} of the largest"
    return None


def check(device):
    on_gpu = device == "cuda"
    forward, back = (compiled_scan, compiled_scan_back) if on_gpu else (scan, scan_back)
    for shape in [(1, 2, 1), (2, 13, 5), (3, 64, 2, 7)]:
        decay, u = random_arrays(shape, dtype=torch.double, device=device)
        h_bar = torch.randn(shape, dtype=torch.double, device=device)
        h = forward(decay, u)
        measure.near(f"scan {list(shape)}, h", h, scan_loop(decay, u))
        for name, a, b in zip(("lambda_bar", "u_bar"), back(decay, h, h_bar), autograd(scan_loop, decay, u, h_bar)):
            measure.near(f"scan {list(shape)}, {name}", a, b)
    print(f"scan, PyTorch's own backward: {what_is_wrong_with_autograd(device) or 'right'}")


def report(rate):
    has_autograd = what_is_wrong_with_autograd("cuda") is None
    for dtype in torch.float32, torch.bfloat16:
        name = f"scan {list(SHAPE)} {dtype}"
        array = torch.Size(SHAPE).numel() * dtype.itemsize
        sets = [random_arrays(SHAPE, dtype=dtype, device="cuda") for _ in range(measure.rotation(5 * array))]
        n, h_bar = len(sets), torch.rand(SHAPE, dtype=dtype, device="cuda")

        def some(x):  # in double what has been rounded to dtype
            return x[:1, :, :64].double()

        hs = [compiled_scan(*x) for x in sets]
        bound = 1e-3 if dtype == torch.float32 else 3e-2
        measure.near(f"{name}, h", some(hs[0]), scan_loop(*map(some, sets[0])), bound)
        expected = scan_back(*map(some, (sets[0][0], hs[0], h_bar)))
        for x, got, right in zip(("lambda_bar", "u_bar"), compiled_scan_back(sets[0][0], hs[0], h_bar), expected):
            measure.near(f"{name}, {x}", some(got), right, bound)

        stored = str(dtype).removeprefix("torch.")
        time = measure.seconds(n, lambda i, _: compiled_scan(*sets[i]))
        measure.line(f"{name}, forward", time, 3 * array, rate)
        measure.figure(f"{stored}/forward", time)
        time = measure.seconds(n, lambda i, _: compiled_scan_back(sets[i][0], hs[i], h_bar))
        measure.line(f"{name}, backward, the adjoint as a scan", time, 5 * array, rate)
        measure.figure(f"{stored}/backward", time)
        if not has_autograd:
            print(f"{name}, backward, PyTorch's own: not measured, see above")
            continue
        del hs
        for x in sets:
            for y in x:
                y.requires_grad_()
        time = measure.seconds(
            n, lambda i, h: torch.autograd.grad(h, sets[i], h_bar), prepare=lambda i: compiled_scan(*sets[i])
        )
        measure.line(f"{name}, backward, PyTorch's own", time, 5 * array, rate)


if __name__ == "__main__":
    measure.main(measure.arguments(__doc__).parse_args(), check, report)
