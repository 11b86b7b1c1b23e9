# SPDX-License-Identifier: Apache-2.0
"""The agent as rocprofiler-sdk's tool, in a real training process beside a double of the SDK."""

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

KERNEL, API, OVERHEAD, NAMES = 44, 47, 48, 0xFFFF
SECOND = 10**9


@unittest.skipUnless("DOUBLE_ROCPROF" in os.environ, "DOUBLE_ROCPROF is not set")
class Rocprof(test_hook.HookTest):
    def setUp(self) -> None:
        if not test_hook.TORCH:
            self.skipTest(f"no torch in {test_hook.PYTHON}: set PERFTRACKER_PYTHON")
        super().setUp()
        self.stop = os.path.join(self.folder, "stop")
        self.records: list[r.Record] = []
        self.names: collections.Counter[Any] = collections.Counter()

    def look(self, worker: d.Worker) -> None:
        recorder = r.Recorder(worker)
        self.records = [x for x in recorder.window() if KERNEL <= x.kind <= OVERHEAD]
        self.names = collections.Counter(
            (x.kind, recorder.string(x.extra & NAMES)) for x in self.records
        )

    def train(self, tools: str) -> list[str]:
        """A window of 20 steps and half a second from step 20 on; what the job printed."""
        steps: list[str] = []

        def poll(worker: d.Worker) -> None:
            if worker.step() >= 20 and not steps:
                steps.append("ordered")
                worker.order(1, 0, window_ns=SECOND // 2, least=20, source=d.SOURCE_AGENT)
            if (worker.got(d.DONE) or worker.got(d.MISSED)) and "seen" not in steps:
                steps.append("seen")
                self.look(worker)
                open(self.stop, "w").close()

        self.daemon.on_poll = poll
        os.environ["ROCP_TOOL_LIBRARIES"] = tools
        self.addCleanup(os.environ.pop, "ROCP_TOOL_LIBRARIES")
        run = self.run_job(os.path.join("..", "..", "gpu", "jobs", "window_rocprof.py"), self.stop)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return run.stdout.splitlines()

    def test_a_window_has_the_gpus_kernels_and_the_context_stops(self) -> None:
        lines = self.train(os.environ["PERFTRACKER_AGENT"])
        kernels = self.names[KERNEL, "_Z9my_kernelv"]
        self.assertGreater(kernels, 30)
        self.assertAlmostEqual(self.names[API, "hipLaunchKernel"], kernels, delta=6)
        launched = {x.extra >> 32 for x in self.records if x.kind == API}
        orphans = [x for x in self.records if x.kind == KERNEL and x.extra >> 32 not in launched]
        self.assertLess(len(orphans), 6)
        begun = self.only_worker().got(d.BEGUN)[0]
        times = [x.time_ns for x in self.records if x.kind == KERNEL]
        self.assertLess(begun.mono_ns - SECOND, min(times))
        self.assertLess(max(times), begun.mono_ns + 5 * SECOND)
        self.assertEqual(lines, ["fault: ", "contexts: 2 active: 1"])

    def test_a_job_started_without_the_agent_declares_nothing(self) -> None:
        lines = self.train("/nowhere/libother.so")
        self.assertEqual(self.records, [])
        self.assertEqual(lines, ["fault: ", "contexts: 0 active: 0"])


if __name__ == "__main__":
    unittest.main()
