#!/usr/bin/env python3
"""The library against PyTorch and JAX on a CPU: the same arrays, in turns, and the page bench/results/peers-cpu.md.

    cpu.py --library FILE [--only TEXT] [--page FILE]

`cpu`, beside this file, makes what it needs and calls it. Every comparison runs in a process of its own, on one core or two:
results are compared first, and what differs is not timed. Then ours and theirs run by turns, and the median of the ratios of
neighbours is reported: on a busy machine seconds move, ratios stay. Of several ways that PyTorch or JAX have the fastest counts.
"""

import argparse
import json
import math
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAIRS, SECONDS = 15, 20  # of a comparison: as many pairs as fit, at least 3

comparisons = {}


def comparison(*cores):
    """f(library, threads) yields (what, whose, ours, theirs): two functions that are timed by turns. A fraction of what the
    machine can do also says how much of it ours is and how much theirs."""

    def add(f):
        for n in cores:
            comparisons[f"{f.__name__}/{n}"] = f, n
        return f

    return add


def seconds(run):
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def by_turns(ours, theirs):
    """(seconds of ours, of theirs, median of theirs / ours)."""
    ours(), theirs()
    pairs, begin = [], time.perf_counter()
    while len(pairs) < PAIRS and (len(pairs) < 3 or time.perf_counter() - begin < SECONDS):
        pairs.append((seconds(ours), seconds(theirs)))
    return (*(statistics.median(x) for x in zip(*pairs)), statistics.median(b / a for a, b in pairs))


def same(name, got, expected, bound, share=1.0):
    """Ends the program unless that share of the rows [rows,...] is within the bound, relative to the largest number."""
    import numpy as np

    got, expected = np.asarray(got), np.asarray(expected)
    if got.shape != expected.shape:
        sys.exit(f"{name}: shapes {got.shape} and {expected.shape}")
    apart = np.abs(got - expected).reshape(len(got), -1).max(1) / np.abs(expected).max()
    if not (apart <= bound).mean() >= share:
        sys.exit(f"{name}: {(apart <= bound).mean():.3f} of the rows are within {bound:.0e}, the worst {apart.max():.1e} apart")


def draw(problem, **of):
    """Fills arrays with uniform numbers between the bounds."""
    import numpy as np

    random = np.random.default_rng(0)
    for name, (low, high) in of.items():
        problem[name][...] = random.uniform(low, high, problem[name].shape)


def tokens_first(x):
    import numpy as np

    return np.ascontiguousarray(np.swapaxes(x, 0, 1))


def jitted(f, *arrays):
    """A function without arguments, which waits for its result, and the result."""
    import jax

    f, arrays = jax.jit(f), [jax.device_put(x) for x in arrays]
    return lambda: jax.block_until_ready(f(*arrays)), jax.block_until_ready(f(*arrays))


def make(library, kind, sizes, threads):
    import ours

    return ours.Problem(ours.Library(library), kind, sizes, threads)


@comparison(1, 2)
def diagonal_scan(library, threads):
    import in_jax
    import in_torch
    import torch

    torch.set_num_threads(threads)
    B, T, D = 16, 2048, 512
    p = make(library, "scan", (B, T, D), threads)
    draw(p, **{"lambda": (0.9, 1), "u": (0, 1), "h_bar": (-1, 1)})
    what = f"scan [{B},{T},{D}]"

    def both():
        p.run("forward"), p.run("backward")

    both()
    decay, u, h_bar = (tokens_first(p[name]) for name in ("lambda", "u", "h_bar"))
    forward, h = jitted(in_jax.scan, decay, u)
    there_and_back, (_, bars) = jitted(in_jax.with_backward(in_jax.scan), h_bar, decay, u)
    same(what, tokens_first(p["h"]), h, 1e-5)
    for name, got in zip(("lambda_bar", "u_bar"), bars):
        same(f"{what}, {name}", tokens_first(p[name]), got, 1e-4)
    yield what, "JAX lax.scan", lambda: p.run("forward"), forward
    yield f"{what}, with backward", "JAX lax.scan", both, there_and_back
    del forward, there_and_back, h, bars

    decay, u, h_bar = (torch.from_numpy(x) for x in (decay, u, h_bar))
    h, g, decay_bar = torch.empty_like(u), torch.empty_like(u), torch.empty_like(u)

    def torch_both():
        in_torch.scan(decay, u, h)
        in_torch.scan_back(decay, h, h_bar, g, decay_bar)

    torch_both()
    same(what, tokens_first(p["h"]), h, 1e-5)
    same(f"{what}, lambda_bar", tokens_first(p["lambda_bar"]), decay_bar, 1e-4)
    same(f"{what}, u_bar", tokens_first(p["u_bar"]), g, 1e-4)
    yield what, "PyTorch, loop", lambda: p.run("forward"), lambda: in_torch.scan(decay, u, h)
    yield f"{what}, with backward", "PyTorch, loop", both, torch_both
    numbers = 4 * B * T * D
    yield f"{what}: 3 B T D numbers", "of triad", lambda: p.run("forward"), lambda: p.run("triad"), 3 * numbers, 3 * numbers
    yield f"{what}, backward: 5 B T D numbers", "of triad", lambda: p.run("backward"), lambda: p.run("triad"), 5 * numbers, 3 * numbers


