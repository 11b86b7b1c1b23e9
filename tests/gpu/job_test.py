# SPDX-License-Identifier: Apache-2.0
"""A whole job whose GPUs are doubles: from kernels and collectives to the report."""

from __future__ import annotations

import contextlib
import json
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
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
READY = 20  # iterations; what is one has been learned by then
KERNELS = ("model::layer_forward<128>", "model::layer_backward<128>", "model::update")


@unittest.skipUnless("DOUBLE_MODEL" in os.environ, "DOUBLE_MODEL and DOUBLE_CUPTI are not set")
class Job(TorchLiveTest):
    def train(self, ranks: int, fault: str) -> contextlib.AbstractContextManager:
        """A job of so many ranks; rank 1 has the fault from when the file self.begin is there."""
        self.env["PYTHONWARNINGS"] = "ignore"
        self.env["DOUBLE_NCCL_NODES"] = "2"  # so that NCCL has a network to tell of
        self.begin = self.folder / "begin"
        ours = ("--source", "agent", "--gpu-calls", "--metrics", "0")
        words = ("--ranks", str(ranks), "--seconds", "600", "--fault", fault, "--rank", "1")
        return self.job(*ours, "--", self.python, JOB, *words, "--begin", str(self.begin))

    def profile(self) -> dict:
        """The report of a window that is asked for now."""
        deadline = time.monotonic() + 60
        answer = self.ask("profile", limit_s=240)
        while "try again" in answer.stderr and time.monotonic() < deadline:
            time.sleep(0.5)  # the window before is just over
            answer = self.ask("profile", limit_s=240)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        page = pathlib.Path(answer.stdout.strip())
        return json.loads(page.with_suffix(".json").read_text())

    def profile_healthy(self) -> dict:
        """The first of five reports that finds nothing: others use this machine, too."""
        for _ in range(5):
            report = self.profile()
            if report["verdict"] == "healthy":
                break
        return report

    def fingerprints(self) -> list[str]:
        """Those of the first window, as text."""
        paths = sorted((self.out / "fingerprints" / "1").iterdir())
        return [
            subprocess.run([PROGRAM, "dump", str(path)], capture_output=True, text=True).stdout
            for path in paths
        ]

    def await_ranks(self, job: subprocess.Popen[bytes], ranks: int) -> None:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            if sum(worker["iterations"] >= READY for worker in self.workers()) == ranks:
                return
            self.assertIsNone(job.poll(), b"" if job.poll() is None else job.communicate()[1])
            time.sleep(0.5)
        self.fail(f"not {ranks} ranks at iteration {READY}: {self.workers()}")

    def test_the_rank_with_a_slow_kernel_is_named_among_eight_that_were_healthy(self) -> None:
        with self.train(8, "kernel") as job:
            self.await_ranks(job, 8)
            before = self.profile_healthy()
            self.begin.touch()
            time.sleep(1)  # iterations that began before are over
            report = self.profile()
        self.assertEqual((before["verdict"], before["findings"]), ("healthy", []))
        for each in (before, report):
            self.assertEqual(each["coverage"]["workers_analyzed"], 8)
        finding = report["findings"][0]
        self.assertEqual(finding["ranks"], "1", finding)
        self.assertIn("model::layer_backward", finding["function"]["name"])
        texts = self.fingerprints()
        self.assertEqual(len(texts), 8)
        for text in texts:
            for words in ("from agent", "device yes", *KERNELS, "Memcpy HtoD", ALL_REDUCE):
                self.assertIn(words, text)

    def test_the_rank_whose_python_is_slow_is_named_although_kernels_run(self) -> None:
        with self.train(4, "python") as job:
            self.await_ranks(job, 4)
            self.begin.touch()
            time.sleep(1)
            finding = self.profile()["findings"][0]
        self.assertEqual(finding["ranks"], "1", finding)
        self.assertEqual(finding["function"]["class"], "host", finding)


if __name__ == "__main__":
    unittest.main()
