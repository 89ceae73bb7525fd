#!/usr/bin/env python3
"""Measures what is to be reached on a GPU, and writes bench/results/GPU.md.

Runs cuda_scan, cuda_selective_scan and cuda_layer of the folder --programs and, where --python has PyTorch, the scripts of
bench/peers. Each writes its figures, lines "name value", into the file that --figures names; what cuda_layer solves it also writes
into the folder that --problem names, for fp_mamba.py to solve the same. What a script is needed for that
cannot run here, or fails, is said to be not measured; where one fails, the status is 1. Where there is no GPU, a program of the
library fails or finds a wrong result, or a figure is missing, nothing is written, and the status is 1.
"""

import argparse
import datetime
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple, Optional

HERE = Path(__file__).resolve().parent
PROGRAMS = "cuda_scan", "cuda_selective_scan", "cuda_layer"
PEERS = {  # what they import
    "scan.py": "torch",
    "householder.py": "torch",
    "fp_mamba.py": "torch, numpy, safetensors.torch",
    "fp_mamba.py --dtype bfloat16": "torch, numpy, safetensors.torch",
}
PROBLEM = "cuda_layer", "fp_mamba.py"  # given --problem FOLDER: the first writes what the other reads
SKIPPED = 77


class Claim(NamedTuple):
    """A row of the table. Figures are named "program: figure"."""

    what: str
    bound: float  # at least
    of: str
    over: Optional[str] = None  # what `of` is divided by
    most: bool = False  # the bound is seconds at most
    as_many: tuple = ()  # two shares of sequences that converged: the first is to be no smaller


def claims():
    forms = "[16,2048,2048]"
    for kind, bound in ("scan", 0.9), ("scan_back", 0.88):
        for stored in "float", "bf16":
            yield Claim(f"{kind} {forms}, {stored}: of copy", bound, f"cuda_scan: {forms}/{stored}/{kind}/of_copy")
    for kind, by_key in ("scan", "by_key"), ("scan_back", "by_key_back"):
        for stored in "float", "bf16":
            figure = f"cuda_scan: {forms}/{stored}/"
            yield Claim(f"{kind} {forms}, {stored}: cub::DeviceScan by key", 1.5, figure + by_key, figure + kind)
    for kind, way in ("scan", "forward"), ("scan_back", "backward"):
        for stored, torch_type in ("float", "float32"), ("bf16", "bfloat16"):
            what = f"{kind} {forms}, {stored}: compiled associative_scan"
            yield Claim(what, 2, f"scan.py: {torch_type}/{way}", f"cuda_scan: {forms}/{stored}/{kind}")
    for columns in 1, 16, 132:
        figure = f"cuda_scan: [1,1048576,{columns}]/float/"
        yield Claim(f"scan [1,2^20,{columns}], float: a block for each column", 3, figure + "block_each", figure + "scan")
    what = f"selective_scan {forms}, N = 16, bf16: of the larger of copy and exponentials"
    yield Claim(what, 0.75, f"cuda_selective_scan: {forms}/bf16/selective_scan/of_bound")
    rows = "[32768,2048]"
    for R in 1, 2, 4:
        what = f"Householder apply {rows}, R = {R}: of copy"
        yield Claim(what, 0.85, f"cuda_layer: householder_apply<{R}>/{rows}/of_copy")
    for R in 1, 2, 4:
        what = f"Householder apply {rows}, R = {R}: eager PyTorch"
        yield Claim(what, 4, f"householder.py: R={R}/eager", f"cuda_layer: householder_apply<{R}>/{rows}")
    what = f"one FP-Mamba-H iteration {forms}, R = 1, bf16: the transcription"
    yield Claim(what, 3, "fp_mamba.py --dtype bfloat16: R=1/iteration", "cuda_layer: iteration/bf16")
    what = "whole solve [512,16,256] to 1e-4, best schedule: the transcription's C = T"
    both = "cuda_layer: solve/best/converged", "fp_mamba.py: R=1/solve/converged"
    yield Claim(what, 10, "fp_mamba.py: R=1/solve", "cuda_layer: solve/best", as_many=both)
    for how, bound in ("TF32", 6e-3), ("float", 12e-3):
        what = f"training step, batch 512, T = 16, d_model 512, D = 1024, N = 16, R = 1, {how}"
        yield Claim(what, bound, f"cuda_layer: training_step_fp_mamba<1>/{how}", most=True)


class Failed(Exception):
    pass


def said(*command, **options):
    """What a command prints, or Failed with its last words."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, **options)
    except OSError as e:
        raise Failed(f"{command[0]}: {e.strerror}") from e
    if done.returncode:
        raise Failed(last_line(done.stderr) or last_line(done.stdout) or f"{command[0]} ended with {done.returncode}")
    return done.stdout.strip()


def last_line(text):
    return text.strip().rpartition("\n")[2]


def driver():
    try:
        return said("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").splitlines()[0]
    except (Failed, IndexError) as e:
        raise Failed(f"there is no GPU ({e})") from e


def commit():
    try:
        name = said("git", "-C", str(HERE), "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12")
    except Failed as e:
        raise Failed(f"{e}; outside of git --commit says what is measured") from e
    clean = name.removesuffix("-dirty")
    return f"`{clean}`" + ("" if clean == name else " with changes that are not committed")


class Run(NamedTuple):
    status: int
    output: str
    figures: dict


def run(name, command, folder):
    """Shows the program's output as it comes."""
    print(f"-- {name}", flush=True)
    file, output = Path(folder, "figures"), []
    file.write_text("")
    command = [*command, "--figures", str(file)]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as program:
            for line in program.stdout:
                print(line, end="", flush=True)
                output.append(line)
    except OSError as e:
        raise Failed(f"{command[0]}: {e.strerror}") from e
    pairs = (line.partition(" ") for line in file.read_text().splitlines())
    return Run(program.returncode, "".join(output), {key: value for key, _, value in pairs})