@comparison(2)
def long_scan(library, threads):
    import in_jax

    for B, T, D in (1, 32768, 64), (1, 1048576, 1):
        p = make(library, "scan", (B, T, D), threads)
        draw(p, **{"lambda": (0.9, 1), "u": (0, 1)})
        p.run("forward")
        for name, f in ("lax.scan", in_jax.scan), ("associative_scan", in_jax.associative_scan):
            theirs, h = jitted(f, tokens_first(p["lambda"]), tokens_first(p["u"]))
            same(f"scan [{B},{T},{D}]", tokens_first(p["h"]), h, 1e-4)
            yield f"scan [{B},{T},{D}]", f"JAX {name}", lambda: p.run("forward"), theirs


@comparison(1)
def selective_scan(library, threads):
    import functools

    import in_jax
    import numpy as np

    B, T, D, N = 8, 512, 512, 16
    p = make(library, "selective_scan", (B, T, D, N), threads)
    draw(p, delta=(0, 0.1), omega=(0, 1), b=(0, 1), c=(0, 1), u=(-1, 1), y_bar=(-1, 1))
    what = f"selective scan [{B},{T},{D}], N = {N}"

    def both():
        p.run("forward"), p.run("clear"), p.run("backward")

    both()
    x = [tokens_first(p[name]) if name != "omega" else np.array(p[name]) for name in ("delta", "omega", "b", "c", "u")]
    forward, y = jitted(functools.partial(in_jax.selective_scan, checkpointed=False), *x)
    same(what, tokens_first(p["y"]), y, 1e-5)
    yield what, "JAX lax.scan", lambda: p.run("forward"), forward
    for way, checkpointed in ("checkpointed", True), ("all states kept", False):
        f = in_jax.with_backward(functools.partial(in_jax.selective_scan, checkpointed=checkpointed))
        theirs, (_, bars) = jitted(f, tokens_first(p["y_bar"]), *x)
        for name, got in zip(("delta_bar", "omega_bar", "b_bar", "c_bar", "u_bar"), bars):
            mine = p[name] if name == "omega_bar" else tokens_first(p[name])
            same(f"{what}, {name}", mine, got, 1e-4)
        yield f"{what}, with backward", f"JAX lax.scan, {way}", both, theirs
    of = B * T * D * N
    yield f"{what}: B T D N exponentials", "of Eigen's exp", lambda: p.run("forward"), lambda: p.run("exp"), of, of
    yield f"{what}, backward: 2 B T D N exponentials", "of Eigen's exp", lambda: p.run("backward"), lambda: p.run("exp"), 2 * of, of


def solve_of(library, threads, B, T, D, C):
    import numpy as np

    p = make(library, "solve", (B, T, D, C, 100), threads)
    p["x_in"][...] = np.random.default_rng(1).standard_normal((B, T, D))
    p.run("solve"), p.run("fetch")
    return p, {name: p[name].copy() for name in p.names if name not in ("x_in", "value")}


