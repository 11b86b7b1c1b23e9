# SPDX-License-Identifier: Apache-2.0
"""What `diff` must say of other people's traces; what they are is in their README."""

from __future__ import annotations

import json
import pathlib
import unittest
from typing import Any

import real

CORNER = real.TRACES / "corner"
RANKS = real.TRACES / "multi_rank"


def diff(*words: str | pathlib.Path) -> dict[str, Any]:
    done = real.call("diff", "--format", "json", *words)
    if done.returncode:
        raise AssertionError(f"exit status {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


class Diff(unittest.TestCase):
    def assert_adds_up(self, comparison: dict[str, Any]) -> None:
        parts = [c["delta_ms"] for c in comparison["changes"]]
        parts += [comparison["smaller"]["delta_ms"], comparison["unlisted_delta_ms"]]
        limit = 1e-4 * (comparison["before"]["iteration_ms"] + comparison["after"]["iteration_ms"])
        self.assertAlmostEqual(sum(parts), comparison["delta_ms"], delta=limit)

    def test_loader_processes_take_the_loading_away(self) -> None:
        comparison = diff(*(CORNER / f"torch1.8_resnet50_num_workers_{n}.json.gz" for n in (0, 4)))
        first = comparison["changes"][0]
        self.assert_adds_up(comparison)
        self.assertEqual(first["kind"], "renamed")
        self.assertIn("_SingleProcessDataLoaderIter", first["old_name"])
        self.assertIn("_MultiProcessingDataLoaderIter", first["name"])
        self.assertLess(first["delta_ms"], -30)
        self.assertTrue(first["significant"])
        # One window of one worker: what was seen may be this window's luck.
        self.assertEqual(first["confidence"], "low")

    def test_a_longer_sleep_is_found_at_its_place(self) -> None:
        comparison = diff(RANKS / "dlrm4_sleep_20ms", RANKS / "dlrm4_sleep_1s")
        self.assert_adds_up(comparison)
        self.assertEqual(comparison["verdict"], "slower")
        idle = next(c for c in comparison["changes"] if c["class"] == "idle")
        self.assertIn("before _AlltoAllSingle", idle["name"])
        self.assertIn("# running sparse arch", idle["stack"])
        # A sleep of 1001 ms on one of four ranks, the others wait for it.
        self.assertAlmostEqual(idle["delta_ms"], 1001 / 4, delta=10)
        waiting = comparison["changes"][0]
        self.assertEqual((waiting["class"], waiting["kind"]), ("comm", "grew"))

    def test_what_the_first_set_has_and_the_second_has_not_is_gone(self) -> None:
        comparison = diff(RANKS / "dlrm4_sleep_20ms", RANKS / "dlrm4_sleep_1s")
        gone = [c for c in comparison["changes"] if c["kind"] == "vanished"]
        backward = [c for c in gone if "Backward" in (c["launched_by"] or c["name"])]
        self.assertGreater(len(backward), 5)  # the second set has no backward pass

    def test_every_set_is_the_same_as_itself(self) -> None:
        for name in ("dlrm4_sleep_1s", "resnet18_ddp2", "dlrm8", "megatron_tp2"):
            with self.subTest(name=name):
                comparison = diff(RANKS / name, RANKS / name)
                self.assertEqual((comparison["verdict"], comparison["changes"]), ("same", []))
                self.assertAlmostEqual(comparison["common_frac"], 1)

    def test_jobs_with_little_in_common_are_reported(self) -> None:
        comparison = diff(RANKS / "resnet18_ddp2", RANKS / "megatron_tp2")
        self.assert_adds_up(comparison)
        self.assertTrue(any("one job?" in note for note in comparison["notes"]))


if __name__ == "__main__":
    real.skip_without_traces()
    unittest.main()
