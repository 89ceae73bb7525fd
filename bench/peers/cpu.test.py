#!/usr/bin/env python3
"""bench/peers/cpu.py without PyTorch, JAX and the library: what it makes of what was measured."""

import sys
import unittest

sys.dont_write_bytecode = True
import cpu  # noqa: E402


def row(what, ratio, is_fraction=False):
    return dict(what=what, whose="JAX", cores=1, ours=0.002, theirs=0.002 * ratio, ratio=ratio, is_fraction=is_fraction)


class Peers(unittest.TestCase):
    def test_ours_and_theirs_run_by_turns_after_one_run_of_each(self):
        calls = []
        _, _, ratio = cpu.by_turns(lambda: calls.append("ours"), lambda: calls.append("theirs"))
        self.assertEqual(calls, ["ours", "theirs"] * (cpu.PAIRS + 1))
        self.assertGreater(ratio, 0)

    def test_the_page_has_ratios_fractions_and_lengths(self):
        lengths = {1: [(t * 1e-6, t * 1e3) for t in cpu.LENGTHS]}
        page = cpu.page([row("scan", 2.77), row("scan, bytes", 0.984, True)], lengths, "a machine", "abc")
        self.assertIn("commit `abc` on a machine", page)
        self.assertIn("| scan | 1 | JAX | 2 | 5.54 | 2.8 |", page)
        self.assertIn("| scan, bytes | 1 | 0.98 | JAX |", page)
        self.assertEqual(page.count("| 1.00 |"), 2)  # both are linear

    def test_an_exponent_is_that_of_a_power(self):
        self.assertAlmostEqual(cpu.exponent([1, 2, 4, 8], [3, 12, 48, 192]), 2)

    def test_every_comparison_says_how_many_cores_it_has(self):
        self.assertTrue({"diagonal_scan/1", "diagonal_scan/2", "training_step/1"} <= set(cpu.comparisons))
        self.assertTrue(all(cores in (1, 2) for _, cores in cpu.comparisons.values()))


if __name__ == "__main__":
    unittest.main()
