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
import urllib.request
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "live"))

from live import PROGRAM, TorchLiveTest  # noqa: E402
from metrics_test import Samples, parse  # noqa: E402

JOB = str(ROOT / "tests" / "gpu" / "jobs" / "train_double.py")
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
READY = 20  # iterations; what is one has been learned by then
STEADY = 130  # what is usual has been learned, too

# What a job of four ranks does, by the double's rules: 100 TFLOPS, links of 100 GB/s.
GEMM_TFLOP = 2 * 4096 * 4096 * 3000 / 1e12
REDUCED_BYTES, GATHERED_BYTES, SHIFTED_BYTES = 120e6, 20e6, 20e6
TRANSFER = "perftracker_collective_transfer_seconds"
STEPS = "perftracker_network_step_seconds_total"
REDUCE_S = REDUCED_BYTES * 2 * 3 / 4 / 100e9
STARVED = "cpu-starvation"  # of which none is accused here
SMALL_PCT = 5
KERNELS = ("model::layer_forward<128>", "model::layer_backward<128>", "model::update")


class Series:
    """Values of one rank on a page of metrics."""

    def __init__(self, samples: Samples, rank: int) -> None:
        self._samples = [one for one in samples if one[1].get("rank") == str(rank)]

    def value(self, name: str, labels: dict[str, str]) -> float:
        """The sum over all series that have these labels."""
        return sum(
            value
            for found, its, value in self._samples
            if found == name and labels.items() <= its.items()
        )

    def mean(self, name: str, labels: dict[str, str]) -> float:
        return self.value(f"{name}_sum", labels) / max(1, self.value(f"{name}_count", labels))


