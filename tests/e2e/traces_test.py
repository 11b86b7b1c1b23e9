# SPDX-License-Identifier: Apache-2.0
"""Other people's traces of several ranks, whose culprits are known."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import unittest
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = ROOT / "build" / "src" / "cmd" / "perftracker"
DEFAULT = ROOT.parent / "shared" / "traces"
TRACES = pathlib.Path(os.environ.get("PERFTRACKER_TRACES", DEFAULT))


def analyze(path: pathlib.Path) -> dict[str, Any]:
    command = [str(PROGRAM), "analyze", "--format", "json", str(path)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


@unittest.skipUnless(TRACES.is_dir(), "no traces: set PERFTRACKER_TRACES")
class KnownCulprits(unittest.TestCase):
    def report(self, name: str) -> dict[str, Any]:
        path = TRACES / "multi_rank" / name
        if not path.is_dir():
            self.skipTest(f"{path} is not there")
        return analyze(path)

    def test_a_sleep_of_a_second_is_found_on_rank_2_alone(self) -> None:
        report = self.report("dlrm4_sleep_1s")
        first = report["findings"][0]
        self.assertEqual((report["verdict"], first["ranks"]), ("abnormal", "2"))
        self.assertEqual(first["function"]["class"], "idle")
        self.assertIn("running sparse arch", first["function"]["name"])
        self.assertAlmostEqual(first["delta_ms_per_iteration"], 1001, delta=10)
        self.assertEqual([f["ranks"] for f in report["findings"]], ["2"])

    def test_a_sleep_of_20_ms_is_found_on_rank_2_alone(self) -> None:
        report = self.report("dlrm4_sleep_20ms")
        first = report["findings"][0]
        self.assertEqual((report["verdict"], first["ranks"]), ("abnormal", "2"))
        self.assertAlmostEqual(first["delta_ms_per_iteration"], 20.2, delta=1.5)

    def test_a_healthy_job_is_called_healthy(self) -> None:
        report = self.report("resnet18_ddp2")
        self.assertEqual((report["verdict"], report["findings"]), ("healthy", []))

    def test_the_late_tensor_parallel_rank_is_named(self) -> None:
        report = self.report("megatron_tp2")
        self.assertEqual(report["findings"][0]["ranks"], "0")

    def test_one_short_step_accuses_nobody_loudly(self) -> None:
        for finding in self.report("dlrm8")["findings"]:
            self.assertEqual((finding["ranks"], finding["confidence"]), ("7", "low"))

    def test_every_trace_is_read(self) -> None:
        paths = [p for kind in ("single", "corner") for p in (TRACES / kind).rglob("*.json*")]
        self.assertGreater(len(paths), 10)
        for path in sorted(paths):
            with self.subTest(path=path.name):
                self.assertIn(analyze(path)["verdict"], ("healthy", "abnormal", "inconclusive"))


if __name__ == "__main__":
    unittest.main()