@comparison(1)
def fp_mamba_at_once(library, threads):
    import in_jax
    import in_torch
    import torch

    torch.set_num_threads(threads)
    B, T, D = 128, 16, 64
    p, theta = solve_of(library, threads, B, T, D, 0)
    what, ours = f"FP-Mamba solve [{B},{T},{D}], C = T", lambda: p.run("solve")
    theirs, value = jitted(lambda theta, x: in_jax.solve_at_once(theta, x), theta, tokens_first(p["x_in"]))
    share = p.run("converged") - 0.02  # of the tokens; who circles until 100 iterations are over is somewhere
    same(what, p["value"], tokens_first(value), 1e-3, share)
    what += f" ({p.run('converged'):.2f} of it in 100 iterations)"
    yield what, "JAX while_loop", ours, theirs
    with torch.inference_mode():
        block = in_torch.solver({name: torch.from_numpy(x) for name, x in theta.items()})
        x = torch.from_numpy(p["x_in"].copy())
        same(what, p["value"], block(x).value, 1e-3, share)
        yield what, "PyTorch, an iteration compiled", ours, lambda: block(x)
    p, _ = solve_of(library, threads, B, T, D, 1)
    yield f"{what}; ours C = 1", "PyTorch, an iteration compiled", lambda: p.run("solve"), lambda: block(x)


@comparison(1)
def fp_mamba_by_token(library, threads):
    import in_jax

    for B in 128, 1:
        T, D = 16, 64
        p, theta = solve_of(library, threads, B, T, D, 1)
        what = f"FP-Mamba solve [{B},{T},{D}], C = 1"
        theirs, value = jitted(lambda theta, x: in_jax.solve_by_token(theta, x), theta, tokens_first(p["x_in"]))
        same(what, p["value"], tokens_first(value), 1e-3, 0.99)
        yield what, "JAX, while_loop in lax.scan", lambda: p.run("solve"), theirs


def training(library, threads, kind, trainer, sizes, what, whose, same_losses=True):
    """Of twenty steps on the same data the first five have to have the same losses, where both compute the same."""
    import numpy as np
    import torch

    torch.set_num_threads(threads)
    p = make(library, kind, sizes, threads)
    theirs = trainer(p)

    def batch():
        p.run("batch")
        return torch.from_numpy(p["tokens"].astype(np.int64)), torch.from_numpy(p["targets"].astype(np.int64))

    for i in range(20):
        data = batch()
        a, b = p.run("step"), theirs.step(*data).item()
        if same_losses and i < 5 and not abs(a - b) < 1e-3 * a:
            sys.exit(f"{what}: loss {a} and {b} in step {i + 1}")
    yield what, whose, lambda: p.run("step"), lambda: theirs.step(*data)


@comparison(1)
def training_step(library, threads):
    import in_torch

    B, T = 128, 16
    what = f"FP-Mamba training step [{B},{T},64], N = 16, R = 4"
    theirs = "PyTorch, compiled, C = T, one step of the adjoint"
    yield from training(library, threads, "train_fp_mamba", in_torch.FpMambaTrainer, (B, T, 0, 1), f"{what}, C = T, one step", theirs)
    yield from training(library, threads, "train_fp_mamba", in_torch.FpMambaTrainer, (B, T, 1, 0), f"{what}; ours C = 1, exact", theirs, False)
    yield from training(library, threads, "train_lstm", in_torch.LstmTrainer, (B, T, 1, 0), f"LSTM training step [{B},{T},64]", "torch.nn.LSTM")


@comparison(1)
def streamed_token(library, threads):
    for D in 64, 256:
        p = make(library, "stream", (D,), threads)
        yield f"256 tokens of one sequence, D = {D}, one by one", "of reading all weights", lambda: p.run("tokens"), lambda: p.run("weights"), 1, 1


LENGTHS = [2**k for k in range(10, 19, 2)]


def one_length(library, T, C):
    """Seconds and bytes of a solve of [1,T,64], the program and what it loads not counted."""
    make(library, "solve", (1, 16, 64, C, 100), 1).run("solve")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    p = make(library, "solve", (1, T, 64, C, 100), 1)
    draw(p, x_in=(-1, 1))
    p.run("solve")
    times = [seconds(lambda: p.run("solve")) for _ in range(5)]
    return min(times), 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


def exponent(x, y):
    """e of y = a x^e."""
    return statistics.linear_regression([math.log(i) for i in x], [math.log(i) for i in y]).slope


