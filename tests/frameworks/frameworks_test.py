# SPDX-License-Identifier: Apache-2.0
"""Programs of frameworks compute the same with PerfTracker as without it, and are understood.

Each program of NAMES runs twice: every optimizer step must leave the same bits in the weights of
every rank, the exit status is the same, and PerfTracker counts the iterations that the program
has. Frameworks that the interpreter (PERFTRACKER_PYTHON, else .venv) lacks are skipped; matrix.py
runs all programs of bench/live_jobs in this way.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from twice import BY_NAME, PROGRAM, ROOT, Outcome, Run, run_twice  # noqa: E402

PYTHON = os.environ.get("PERFTRACKER_PYTHON") or str(ROOT / ".venv/bin/python")
STEPS = 100


def has(package: str) -> bool:
    find = f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{package}') is None)"
    return os.access(PYTHON, os.X_OK) and subprocess.call([PYTHON, "-c", find]) == 0


class Frameworks(unittest.TestCase):
    def run_program(self, name: str) -> Outcome:
        program = BY_NAME[name]
        if not os.access(PROGRAM, os.X_OK):
            self.skipTest(f"{PROGRAM} is not built")
        for package in filter(None, ("torch", program.package)):
            if not has(package):
                self.skipTest(f"{PYTHON} has no {package}")
        with tempfile.TemporaryDirectory(prefix="pt-fw-") as folder:
            return run_twice(program, PYTHON, pathlib.Path(folder), STEPS)

    def check(self, name: str) -> None:
        outcome = self.run_program(name)
        self.assertEqual(outcome.statuses, (0, 0), outcome.log)
        self.assertGreaterEqual(outcome.compared, STEPS // 2, outcome.log)
        self.assertEqual(outcome.weights[0], outcome.weights[1])
        self.assertEqual(outcome.ranks_seen, BY_NAME[name].ranks, outcome.log)
        self.assertTrue(outcome.true_length, (outcome.iterations, outcome.counted))

    def test_fsdp2(self) -> None:
        self.check("fsdp2")

    def test_zero_and_checkpointing(self) -> None:
        self.check("checkpointed")

    def test_asyncio(self) -> None:
        self.check("async")

    def test_lightning(self) -> None:
        self.check("lightning")

    def test_fabric(self) -> None:
        self.check("fabric")

    def test_accelerate(self) -> None:
        self.check("accelerate")

    def test_hugging_face_trainer(self) -> None:
        self.check("hf-trainer")

    def test_deepspeed(self) -> None:
        self.check("deepspeed")


class Comparison(unittest.TestCase):
    """What the other tests rest on."""

    def test_another_seed_gives_other_weights(self) -> None:
        if not has("torch"):
            self.skipTest(f"{PYTHON} has no torch")
        with tempfile.TemporaryDirectory(prefix="pt-fw-") as folder:
            weights = []
            for number in ("0", "1"):
                run = Run(BY_NAME["async"], PYTHON, pathlib.Path(folder) / number, 6)
                run.script.write_text(run.script.read_text().replace("0.3 *", f"0.3{number} *"))
                self.assertEqual(run.wait(run.start([], hold=False)), 0, run.log())
                weights.append(run.weights()["weights-0"].split())
            self.assertEqual(len(weights[0]), 6)
            self.assertNotEqual(weights[0], weights[1])


if __name__ == "__main__":
    unittest.main()
