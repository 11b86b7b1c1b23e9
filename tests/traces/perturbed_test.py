# SPDX-License-Identifier: Apache-2.0
"""Real traces with one thing changed: a clock, a lost beginning, a sleep in a healthy job."""

from __future__ import annotations

import pathlib
import tempfile
import unittest
from typing import Any

import real

HOUR_US = 3600e6


class Perturbed(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def test_a_clock_that_is_off_changes_nothing(self) -> None:
        """One rank's clock is off by 10 ms, the other way round, or by an hour."""
        for name in ("dlrm4_sleep_20ms", "resnet18_ddp2", "megatron_tp2"):
            real.copy_set(name, self.folder)
            plain = real.analyze(self.folder)
            last = len(real.ranks_of(name)) - 1
            for moved, us in ((0, 10_000), (last, -10_000), (last, HOUR_US)):
                with self.subTest(name=name, rank=moved, us=us):

                    def change(rank: int, trace: real.Trace, by: tuple = (moved, us)) -> None:
                        if rank == by[0]:
                            real.move(trace, by[1])

                    real.copy_set(name, self.folder, change)
                    shifted = real.analyze(self.folder)
                    self.assertEqual(shifted["findings"], plain["findings"])
                    self.assertEqual(shifted["verdict"], plain["verdict"])
            for path in self.folder.iterdir():
                path.unlink()

    def test_a_lost_beginning_does_not_change_the_accused(self) -> None:
        for name in ("dlrm4_sleep_1s", "dlrm4_sleep_20ms"):
            for cut in range(4):
                with self.subTest(name=name, rank=cut):

                    def change(rank: int, trace: real.Trace, cut: int = cut) -> None:
                        if rank == cut:
                            real.drop_first(trace, 0.2)

                    real.copy_set(name, self.folder, change)
                    report = real.analyze(self.folder)
                    accused = {f["ranks"] for f in report["findings"] if f["scope"] == "some"}
                    self.assertEqual(accused, {"2"}, report["reason"])

    def slept(self, ms: float) -> dict[str, Any]:
        traces = [real.read(path) for path in real.ranks_of("resnet18_ddp2")]
        if ms:
            real.inject_sleep(traces[1], [traces[0]], every=4, ms=ms)
        for rank, trace in enumerate(traces):
            real.write(self.folder / f"rank{rank}.json", trace)
        return real.analyze(self.folder)

    def test_a_sleep_put_into_a_healthy_job_is_found_with_its_length(self) -> None:
        self.assertEqual({f["scope"] for f in self.slept(0)["findings"]}, {"all"})
        for ms in (5, 10, 50):
            with self.subTest(ms=ms):
                report = self.slept(ms)
                self.assertEqual(report["verdict"], "abnormal", report["reason"])
                late = [f["ranks"] for f in report["findings"] if f["scope"] == "some"]
                self.assertEqual(late, ["1"])
                first = report["findings"][0]
                self.assertAlmostEqual(first["delta_ms_per_iteration"], ms, delta=0.1 * ms)


if __name__ == "__main__":
    real.skip_without_traces()
    unittest.main()
