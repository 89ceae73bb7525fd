#!/usr/bin/env python3
"""The FP-Mamba block with R Householder reflections in PyTorch, iterated over the whole sequence as the authors do.

What bench/cuda_layer.cu's layers are compared with: one evaluation on [16,2048,2048] and the solve of [512,16,256] to a
tolerance of 1e-4, both with d_in = D, N = 16. --problem FOLDER, what cuda_layer --problem FOLDER has written, makes the solve the
same one: its parameters and sequences, and a result that has to be the same. Every iteration computes the mixer's vectors, b_bar and c_bar of
y_{t-1}, the mixer, the selective scan, and the norm of all tokens, in this order, each as an operation of its own; the
selective scan, states [B,T,N,D] included, is one compiled function on a GPU and a loop elsewhere. Equations and names of
parameters: docs/equations.md.

--dtype bfloat16 is the authors' setting, torch.autocast: x and the result are bf16, products cast their factors and round, and
what the selective scan reads and writes is rounded, as their fused kernel has it. Its states, norms, the mixer's arithmetic and
the iterates between two iterations stay float32, as the parameters do, which are cast whenever they are used. Not as theirs:
delta is rounded after its softplus instead of before it, and the skip D is added in float32. Rounded iterations may circle above
the tolerance: the share of the sequences that converged is printed.
"""

import contextlib
import math
import sys
from pathlib import Path
from typing import NamedTuple

import householder
import measure
import numpy as np
import safetensors.torch
import scan
import torch
import torch.nn.functional as F

EPSILON = 1e-5
# How far solutions to 1e-4 may be apart, relative to the largest number. Rounded products may lead to another solution.
SAME = {torch.float32: 3e-4, torch.bfloat16: math.inf}
FIXTURES = Path(__file__).resolve().parents[2] / "tests" / "fixtures"


def selective_scan(omega, delta, b, c, u, scan=scan.scan):
    """c_t^T H_t of H_t = exp(-exp(omega) * delta_t) * H_{t-1} + b_t (delta_t * u_t)^T: omega [N,D]; b, c [B,T,N];
    delta, u and the result [B,T,D]. States and sums are of omega's type, the result of u's."""
    stored = u.dtype
    delta, b, c, u = (x.to(omega.dtype) for x in (delta, b, c, u))
    decay = torch.exp(-torch.exp(omega) * delta.unsqueeze(2))
    H = scan(decay, b.unsqueeze(3) * (delta * u).unsqueeze(2))
    return (c.unsqueeze(3) * H).sum(2).to(stored)


def selective_scan_loop(omega, delta, b, c, u):
    return selective_scan(omega, delta, b, c, u, scan.scan_loop)


compiled_selective_scan = torch.compile(selective_scan, fullgraph=True, dynamic=False)
SELECTIVE_SCAN = {"cuda": compiled_selective_scan, "cpu": selective_scan_loop}


def mixed(dtype, device):
    """Where products are of dtype, float32 or bfloat16."""
    if dtype == torch.float32:
        return contextlib.nullcontext()
    return torch.autocast(device, dtype, cache_enabled=False)


def shift(y):
    """y_{t-1}, zero before the first token: [B,T,D]."""
    return F.pad(y, (0, 0, 1, -1))


def unit(x):
    return F.normalize(x, dim=-1, eps=EPSILON)


class Given(NamedTuple):
    """What an iteration does not change."""

    u: torch.Tensor  # [B,T,d_in]
    x: torch.Tensor  # [B,T,D]
    delta: torch.Tensor  # [B,T,D]
    b: torch.Tensor  # [B,T,N], x's part of W_b [x; y_{t-1}]
    c: torch.Tensor  # [B,T,N]


class Solution(NamedTuple):
    value: torch.Tensor  # [B,T,d_in]
    y: torch.Tensor  # [B,T,D]
    iterations: torch.Tensor  # [B]
    converged: torch.Tensor  # [B]


