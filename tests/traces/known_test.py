# SPDX-License-Identifier: Apache-2.0
"""What must be said of other people's traces as they are; answers in their README."""

from __future__ import annotations

import json
import pathlib
import random
import shutil
import tempfile
import unittest
from typing import Any

import real

# Read to the end, but without anything that could be analyzed: said in one line, exit status 1.
EMPTY = {"composer_json_array_rank0.json.gz"}


class Scratch(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)


class Known(Scratch):
    def analyze_set(self, name: str) -> dict[str, Any]:
        return real.analyze(real.TRACES / "multi_rank" / name)

    def assert_only_rank_2(self, name: str, delta_ms: float, tolerance: float) -> None:
        report = self.analyze_set(name)
        first = report["findings"][0]
        self.assertEqual(report["verdict"], "abnormal")
        self.assertEqual(first["ranks"], "2")
        self.assertEqual(first["victim_ranks"], "0-1,3")
        self.assertIn("_AlltoAllSingle", first["function"]["name"])
        self.assertAlmostEqual(
            first["delta_ms_per_iteration"], delta_ms, delta=tolerance * delta_ms
        )
        self.assertEqual({f["ranks"] for f in report["findings"]}, {"2"})

    def test_a_sleep_of_a_second(self) -> None:
        self.assert_only_rank_2("dlrm4_sleep_1s", 1001, 0.02)

    def test_a_sleep_of_20_ms(self) -> None:
        self.assert_only_rank_2("dlrm4_sleep_20ms", 20.2, 0.05)

    def test_a_job_that_is_bound_by_its_hosts_has_no_straggler(self) -> None:
        report = self.analyze_set("resnet18_ddp2")
        self.assertEqual([f["cause"] for f in report["findings"]], ["host-bound"])
        self.assertEqual(report["findings"][0]["scope"], "all")
        self.assertEqual(report["findings"][0]["gain_is"], "bound")
        self.assertAlmostEqual(report["findings"][0]["gain_pct"], 96, delta=2)

    def test_copies_that_fill_the_window_of_two_gpus(self) -> None:
        report = real.analyze(real.TRACES / "nsys" / "h100_2gpu_schema3.25.sqlite")
        self.assertEqual([f["cause"] for f in report["findings"]], ["copies"])
        self.assertIn("HtoD", report["findings"][0]["function"]["name"])
        self.assertGreater(report["findings"][0]["gain_pct"], 90)

    def test_allocations_of_a_warm_up_are_not_accused(self) -> None:
        for name in ("dlrm4_sleep_20ms", "dlrm4_sleep_1s"):
            causes = {f["cause"] for f in self.analyze_set(name)["findings"]}
            self.assertNotIn("device-memory-allocation", causes)

    def test_a_tensor_parallel_pair_of_which_one_is_always_late(self) -> None:
        report = self.analyze_set("megatron_tp2")
        self.assertEqual(report["findings"][0]["ranks"], "0")
        self.assertEqual(report["findings"][0]["victim_ranks"], "1")
        self.assertNotIn("1", {f["ranks"] for f in report["findings"]})

    def test_one_short_step_of_eight_ranks_is_not_enough(self) -> None:
        report = self.analyze_set("dlrm8")
        self.assertNotEqual(report["verdict"], "abnormal")
        for finding in report["findings"]:
            self.assertEqual((finding["ranks"], finding["confidence"]), ("7", "low"))

    def test_every_single_rank_is_read_or_refused_in_one_line(self) -> None:
        paths = [p for d in ("single", "corner") for p in (real.TRACES / d).rglob("*.json.gz")]
        self.assertGreater(len(paths), 10)
        for path in sorted(paths):
            with self.subTest(trace=path.name):
                done = real.call("analyze", "--format", "json", path)
                if path.name in EMPTY:
                    self.assertEqual((done.returncode, done.stdout), (1, ""))
                    self.assertIn(path.name, done.stderr.splitlines()[0])
                    continue
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                report = json.loads(done.stdout)
                self.assertEqual(report["coverage"]["workers_analyzed"], 1)
                shares = report["workers"][0]["class_frac"].values()
                self.assertAlmostEqual(sum(shares), 1, places=3)

    def test_one_rank_alone_is_not_accused_of_a_difference(self) -> None:
        for path in sorted((real.TRACES / "single").glob("*.json.gz")):
            with self.subTest(trace=path.name):
                for finding in real.analyze(path)["findings"]:
                    self.assertEqual(finding["scope"], "all")
                    self.assertEqual(finding["beta"]["reference_kind"], "expected")

    def test_a_loader_without_workers_is_found_and_one_with_four_is_not(self) -> None:
        corner = real.TRACES / "corner"
        slow = real.analyze(corner / "torch1.8_resnet50_num_workers_0.json.gz")
        fast = real.analyze(corner / "torch1.8_resnet50_num_workers_4.json.gz")
        self.assertEqual(slow["findings"][0]["cause"], "slow-data-loading")
        self.assertEqual(fast["findings"], [])


