# SPDX-License-Identifier: Apache-2.0
"""What a job's calls of doubles of CUDA's libraries leave in its recorder, in the timeline."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import unittest
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "cli"))

import program  # noqa: E402

HARNESS = os.environ.get("PERFTRACKER_HARNESS", "")
AGENT = os.environ.get("PERFTRACKER_AGENT", "")
TRACK = "GPU (sampled)"


@unittest.skipUnless(HARNESS and AGENT, "PERFTRACKER_HARNESS, PERFTRACKER_AGENT are not set")
class Timeline(program.Program):
    def setUp(self) -> None:
        super().setUp()
        flight = str(self.folder / "rank0.flight")
        env = {**os.environ, "LD_PRELOAD": AGENT, "NCCL_PROFILER_PLUGIN": AGENT}
        done = subprocess.run(
            [HARNESS, AGENT, "--keep", flight], env=env, capture_output=True, text=True, timeout=60
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        drawn = self.call("timeline", "--last", "0", "--output", "-", flight)
        self.assertEqual(drawn.returncode, 0, drawn.stderr)
        self.events = json.loads(drawn.stdout)["traceEvents"]

    def sampled(self) -> dict[str, list[dict[str, Any]]]:
        """Slices of the track by name."""
        rows = {
            e["tid"]
            for e in self.events
            if e["name"] == "thread_name" and e["args"]["name"].startswith(TRACK)
        }
        found: dict[str, list[dict[str, Any]]] = {}
        for event in self.events:
            if event["ph"] == "X" and event["tid"] in rows:
                found.setdefault(event["name"], []).append(event)
        return found

    def test_times_and_shapes_of_multiplications_and_collectives_are_drawn(self) -> None:
        slices = self.sampled()
        gemm = slices["cublasGemmEx"][-1]  # 12 GFLOP at the double's 100 TFLOPS
        self.assertEqual(gemm["dur"], 120)
        sizes = {"m": 1000, "n": 2000, "k": 3000, "matrices": 1, "datatype": "bfloat16"}
        self.assertEqual(gemm["args"], {**sizes, "mflop": 12000, "gflop_per_s": 100000})
        groups = slices["cublasGemmGroupedBatchedEx"][0]
        self.assertEqual((groups["args"]["groups"], groups["args"]["matrices"]), (2, 7))
        reduced = slices["ncclAllReduce"][0]
        self.assertEqual(reduced["dur"], 345.678)
        self.assertEqual((reduced["args"]["bytes"], reduced["args"]["seq"]), (2000, 0))
        self.assertEqual(reduced["args"]["group_size"], 8)
        self.assertEqual(slices["ncclReduceScatter"][0]["args"]["ran_as_one"], 5)


if __name__ == "__main__":
    unittest.main()
