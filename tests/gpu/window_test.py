# SPDX-License-Identifier: Apache-2.0
"""The hook and the agent with a GPU, in real training processes whose GPU is a double."""

from __future__ import annotations

import collections
import os
import sys
import unittest
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "agent"))

import daemon as d  # noqa: E402
import recorder as r  # noqa: E402
import test_hook  # noqa: E402

GPU = 7  # enum flight_source
KERNEL, API, OVERHEAD, NAMES = 44, 47, 48, 0xFFFF
SECOND = 10**9


@unittest.skipUnless("DOUBLE_CUDA" in os.environ, "DOUBLE_CUDA and DOUBLE_CUPTI are not set")
class Window(test_hook.HookTest):
    def setUp(self) -> None:
        if not test_hook.TORCH:
            self.skipTest(f"no torch in {test_hook.PYTHON}: set PERFTRACKER_PYTHON")
        super().setUp()
        self.stop = os.path.join(self.folder, "stop")
        self.now = os.path.join(self.folder, "now")
        self.records: list[r.Record] = []
        self.names = collections.Counter()
        self.seen: Any = None
        self.remark = ""

    def look(self, worker: d.Worker) -> None:
        """What the recorder holds when the worker says that the window is done."""
        recorder = r.Recorder(worker)
        self.records = [x for x in recorder.window() if KERNEL <= x.kind <= OVERHEAD]
        self.names = collections.Counter(
            (x.kind, recorder.string(x.extra & NAMES)) for x in self.records
        )
        self.seen = recorder.absent()
        self.remark = recorder.raw.sources[GPU].why.decode()

    def train(self, mode: str, on_poll: Any, **order: Any) -> list[str]:
        """A window of 20 steps and half a second from step 20 on; what the job printed."""
        ordered: list[int] = []

        def poll(worker: d.Worker) -> None:
            if worker.step() >= 20 and not ordered:
                ordered.append(1)
                worker.order(1, 0, window_ns=SECOND // 2, least=20, **order)
            on_poll(worker)

        self.daemon.on_poll = poll
        path = os.path.join("..", "..", "gpu", "jobs", "window_double.py")
        run = self.run_job(path, self.stop, mode, self.now)
        # Kineto of torch 2.13 writes a line for each profile of the job's own.
        errors = [x for x in run.stderr.splitlines() if not x.startswith("USDT:")]
        self.assertEqual((run.returncode, errors), (0, []))
        lines = run.stdout.splitlines()
        self.assertEqual([line for line in lines if line.startswith("fault")], ["fault: "])
        return lines

    def end_when(self, *kinds: int) -> Any:
        def poll(worker: d.Worker) -> None:
            if any(worker.got(kind) for kind in kinds) and self.seen is None:
                self.look(worker)
                open(self.stop, "w").close()

        return poll

    def test_a_window_has_the_gpus_kernels_and_leaves_cupti_detached(self) -> None:
        lines = self.train("plain", self.end_when(d.DONE))
        worker = self.only_worker()
        self.assertEqual([m.text for m in worker.got(d.BEGUN)], ["agent"])
        self.assertNotIn(GPU, self.seen)
        kernels = self.names[KERNEL, "_Z9my_kernelv"]
        self.assertGreater(kernels, 30)
        # All are there when the window is done, and each has its launch.
        self.assertAlmostEqual(self.names[API, "cudaLaunchKernel"], kernels, delta=6)
        launched = {x.extra >> 32 for x in self.records if x.kind == API}
        orphans = [x for x in self.records if x.kind == KERNEL and x.extra >> 32 not in launched]
        self.assertLess(len(orphans), 6)
        begun, done = worker.got(d.BEGUN)[0], worker.got(d.DONE)[0]
        times = [x.time_ns for x in self.records if x.kind == KERNEL]
        self.assertLess(begun.mono_ns - SECOND, min(times))
        self.assertLess(max(times), done.mono_ns)
        self.assertGreater(max(times) - min(times), 0.3 * SECOND)
        self.assertEqual(lines[-1], "finalized: 1 attached: 0")

    def test_a_window_that_can_not_detach_was_recorded_all_the_same(self) -> None:
        lines = self.train("old", self.end_when(d.DONE))
        self.assertNotIn(GPU, self.seen)
        self.assertIn("12.6", self.remark)
        self.assertGreater(self.names[KERNEL, "_Z9my_kernelv"], 30)
        self.assertEqual(lines[-1], "finalized: 0 attached: 0")

    def test_another_tool_is_named_and_nothing_is_recorded(self) -> None:
        self.train("busy", self.end_when(d.MISSED))
        worker = self.only_worker()
        texts = [m.text for m in worker.got(d.MISSED)]
        self.assertEqual(texts, ["another profiler uses CUPTI in this process: Nsight Systems"])
        self.assertEqual(worker.got(d.BEGUN), [])

    def test_an_order_for_the_agent_goes_on_without_the_gpu(self) -> None:
        self.train("busy", self.end_when(d.DONE, d.MISSED), source=d.SOURCE_AGENT)
        worker = self.only_worker()
        self.assertEqual([m.text for m in worker.got(d.BEGUN)], ["agent"])
        self.assertIn("Nsight Systems", self.seen[GPU])
        self.assertEqual(self.records, [])

    def test_the_users_profiler_finds_cupti_free(self) -> None:
        end = self.end_when(d.MISSED)

        def poll(worker: d.Worker) -> None:
            if worker.got(d.BEGUN) and not os.path.exists(self.now):
                open(self.now, "w").close()
            end(worker)

        lines = self.train("profile", poll)
        worker = self.only_worker()
        self.assertEqual([m.text for m in worker.got(d.MISSED)], ["the user started a profiler"])
        self.assertIn("attached when theirs began: 0", lines)
        self.assertEqual(lines[-1], "finalized: 1 attached: 0")

    def test_the_users_profiler_waits_for_the_end_of_a_window(self) -> None:
        lines = self.train("after", self.end_when(d.DONE, d.MISSED))
        self.assertEqual(len(self.only_worker().got(d.DONE)), 1)
        self.assertGreater(self.names[KERNEL, "_Z9my_kernelv"], 30)
        self.assertIn("attached when theirs began: 0", lines)
        self.assertIn("finalized when theirs began: 1", lines)
        self.assertEqual(lines[-1], "finalized: 1 attached: 0")

    def test_a_profiler_that_runs_is_not_disturbed(self) -> None:
        lines = self.train("profiling", self.end_when(d.MISSED, d.DONE))
        worker = self.only_worker()
        texts = [m.text for m in worker.got(d.MISSED)]
        self.assertEqual(texts, ["the user's own profiler is active"])
        self.assertEqual(lines[-1], "finalized: 0 attached: 0")

    def test_children_of_a_window_are_silent(self) -> None:
        lines = self.train("forked", self.end_when(d.DONE))
        self.assertGreater(self.names[KERNEL, "_Z9my_kernelv"], 10)
        self.assertEqual(lines[-1], "finalized: 1 attached: 0")


if __name__ == "__main__":
    unittest.main()