class FpMamba:
    """eq. fp-mamba-iteration, app. fixed-point-mamba-parametrization; theta: the library's parameters by their names."""

    def __init__(self, theta, selective_scan, scale=1):
        self.theta, self.selective_scan, self.scale = theta, selective_scan, scale

    def given(self, x_in):
        """x_in [B,T,d_in]."""
        theta = self.theta
        scale = theta["norm.weight"]
        u = F.rms_norm(x_in.to(scale.dtype), x_in.shape[-1:], scale, EPSILON)
        x = u @ theta["x"].T
        delta = F.softplus(F.linear(x, theta["delta"], theta["delta.bias"])).to(x.dtype)
        D = x.shape[-1]
        return Given(u, x, delta, x @ theta["b"][:, :D].T, x @ theta["c"][:, :D].T)

    def f(self, p, y):
        """One iteration: y^l [B,T,D] from p and y = y^{l-1}."""
        theta, D, stored = self.theta, y.shape[-1], p.delta.dtype
        y_before = shift(y)
        s = torch.cat([p.x, y_before], -1)
        alpha = F.linear(s, theta["Q.alpha"], theta["Q.alpha.bias"])
        x_tilde = householder.mix(*householder.prepare(s @ theta["Q.u"].T, alpha, self.scale), p.x, y).to(stored)
        b = unit(p.b + y_before @ theta["b"][:, D:].T).to(stored)
        c = unit(p.c + y_before @ theta["c"][:, D:].T).to(stored)
        read = self.selective_scan(theta["ssm.omega"], p.delta, b, c, x_tilde)
        return F.layer_norm(read + theta["D"] * x_tilde, (D,), theta["y_norm.weight"], theta["y_norm.bias"], EPSILON)

    def read_out(self, x_in, p, y):
        z = torch.cat([p.u, shift(y)], -1) @ self.theta["z"].T
        return x_in + (F.silu(z) * y) @ self.theta["out"].T

    def __call__(self, x_in, tolerance=1e-4, ell_max=100):
        """The library's parallel(): y^0 = 0, undamped, until in every sequence the largest |f(y)_t - y_t| / (|f(y)_t| +
        1e-8) of maxima over channels is below the tolerance. Who is there, or no longer finite, stays as it is, but is
        computed along."""
        p = self.given(x_in)
        y = torch.zeros_like(p.x)
        running = torch.ones(len(y), dtype=torch.bool, device=y.device)
        converged, iterations = torch.zeros_like(running), torch.zeros_like(running, dtype=torch.int)
        for ell in range(ell_max):
            if ell > 0 and not running.any():
                break
            to = self.f(p, y)
            residual = ((to - y).abs().amax(2) / (to.abs().amax(2) + 1e-8)).amax(1)  # [B]
            y = torch.where(running[:, None, None], to, y)
            iterations += running
            converged |= running & (residual < tolerance)
            running &= residual >= tolerance
        return Solution(self.read_out(x_in, p, y), y, iterations, converged)


def start(d_in, D, N, R, device):
    """Parameters as the library starts them, but of other random numbers."""

    def fan_in(rows, columns):
        return (2 * torch.rand(rows, columns, device=device) - 1) / math.sqrt(columns)

    step = 0.001 * 100 ** torch.rand(D, device=device)
    return {
        "norm.weight": torch.ones(d_in, device=device),
        "x": fan_in(D, d_in),
        "Q.u": fan_in(R * D, 2 * D),
        "Q.alpha": fan_in(R, 2 * D),
        "Q.alpha.bias": torch.zeros(R, device=device),
        "delta": fan_in(D, D),
        "delta.bias": step + torch.log(-torch.expm1(-step)),  # where softplus gives `step`
        "b": fan_in(N, 2 * D),
        "c": fan_in(N, 2 * D),
        "ssm.omega": torch.arange(1.0, N + 1, device=device).log()[:, None].repeat(1, D),
        "D": torch.ones(D, device=device),
        "y_norm.weight": torch.ones(D, device=device),
        "y_norm.bias": torch.zeros(D, device=device),
        "z": fan_in(D, d_in + D),
        "out": fan_in(d_in, D),
    }


class Problem(NamedTuple):
    """What bench/cuda_layer.cu has solved."""

    theta: dict
    x: torch.Tensor  # [B,T,d_in]
    value: torch.Tensor  # [B,T,d_in]
    converged: torch.Tensor  # [B]

    @classmethod
    def read(cls, folder, device):
        def array(file):
            return torch.from_numpy(np.load(file)).to(device)

        folder = Path(folder)
        theta = {file.name.removesuffix(".npy"): array(file) for file in folder.glob("theta/*.npy")}
        return cls(theta, *(array(folder / f"{name}.npy") for name in ("x", "value", "converged")))

    @property
    def R(self):
        return len(self.theta["Q.alpha"])

    def agrees(self, name, solved, dtype):
        """In the sequences that converged here and there; the others are where the last iteration has left them."""
        both = solved.converged & self.converged.bool()
        found = f"{solved.converged.sum()} sequences converged, there {self.converged.sum()}, in both {both.sum()}"
        measure.near(f"{name}: {found}, these", solved.value[both], self.value[both], SAME[dtype])


def check_problem(problem, device, dtype):
    with mixed(dtype, device):
        solved = FpMamba(problem.theta, SELECTIVE_SCAN[device])(problem.x.to(dtype))
    problem.agrees(f"fp_mamba, R = {problem.R}, {list(problem.x.shape)} of cuda_layer, {dtype}", solved, dtype)


