"""Times on a GPU by its own clock, as bench/cuda_measure.hpp takes them, and what the scripts beside this one share."""

import argparse
import os
import statistics
import sys

import torch

WARM_UP, RUNS = 5, 41
OUT_OF_CACHE = 512 << 20  # bytes
figures = None  # the file that --figures names, while main measures


def seconds(sets, run, prepare=lambda i: None):
    """The median of single runs. Run i is run(i % sets, prepare(i % sets)); preparing is not counted."""
    times = []
    for i in range(WARM_UP + RUNS):
        if i == WARM_UP:
            torch.cuda._sleep(4_000_000)  # clocks in which the host says what comes next, as keep_busy() of cuda_measure.hpp
        ready = prepare(i % sets)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run(i % sets, ready)
        end.record()
        times.append((begin, end))
    torch.cuda.synchronize()
    return statistics.median(begin.elapsed_time(end) * 1e-3 for begin, end in times[WARM_UP:])


def rotation(size):
    """So many sets of `size` bytes that none is in a cache when its turn comes again."""
    return min(max(OUT_OF_CACHE // max(size, 1) + 1, 2), 64)


def copy_rate():
    """Device to device, bytes read and written per second."""
    x = [torch.zeros(64 << 20, device="cuda") for _ in range(4)]
    return 2 * x[0].nbytes / seconds(2, lambda i, _: x[2 * i + 1].copy_(x[2 * i]))


def figure(name, value):
    """A line of --figures: seconds unless the name ends with what else it is. The names are ../report_gpu.py's."""
    if figures:
        print(name, value, file=figures, flush=True)


def line(name, time, size, rate):
    """`size` is the bytes that have to be moved at least; `rate` is copy_rate()."""
    print(f"{name}: {time * 1e6:.1f} us, {size / time * 1e-9:.1f} GB/s, {size / time / rate:.3f} of copy", flush=True)


def near(name, got, expected, bound=1e-10):
    """Prints the largest difference over the largest expected number; ends the program where it is above the bound."""
    error = ((got - expected).abs().max() / expected.abs().max()).item()
    right = got.shape == expected.shape and error <= bound  # NaN is not right
    print(f"{name}: {error:.1e}" + ("" if right else f", above {bound:.0e}"), flush=True)
    if not right:
        sys.exit(1)


def arguments(doc):
    parser = argparse.ArgumentParser(description=doc.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare results on the CPU, in double; measure nothing")
    parser.add_argument("--figures", metavar="FILE", help="also write what is measured as lines 'name value'")
    return parser


def main(options, check, report):
    """--check: check("cpu"). Otherwise, on a GPU, check("cuda") and report(): what is wrong is not timed."""
    global figures
    if options.check:
        check("cpu")
    elif not torch.cuda.is_available():
        print("skipped: PyTorch finds no GPU; --check runs without one")
        sys.exit(77)
    else:
        torch.set_float32_matmul_precision("highest")  # no TF32, as in the library unless it is asked for
        check("cuda")
        rate = copy_rate()
        print(f"{torch.cuda.get_device_name()}; PyTorch {torch.__version__}; copy {rate * 1e-9:.0f} GB/s")
        with open(options.figures or os.devnull, "w") as figures:
            figure("gpu", torch.cuda.get_device_name())
            report(rate)