def measure(options, folder):
    """(runs by name, why others could not be measured by name, which of these failed)"""
    commands = {name: [str(Path(options.programs, name))] for name in PROGRAMS}
    missing = {}
    for name, modules in PEERS.items():
        script, *arguments = name.split()
        try:
            said(options.python, "-c", f"import {modules}")
            commands[name] = [options.python, str(Path(options.peers, script)), *arguments]
        except Failed as e:
            missing[name] = str(e)
    for name, command in commands.items():
        if name.split()[0] in PROBLEM:
            command += ["--problem", str(Path(folder, "problem"))]
    runs, wrong, failed = {}, [], []
    for name, command in commands.items():
        done = run(name, command, folder)
        if done.status == SKIPPED and name in PEERS:
            missing[name] = last_line(done.output)
        elif done.status:
            words = f"{name} ended with {done.status}: {last_line(done.output)}"
            (failed if name in PEERS else wrong).append(words)
            missing[name] = words
        else:
            runs[name] = done
    if wrong:
        raise Failed("; ".join(wrong + failed))
    return runs, missing, failed


def row(claim, runs, missing):
    """(a line of the table, whether the claim holds, None where it is not measured)"""

    def figure(name):
        program, _, key = name.partition(": ")
        text = runs[program].figures.get(key)
        try:
            value = float(text)
        except (TypeError, ValueError):
            value = math.nan
        if not (math.isfinite(value) and value >= 0):
            raise Failed(f"{program} has written {text or 'nothing'} for the figure {key}")
        return value

    def line(bound, measured, reached):
        return f"| {claim.what} | {bound} | {measured} | {reached} |"

    def text(value, form):
        if claim.most:
            return f"{value * 1e3:{form}} ms"
        return f"{value:{form}}" + ("×" if claim.over else "")

    bound = ("at most " if claim.most else "") + text(claim.bound, "g")
    for name in filter(None, (claim.of, claim.over)):
        why = missing.get(name.partition(": ")[0])
        if why:
            return line(bound, "", f"not measured: {why.replace('|', '/')}"), None
    value = figure(claim.of)
    if claim.over:
        value /= figure(claim.over) or math.nan
    ours, theirs = map(figure, claim.as_many) if claim.as_many else (1, 1)
    reached = (value <= claim.bound if claim.most else value >= claim.bound) and ours >= theirs
    words = "yes" if reached else "no"
    if ours < theirs:
        words += f": {ours:.4f} of the sequences converged, there {theirs:.4f}"
    return line(bound, text(value, ".4g"), words), reached


def page(runs, missing, driver, commit, torch):
    """(the GPU's name, the page, in words how many of its claims hold)"""
    gpus = sorted({done.figures.get("gpu", "") for done in runs.values()})
    if len(gpus) > 1 or not gpus[0]:
        raise Failed(f"not one GPU: {', '.join(gpus)}")
    rows = [row(claim, runs, missing) for claim in claims()]
    kinds = [reached for _, reached in rows]
    summary = f"{kinds.count(True)} of {len(kinds)} rows are reached, {kinds.count(False)} are not, {kinds.count(None)} are not measured"
    versions = runs["cuda_scan"].figures
    table = "\n".join(line for line, _ in rows)
    outputs = "\n".join(f"\n### {name}\n\n```\n{done.output.rstrip()}\n```" for name, done in runs.items())
    today = datetime.datetime.now(datetime.timezone.utc).date()
    return gpus[0], f"""# {gpus[0]}

Written by bench/report_gpu.py, in one run on {today}, at commit {commit}. Driver {driver}, CUDA runtime {versions.get("cuda_runtime")},
nvcc {versions.get("nvcc")}, {torch}. Medians of device-event timings after a warm-up, of arrays rotated through more than the cache.
A number with × is how many times the library's time the other's is. {summary}.

| what | at least | measured | reached |
|---|---|---|---|
{table}

## What the programs printed
{outputs}
""", summary


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--programs", required=True, metavar="FOLDER", help="where " + ", ".join(PROGRAMS) + " are")
    parser.add_argument("--peers", default=HERE / "peers", metavar="FOLDER", help="where the scripts are (default: %(default)s)")
    parser.add_argument("--python", default=sys.executable, help="what runs them (default: %(default)s)")
    parser.add_argument("--results", default=HERE / "results", metavar="FOLDER", help="where the page goes (default: %(default)s)")
    parser.add_argument("--commit", help="what is measured, where the sources are not in git")
    options = parser.parse_args()
    try:
        about = driver(), options.commit or commit()
        with tempfile.TemporaryDirectory() as folder:
            runs, missing, failed = measure(options, folder)
        try:
            torch = "PyTorch " + said(options.python, "-c", "import torch; print(torch.__version__)")
        except Failed:
            torch = "no PyTorch"
        gpu, text, summary = page(runs, missing, *about, torch)
        file = Path(options.results, re.sub("[^a-z0-9]+", "-", gpu.lower()).strip("-") + ".md")
        file.with_suffix(".part").write_text(text, encoding="utf-8")
        os.replace(file.with_suffix(".part"), file)
    except (Failed, OSError) as e:
        sys.exit(f"report_gpu: {e}; nothing is written")
    print(f"report_gpu: wrote {file}: {summary}")
    if failed:
        sys.exit(f"report_gpu: {'; '.join(failed)}")


if __name__ == "__main__":
    main()