def check(device):
    """tests/fixtures, by make_blocks.py: computed there token by token."""
    options = {"dtype": torch.double, "device": device}
    B, T, D, N = 2, 13, 5, 3
    arrays = torch.rand(N, D, **options), torch.rand(B, T, D, **options), *torch.randn(2, B, T, N, **options)
    arrays += (torch.randn(B, T, D, **options),)
    associative = compiled_selective_scan if device == "cuda" else selective_scan
    measure.near("selective scan", associative(*arrays), selective_scan_loop(*arrays))

    x = torch.from_numpy(np.load(FIXTURES / "input.npy")).to(device)
    for name, scale in ("fp_mamba", 1), ("fp_mamba_scale_2", 2), ("fp_mamba_authors", 2):
        theta = safetensors.torch.load_file(FIXTURES / f"{name}.safetensors", device)
        expected = safetensors.torch.load_file(FIXTURES / f"{name}.expected.safetensors", device)
        block = FpMamba(theta, SELECTIVE_SCAN[device], scale)
        for ell in 1, 2:
            measure.near(f"{name}, iterate {ell}", block(x, ell_max=ell).y, expected[f"iterate_{ell}"])
        solved = block(x, tolerance=1e-13, ell_max=2000)
        print(f"{name}: {solved.iterations.tolist()} iterations")
        if not solved.converged.all():
            sys.exit(f"{name} has not converged")
        measure.near(f"{name}, fixed point", solved.y, expected["fixed_point"])
        measure.near(f"{name}, output", solved.value, expected["output"])

    theta = start(d_in=24, D=24, N=4, R=2, device=device)
    x = torch.randn(3, 13, 24, device=device)
    expected = FpMamba(theta, selective_scan_loop)(x, ell_max=2).value
    with mixed(torch.bfloat16, device):
        rounded = FpMamba(theta, SELECTIVE_SCAN[device])(x.bfloat16(), ell_max=2).value
    measure.near("fp_mamba in bfloat16, two iterations", rounded, expected, 3e-2)


def report(reflections, compile_f, dtype, problem):
    torch.manual_seed(4)
    bound = 1e-3 if dtype == torch.float32 else 3e-2

    def prepare(theta, x, R):
        block = FpMamba(theta, SELECTIVE_SCAN["cuda"])
        if compile_f:
            block.f = torch.compile(block.f, fullgraph=True, dynamic=False)
        with torch.autocast("cuda", enabled=False):
            expected = FpMamba(theta, selective_scan_loop)(x[:1], ell_max=1).value
        x = x.to(dtype)
        first = block(x, ell_max=1).value[:1]
        measure.near(f"fp_mamba, R = {R}, {list(x.shape)} {dtype}, first sequence", first, expected, bound)
        return block, [x] + [x.clone() for _ in range(measure.rotation(x.nbytes) - 1)]

    def drawn(shape, R):
        return start(d_in=shape[2], D=shape[2], N=16, R=R, device="cuda"), torch.randn(shape, device="cuda")

    def milliseconds(figure, sets, run):
        time = measure.seconds(len(sets), lambda i, _: run(i))
        measure.figure(figure, time)
        return f"{time * 1e3:.2f} ms"

    for R in reflections:
        shape = 16, 2048, 2048
        name = f"fp_mamba, R = {R}, {list(shape)} {dtype}, C = T"
        block, x = prepare(*drawn(shape, R), R)
        time = milliseconds(f"R={R}/iteration", x, lambda i: block(x[i], ell_max=1))
        print(f"{name}, one iteration: {time}", flush=True)
        p = block.given(x[0])
        y = [block.f(p, torch.zeros_like(p.x)) for _ in x]
        print(f"{name}, f alone: {milliseconds(f'R={R}/f', y, lambda i: block.f(p, y[i]))}", flush=True)
        del block, x, p, y

        shape = 512, 16, 256
        same = problem if problem and problem.R == R else None
        block, x = prepare(*((same.theta, same.x) if same else drawn(shape, R)), R)
        solved = block(x[0])
        name = f"fp_mamba, R = {R}, {list(x[0].shape)} {dtype}, C = T"
        if same:
            same.agrees(f"{name}, of cuda_layer", solved, dtype)
        time = milliseconds(f"R={R}/solve", x, lambda i: block(x[i]))
        measure.figure(f"R={R}/solve/converged", solved.converged.double().mean().item())
        print(
            f"{name}{', of cuda_layer' if same else ''}: {time}, {solved.iterations.max()} iterations, "
            f"{solved.iterations.float().mean():.1f} a sequence, "
            f"{solved.converged.float().mean():.4f} of the sequences converged",
            flush=True,
        )


if __name__ == "__main__":
    parser = measure.arguments(__doc__)
    parser.add_argument("--R", type=int, nargs="+", default=[1], help="numbers of reflections to measure")
    parser.add_argument("--compile", action="store_true", help="compile the whole iteration, not the selective scan alone")
    parser.add_argument("--problem", metavar="FOLDER", help="solve what cuda_layer has written, and find the same")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32", help="what sequences and products are in")
    options = parser.parse_args()
    dtype = getattr(torch, options.dtype)

    def report_in(rate):
        problem = Problem.read(options.problem, "cuda") if options.problem else None
        with mixed(dtype, "cuda"):
            report(options.R, options.compile, dtype, problem)

    def check_all(device):
        check(device)
        if options.problem:
            check_problem(Problem.read(options.problem, device), device, dtype)

    with torch.no_grad():
        measure.main(options, check_all, report_in)
