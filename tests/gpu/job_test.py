# SPDX-License-Identifier: Apache-2.0
"""A whole job whose GPUs are doubles: from kernels and collectives to the report."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "live"))

from live import PROGRAM, TorchLiveTest  # noqa: E402

JOB = str(ROOT / "tests" / "gpu" / "jobs" / "train_double.py")
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


@unittest.skipUnless("DOUBLE_CUDA" in os.environ, "DOUBLE_CUDA and DOUBLE_CUPTI are not set")
class Job(TorchLiveTest):
    def profile(self, ranks: int, fault: str) -> dict:
        """The report of a window that was asked for while the job ran."""
        self.env["PYTHONWARNINGS"] = "ignore"
        words = ("--ranks", str(ranks), "--seconds", "600", "--fault", fault, "--rank", "1")
        with self.job("--", self.python, JOB, *words) as job:
            self.await_ranks(job, ranks)
            answer = self.ask("profile", limit_s=240)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            return self.report("report-1.json")

    def await_ranks(self, job: subprocess.Popen[bytes], ranks: int) -> None:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            if sum(worker["iterations"] >= 30 for worker in self.workers()) == ranks:
                return
            self.assertIsNone(job.poll(), b"" if job.poll() is None else job.communicate()[1])
            time.sleep(0.5)
        self.fail(f"not {ranks} ranks at iteration 30: {self.workers()}")

    def test_the_rank_with_the_slow_gpu_is_named_among_eight(self) -> None:
        report = self.profile(8, "gpu")
        self.assertEqual(report["coverage"]["workers_analyzed"], 8)
        finding = report["findings"][0]
        self.assertEqual(finding["ranks"], "1", finding)
        self.assertIn("model::layer_", finding["function"]["name"])
        self.assertEqual(finding["cause"], "gpu-slow", finding)
        for path in (self.out / "fingerprints" / "1").iterdir():
            text = subprocess.run([PROGRAM, "dump", str(path)], capture_output=True, text=True)
            self.assertIn("from agent", text.stdout)
            self.assertIn("device yes", text.stdout)
            for name in (ALL_REDUCE, "model::layer_forward<128>", "Memcpy HtoD"):
                self.assertIn(name, text.stdout)

    def test_the_rank_whose_python_is_slow_is_named_although_kernels_run(self) -> None:
        finding = self.profile(4, "python")["findings"][0]
        self.assertEqual(finding["ranks"], "1", finding)
        self.assertEqual(finding["function"]["class"], "host", finding)


if __name__ == "__main__":
    unittest.main()