@unittest.skipUnless("DOUBLE_MODEL" in os.environ, "DOUBLE_MODEL and DOUBLE_CUPTI are not set")
class Job(TorchLiveTest):
    def train(
        self,
        ranks: int,
        fault: str,
        how: tuple[str, ...] = ("--fork",),
        run: tuple[str, ...] = (),
    ) -> contextlib.AbstractContextManager:
        """A job of so many ranks; rank 1 has the fault from when the file self.begin is there."""
        self.env["PYTHONWARNINGS"] = "ignore"
        self.env["DOUBLE_NCCL_NODES"] = "2"  # so that NCCL reports network operations
        self.begin = self.folder / "begin"
        options = ("--source", "agent", "--gpu-calls", "--metrics", "0", *run)
        words = ("--ranks", str(ranks), "--seconds", "600", "--fault", fault, "--rank", "1", *how)
        return self.job(*options, "--", self.python, JOB, *words, "--begin", str(self.begin))

    def profile(self) -> dict:
        """The report of a window that is asked for now."""
        deadline = time.monotonic() + 60
        answer = self.ask("profile", limit_s=240)
        while "try again" in answer.stderr and time.monotonic() < deadline:
            time.sleep(0.5)  # the window before is just over
            answer = self.ask("profile", limit_s=240)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        page = pathlib.Path(answer.stdout.splitlines()[-1])
        self.window = page.stem.partition("-")[2]
        return json.loads(page.with_suffix(".json").read_text())

    def profile_healthy(self) -> dict:
        """The first of five reports that finds nothing: others use this machine, too."""
        for _ in range(5):
            report = self.profile()
            if report["verdict"] == "healthy":
                break
        return report

    def accuse(self) -> tuple[dict, dict]:
        """A report, and its first finding but for those of this machine, where CPUs are few.

        Repeats what this machine can be the cause of: an abstention, and starvation alone.
        """
        for _ in range(5):
            report = self.profile()
            self.assertNotEqual(report["verdict"], "healthy", report)
            for finding in report["findings"]:
                if finding["cause"] != STARVED:
                    return report, finding
        raise AssertionError(f"no rank is accused: {report}")

    def fingerprints(self) -> list[str]:
        """Those of the last window that was asked for, as text."""
        paths = sorted((self.out / "fingerprints" / self.window).iterdir())
        return [
            subprocess.run([PROGRAM, "dump", str(path)], capture_output=True, text=True).stdout
            for path in paths
        ]

    def await_ranks(
        self, job: subprocess.Popen[bytes], ranks: int, iterations: int = READY
    ) -> None:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            if sum(worker["iterations"] >= iterations for worker in self.workers()) == ranks:
                return
            self.assertIsNone(job.poll(), b"" if job.poll() is None else job.communicate()[1])
            time.sleep(0.5)
        self.fail(f"not {ranks} ranks at iteration {iterations}: {self.workers()}")

    def await_blocked(self) -> None:
        """The report of the standstill; others can come before it, of a machine that is busy."""
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, ValueError):  # not yet, or half written
                if self.report()["trigger"]["kind"] == "blocked":
                    return
            time.sleep(0.2)
        self.fail("no report of a hanging job")

    def scrape(self) -> Samples:
        targets = json.loads((self.out / "metrics.json").read_text())[0]["targets"]
        with urllib.request.urlopen(f"http://{targets[0]}/metrics") as page:
            return parse(page.read().decode())

    def slices(self) -> dict[int, list[dict[str, Any]]]:
        """Everything in the timeline but what Python did, by rank."""
        path = self.folder / "timeline.json"
        drawn = self.ask("timeline", "--last", "0", "-o", str(path), str(self.out))
        self.assertEqual(drawn.returncode, 0, drawn.stderr)
        found: dict[int, list[dict[str, Any]]] = {}
        for event in json.loads(path.read_text())["traceEvents"]:
            if event["ph"] == "X" and "args" in event:
                found.setdefault(event["pid"] - 1, []).append(event)
        return found

    def test_the_rank_with_a_slow_kernel_is_named_among_eight_that_were_healthy(self) -> None:
        with self.train(8, "kernel") as job:
            self.await_ranks(job, 8)
            before = self.profile_healthy()
            self.begin.touch()
            time.sleep(1)  # iterations that began before are over
            report, finding = self.accuse()
        self.assertEqual((before["verdict"], before["findings"]), ("healthy", []))
        for each in (before, report):
            self.assertEqual(each["coverage"]["workers_analyzed"], 8)
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
            _, finding = self.accuse()
        self.assertEqual(finding["ranks"], "1", finding)
        self.assertEqual(finding["function"]["class"], "host", finding)

    def test_the_rank_that_is_late_to_a_collective_is_named(self) -> None:
        with self.train(4, "late") as job:
            self.await_ranks(job, 4)
            self.begin.touch()
            time.sleep(1)
            _, finding = self.accuse()
        self.assertEqual(finding["ranks"], "1", finding)
        self.assertIn("pack_gradients", json.dumps(finding["function"]), finding)

    def test_metrics_are_what_the_doubles_did(self) -> None:
        with self.train(4, "none", how=()) as job:
            self.await_ranks(job, 4, STEADY)
            samples = self.scrape()
        for rank in range(4):
            self.assert_collectives(Series(samples, rank))
            self.assert_calls(Series(samples, rank))

    def assert_collectives(self, of: Series) -> None:
        reduced, gathered, shifted = (
            {"operation": name, "backend": "nccl"}
            for name in ("all_reduce", "all_gather", "send_recv")
        )
        wait, transfer = "perftracker_collective_wait_seconds", TRANSFER
        self.assertGreater(of.value(f"{wait}_count", reduced), 0)
        # Timed between two events of the queue, which waits for the compute before.
        self.assertAlmostEqual(of.mean(transfer, reduced) / REDUCE_S, 1, delta=0.02)
        moved = of.value("perftracker_collective_bus_bytes_total", reduced)
        took = of.value("perftracker_collective_bus_seconds_total", reduced)
        self.assertAlmostEqual(moved / took / 100e9, 1, delta=0.02)
        bytes_by_operation = (
            (gathered, GATHERED_BYTES),
            (shifted, SHIFTED_BYTES),
            (reduced, (2 * REDUCED_BYTES + 2000) / 5),  # one, three in a group, one in a graph
        )
        for operation, count in bytes_by_operation:
            payload = of.mean("perftracker_collective_payload_bytes", operation)
            self.assertAlmostEqual(payload / count, 1, delta=0.03, msg=operation)
        self.assertGreater(of.value("perftracker_network_seconds_count", reduced), 0)

    def assert_calls(self, of: Series) -> None:
        dtype = {"dtype": "bfloat16"}
        matmuls = of.value("perftracker_gpu_calls_total", {"kind": "matmul"})
        done = of.value("perftracker_matmul_teraflop_total", {})
        self.assertGreaterEqual(matmuls, 8 * READY)
        self.assertAlmostEqual(done / (matmuls * GEMM_TFLOP), 1, delta=1e-4)
        took = of.mean("perftracker_matmul_seconds", dtype)
        self.assertAlmostEqual(took / (GEMM_TFLOP / 100), 1, delta=0.01)
        speed = of.mean("perftracker_matmul_teraflop_per_second", dtype)
        self.assertAlmostEqual(speed, 100, delta=1)
        sampled = "perftracker_gpu_kernel_sampled_seconds"
        self.assertGreater(of.value(f"{sampled}_count", {}), 0)

    def test_a_slow_link_of_a_rank_is_found_by_its_transfers(self) -> None:
        with self.train(4, "link") as job:
            self.await_ranks(job, 4)
            self.begin.touch()
            time.sleep(1)
            report = self.profile()
            samples, slices = self.scrape(), self.slices()
        for finding in report["findings"]:
            # Four ranks on two CPUs differ by some percent whatever their links do.
            is_noise = finding["cause"] == STARVED or finding["gain_pct"] < SMALL_PCT
            self.assertTrue(finding["ranks"] == "1" or is_noise, finding)
        sent = [Series(samples, rank).value(STEPS, {"part": "send_wire"}) for rank in range(4)]
        self.assertEqual(sent.index(max(sent)), 1, sent)
        drawn = [
            sum(event["args"].get("send_on_the_wire_us", 0) for event in slices[rank])
            for rank in range(4)
        ]
        self.assertEqual(drawn.index(max(drawn)), 1, drawn)

    def test_the_rank_that_never_enters_a_collective_is_named(self) -> None:
        # While the overhead is measured, the last collectives may not be recorded.
        with self.train(4, "hang", run=("--no-audit",)) as job:
            self.await_ranks(job, 4, STEADY)
            self.begin.touch()
            self.await_blocked()
            slices = self.slices()
        last = [
            max(
                e["args"]["seq"]
                for e in slices[rank]
                if e["name"] == "ncclAllReduce" and e["args"]["group"].startswith("data")
            )
            for rank in range(4)
        ]
        self.assertEqual([number < max(last) for number in last], [False, True, False, False])
        self.assertEqual(self.report()["trigger"]["kind"], "blocked")
        finding = self.report()["findings"][0]
        self.assertEqual(finding["ranks"], "1", finding)
        self.assertIn("pack_gradients", finding["function"]["name"])
        self.assertIn(f"entered all_reduce number {min(last)} last", json.dumps(finding))


if __name__ == "__main__":
    unittest.main()