class Inputs(Scratch):
    """Names and order of the files do not matter where distributedInfo has the rank."""

    def json_of(self, *paths: pathlib.Path) -> str:
        done = real.call("analyze", "--format", "json", *paths)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_the_order_of_the_arguments_does_not_matter(self) -> None:
        paths = real.ranks_of("dlrm4_sleep_20ms")
        first = self.json_of(*paths)
        for seed in range(4):
            random.Random(seed).shuffle(paths)
            self.assertEqual(self.json_of(*paths), first)

    def test_the_names_of_the_files_do_not_matter(self) -> None:
        paths = real.ranks_of("dlrm4_sleep_20ms")
        plain = json.loads(self.json_of(*paths))
        for number, path in enumerate(paths):
            shutil.copy(path, self.folder / f"rank{3 - number}.json.gz")
        renamed = json.loads(self.json_of(self.folder))
        self.assertEqual(renamed["findings"], plain["findings"])
        self.assertEqual(renamed["coverage"], plain["coverage"])

    def test_a_missing_rank_is_reported(self) -> None:
        paths = [p for p in real.ranks_of("dlrm4_sleep_1s") if "rank1" not in p.name]
        report = json.loads(self.json_of(*paths))
        self.assertEqual(report["coverage"]["ranks_missing"], "1")
        self.assertEqual(report["coverage"]["workers_analyzed"], 3)
        self.assertEqual(report["findings"][0]["ranks"], "2")

    def test_without_the_culprit_no_other_rank_is_blamed(self) -> None:
        paths = [p for p in real.ranks_of("dlrm4_sleep_1s") if "rank2" not in p.name]
        report = json.loads(self.json_of(*paths))
        self.assertEqual(report["coverage"]["ranks_missing"], "2")
        self.assertEqual((report["verdict"], report["findings"]), ("incomplete", []))
        self.assertIn("rank 2's trace is missing, and those present wait", report["reason"])

    def test_ranks_come_from_file_names_if_traces_lack_them(self) -> None:
        def forget(_rank: int, trace: real.Trace) -> None:
            trace.pop("distributedInfo", None)

        real.copy_set("dlrm4_sleep_20ms", self.folder, forget)
        report = json.loads(self.json_of(self.folder))
        text = real.call("analyze", self.folder).stdout
        self.assertIn("4 of 4 workers analyzed, ranks from file names", text)
        self.assertEqual(report["findings"][0]["ranks"], "2")

    def test_only_the_chosen_ranks_are_compared(self) -> None:
        report = json.loads(
            self.json_of(real.TRACES / "multi_rank" / "dlrm4_sleep_1s", pathlib.Path("--ranks=1-2"))
        )
        self.assertEqual(report["coverage"]["workers_analyzed"], 2)
        self.assertEqual(report["coverage"]["ranks_missing"], "")
        self.assertEqual(report["findings"][0]["ranks"], "2")


if __name__ == "__main__":
    real.skip_without_traces()
    unittest.main()
