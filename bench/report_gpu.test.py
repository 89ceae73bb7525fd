#!/usr/bin/env python3
"""bench/report_gpu.py, with programs that only claim to have measured."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import report_gpu  # noqa: E402

SCRIPT = Path(report_gpu.__file__)
SCAN = "[16,2048,2048]/float/"


def figures():
    """All that the table needs, 1 each, by program."""
    runs = {name: {"gpu": "NVIDIA H200 (test)"} for name in (*report_gpu.PROGRAMS, *report_gpu.PEERS)}
    runs["cuda_scan"].update(cuda_runtime="13.0", nvcc="13.1")
    for claim in report_gpu.claims():
        for name in filter(None, (claim.of, claim.over, *claim.as_many)):
            program, _, key = name.partition(": ")
            runs[program][key] = 1
    return runs


class Report(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.figures, self.status = figures(), {}
        self.modules = {name: "" for name in ("torch", "numpy", "safetensors/__init__", "safetensors/torch")}
        self.modules["torch"] = "__version__ = '2.0.test'"
        self.nvidia_smi = "echo 580.01"

    def write(self, name, text):
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)

    def report(self):
        """(status, what it says, the pages it has written)"""
        self.write("bin/nvidia-smi", f"#!/bin/sh\n{self.nvidia_smi}\n")
        (self.folder / "results").mkdir()
        for name, text in self.modules.items():
            self.write(f"modules/{name}.py", text)
        for name in self.figures:
            arguments = name.split()
            self.write(
                f"bin/{arguments[0]}",
                f"#!{sys.executable}\nimport pathlib, sys\n"
                f"name, arguments = {arguments[0]!r}, sys.argv[1:-2]\nassert sys.argv[-2] == '--figures'\n"
                "if name in ('cuda_layer', 'fp_mamba.py'):\n"
                "    *arguments, option, problem = arguments\n    assert option == '--problem'\n"
                "    file = pathlib.Path(problem)\n"
                "    file.write_text('x') if name == 'cuda_layer' else file.read_text()\n"
                "name = ' '.join([name, *arguments])\n"
                "print(name, 'measures')\n"
                f"for line in {self.figures!r}[name].items():\n    print(*line, file=open(sys.argv[-1], 'a'))\n"
                f"sys.exit({self.status!r}.get(name, 0))\n",
            )
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        options = ["--programs", "bin", "--peers", "bin", "--results", "results", "--commit", "`abc`"]
        done = subprocess.run(
            [sys.executable, str(SCRIPT), *options],
            cwd=self.folder,
            env=dict(os.environ, PATH=path, PYTHONPATH=f"{self.folder}/modules", PYTHONUTF8="1"),
            capture_output=True,
            encoding="utf-8",
        )
        pages = {file.name: file.read_text(encoding="utf-8") for file in (self.folder / "results").iterdir()}
        return done.returncode, done.stdout + done.stderr, pages

    def page(self, expected=0):
        status, words, pages = self.report()
        self.assertEqual(status, expected, words)
        self.assertEqual(list(pages), ["nvidia-h200-test.md"])
        return pages["nvidia-h200-test.md"]

    def refused(self, because):
        status, words, pages = self.report()
        self.assertEqual((status, pages), (1, {}))
        self.assertIn(because, words)
        return words

    def test_ratios_and_bounds(self):
        scan = self.figures["cuda_scan"]
        scan.update({SCAN + "scan": 2e-3, SCAN + "by_key": 5e-3, SCAN + "scan/of_copy": 0.8996, SCAN + "scan_back/of_copy": 0.88})
        self.figures["cuda_layer"].update({"training_step_fp_mamba<1>/TF32": 6e-3, "training_step_fp_mamba<1>/float": 12.1e-3})
        page = self.page()
        for line in (
            "| scan [16,2048,2048], float: of copy | 0.9 | 0.8996 | no |",
            "| scan_back [16,2048,2048], float: of copy | 0.88 | 0.88 | yes |",
            "| scan [16,2048,2048], float: cub::DeviceScan by key | 1.5× | 2.5× | yes |",
            "| scan [16,2048,2048], float: compiled associative_scan | 2× | 500× | yes |",
            "| scan_back [16,2048,2048], bf16: compiled associative_scan | 2× | 1× | no |",
            "N = 16, R = 1, TF32 | at most 6 ms | 6 ms | yes |",
            "N = 16, R = 1, float | at most 12 ms | 12.1 ms | no |",
        ):
            self.assertIn(line + "\n", page)
        for words in "commit `abc`", "Driver 580.01", "CUDA runtime 13.0", "nvcc 13.1", "PyTorch 2.0.test":
            self.assertIn(words, page)
        self.assertIn("### fp_mamba.py --dtype bfloat16\n\n```\nfp_mamba.py --dtype bfloat16 measures\n```", page)

    def test_a_solve_for_fewer_sequences_is_no_faster_one(self):
        self.figures["fp_mamba.py"]["R=1/solve"] = 20
        self.figures["cuda_layer"]["solve/best/converged"] = 0.5
        self.assertIn("| 20× | no: 0.5000 of the sequences converged, there 1.0000 |", self.page())

    def test_a_peer_that_is_missing(self):
        self.modules["safetensors/__init__"] = "raise ModuleNotFoundError('no safetensors')"
        self.status["householder.py"] = 77
        page = self.page()
        self.assertIn("R = 1, bf16: the transcription | 3× |  | not measured: ModuleNotFoundError: no safetensors |\n", page)
        self.assertIn("eager PyTorch | 4× |  | not measured: householder.py measures |\n", page)
        self.assertIn("float: compiled associative_scan | 2× | 1× | no |", page)
        self.assertIn("5 are not measured", page)

    def test_without_pytorch(self):
        self.modules["torch"] = "raise ModuleNotFoundError('no torch')"
        page = self.page()
        self.assertIn("no PyTorch", page)
        self.assertIn("9 are not measured", page)

    def test_a_program_that_fails(self):
        self.status["cuda_layer"] = 1
        words = self.refused("cuda_layer ended with 1: cuda_layer measures")
        self.assertIn("fp_mamba.py measures", words)  # what else is wrong is told, too

    def test_a_peer_that_fails(self):
        self.status["scan.py"] = 1
        page = self.page(expected=1)
        self.assertIn("compiled associative_scan | 2× |  | not measured: scan.py ended with 1: scan.py measures |\n", page)
        self.assertIn("4 are not measured", page)

    def test_a_program_without_a_gpu(self):
        self.status["cuda_scan"] = 77
        self.refused("cuda_scan ended with 77")

    def test_no_gpu(self):
        self.nvidia_smi = "echo 'no devices were found'; exit 6"
        self.assertNotIn("measures", self.refused("there is no GPU (no devices were found)"))

    def test_figures_that_are_none(self):
        for value in None, "nan", "inf", "fast", "-1":
            with self.subTest(value):
                self.setUp()
                self.figures["cuda_scan"][SCAN + "scan"] = value
                self.refused(f"cuda_scan has written {value} for the figure {SCAN}scan")
        self.setUp()
        del self.figures["cuda_layer"]["iteration/bf16"]
        self.refused("cuda_layer has written nothing for the figure iteration/bf16")

    def test_two_gpus(self):
        self.figures["scan.py"]["gpu"] = "another"
        self.refused("not one GPU: NVIDIA H200 (test), another")


if __name__ == "__main__":
    unittest.main()