def in_process(arguments, cores):
    """What a run of this program on these cores prints."""
    environment = os.environ | {"OMP_NUM_THREADS": str(cores), "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}
    if cores == 1:
        environment["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    own = sorted(os.sched_getaffinity(0))[:cores]
    if len(own) < cores:
        return None
    done = subprocess.run(
        [sys.executable, __file__, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, own),
    )
    if done.returncode:
        sys.exit(f"cpu.py {' '.join(arguments)} ended with {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def measure(name, library):
    f, threads = comparisons[name]
    for what, whose, ours, theirs, *amounts in f(library, threads):
        a, b, ratio = by_turns(ours, theirs)
        if amounts:  # a fraction of what the machine can do
            ratio *= amounts[0] / amounts[1]
        row = {"what": what, "whose": whose, "cores": threads, "ours": a, "theirs": b, "ratio": ratio, "is_fraction": bool(amounts)}
        print(json.dumps(row), flush=True)


def milliseconds(x):
    return f"{1e3 * x:.3g}"


def page(rows, lengths, versions, commit):
    text = f"""# CPU, beside PyTorch and JAX

Written by `bench/peers/cpu` at commit `{commit}` on {versions}. Ours and theirs run by turns in one process, on as many cores as a row
says. Results were compared first, but where a row says that ours does something else. The ratio is the median over neighbours of theirs by ours: above 1 the library is faster. Of PyTorch and
JAX all ways that were tried are here. Milliseconds are those of this machine; in a row of fractions, "theirs" is what the machine does at best.

| what | cores | against | ours, ms | theirs, ms | ratio |
|---|---:|---|---:|---:|---:|
"""
    for row in (r for r in rows if not r["is_fraction"]):
        text += f"| {row['what']} | {row['cores']} | {row['whose']} | {milliseconds(row['ours'])} | {milliseconds(row['theirs'])} | {row['ratio']:.1f} |\n"
    text += "\n| what | cores | fraction | |\n|---|---:|---:|---|\n"
    for row in (r for r in rows if r["is_fraction"]):
        text += f"| {row['what']} | {row['cores']} | {row['ratio']:.2f} | {row['whose']} |\n"
    if lengths:
        text += "\n## Length\n\nA solve of [1,T,64] by FP-Mamba, R = 4, N = 16, one core: best of five, and the memory that it adds to a "
        text += "process, whose exponent is that of the last three.\n\n"
        text += "| C | " + " | ".join(f"T = {T:,}" for T in LENGTHS) + " | exponent |\n|---|" + "---:|" * (len(LENGTHS) + 1) + "\n"
        for C, of in lengths.items():
            times, sizes = zip(*of)
            text += f"| {C}, ms | " + " | ".join(map(milliseconds, times)) + f" | {exponent(LENGTHS, times):.2f} |\n"
            text += f"| {C}, MiB | " + " | ".join(f"{x / 2**20:.1f}" for x in sizes) + f" | {exponent(LENGTHS[2:], sizes[2:]):.2f} |\n"
    return text


def said(*command):
    return subprocess.run(command, capture_output=True, text=True, cwd=HERE).stdout.strip()


def processor():
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), platform.processor())


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--library", required=True, help="the shared object of ours.cpp")
    parser.add_argument("--only", default="", help="comparisons whose names contain this text; no page is written")
    parser.add_argument("--page", help="the file that is written, when all is measured")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--length", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        return measure(options.measure, options.library)
    if options.length:
        time_of, size = one_length(options.library, *options.length)
        return print(json.dumps({"seconds": time_of, "bytes": size}))

    rows = []
    for name, (_, cores) in comparisons.items():
        if options.only not in name:
            continue
        got = in_process(["--library", options.library, "--measure", name], cores)
        if got is None:
            print(f"{name}: not measured, there are fewer cores", file=sys.stderr)
            continue
        for row in got:
            print(f"{row['what']}, {row['cores']} core(s): {row['ratio']:.2f} {row['whose']}, {1e3 * row['ours']:.3g} ms", flush=True)
        rows += got
    lengths = {}
    if options.only in "lengths":
        for C in 1, 16:
            of = [in_process(["--library", options.library, "--length", str(T), str(C)], 1)[0] for T in LENGTHS]
            lengths[C] = [(x["seconds"], x["bytes"]) for x in of]
            print(f"lengths, C = {C}: {lengths[C]}", flush=True)
    if options.page and not options.only:
        import jax
        import torch

        versions = f"{processor()}, PyTorch {torch.__version__}, JAX {jax.__version__}, Python {platform.python_version()}"
        Path(options.page).write_text(page(rows, lengths, versions, said("git", "describe", "--always", "--dirty")))
        print(f"wrote {options.page}")


if __name__ == "__main__":
    main()
