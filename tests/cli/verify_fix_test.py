# SPDX-License-Identifier: Apache-2.0
"""`perftracker verify-fix` on reports of simulated jobs, repaired and not, and on wrong inputs."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from typing import Any, ClassVar

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "serve"))
from served import GOLDEN, PROGRAM, Store  # noqa: E402

ENV = {**os.environ, "PERFTRACKER_STORE": "none"}
TRACES = pathlib.Path(os.environ.get("PERFTRACKER_TRACES", "/nonexistent"))
LIMIT_S = 120
STATUS = {"fixed": 0, "partly": 3, "no-gain": 3, "not-fixed": 3, "undecided": 4}


class Verify(unittest.TestCase):
    folder: ClassVar[pathlib.Path]

    @classmethod
    def setUpClass(cls) -> None:
        if not os.access(PROGRAM, os.X_OK):
            raise unittest.SkipTest(f"{PROGRAM} is not built")
        folder = tempfile.TemporaryDirectory(prefix="pt-verify-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)

    def report(self, scenario: str, seed: int, strength: float) -> pathlib.Path:
        traces = self.folder / f"{scenario}-{seed}-{strength}"
        path = traces.with_name(f"{traces.name}.json")
        if path.exists():
            return path
        for words in (
            ["simulate", "-s", scenario, "--seed", str(seed), "--strength", str(strength),
             "--level", "fingerprints", "-o", traces],
            ["localize", traces, "-f", "json", "-o", path],
        ):  # fmt: skip
            subprocess.run(
                [PROGRAM, *words], check=True, capture_output=True, env=ENV, timeout=LIMIT_S
            )
        return path

    def call(self, *words: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PROGRAM, "verify-fix", *map(str, words)], capture_output=True, text=True, env=ENV,
            timeout=LIMIT_S,
        )  # fmt: skip

    def verdict(self, *words: Any) -> dict[str, Any]:
        done = self.call(*words, "--format", "json")
        answer = json.loads(done.stdout)
        self.assertEqual(done.returncode, STATUS[answer["verdict"]], done.stderr)
        return answer

    # Random faults differ more by chance than they promise: there, undecided is right.
    SURE = ("gpu-throttle", "nic-bond", "storage-slow", "python-slow-one", "pinned-stall", "mixed")
    RANDOM = ("gc-random", "neighbor", "gpu-throttle-racks", "straggler-rotating")

    def test_a_repaired_job_is_fixed_and_one_that_is_as_before_is_not(self) -> None:
        for scenario in self.SURE:
            with self.subTest(scenario):
                before = self.report(scenario, 1, 1)
                fixed = self.verdict(before, self.report(scenario, 2, 0))
                self.assertEqual(fixed["verdict"], "fixed")
                self.assertGreater(fixed["returned_ms"], 0.5 * fixed["promised_ms"])
                again = self.verdict(before, self.report(scenario, 2, 1))
                self.assertEqual(again["verdict"], "not-fixed")

    def test_where_chance_is_large_no_sure_answer_is_wrong(self) -> None:
        for scenario in self.RANDOM:
            with self.subTest(scenario):
                before = self.report(scenario, 1, 1)
                fixed = self.verdict(before, self.report(scenario, 2, 0))
                self.assertIn(fixed["verdict"], ("fixed", "undecided"))
                again = self.verdict(before, self.report(scenario, 2, 1))
                self.assertNotIn(again["verdict"], ("fixed", "partly"))

    def test_half_a_repair_is_a_part(self) -> None:
        for scenario in ("python-slow", "storage-slow", "pinned-stall"):
            with self.subTest(scenario):
                answer = self.verdict(self.report(scenario, 1, 1), self.report(scenario, 1, 0.5))
                self.assertEqual(answer["verdict"], "partly")

    def test_other_jobs_and_healthy_ones_are_undecided(self) -> None:
        healthy, slow = self.report("healthy", 1, 1), self.report("python-slow", 1, 1)
        for before, after, says in (
            (healthy, slow, "nothing was promised"),
            (healthy, self.report("healthy", 2, 1), "nothing was promised"),
            (slow, self.report("healthy-megatron", 1, 1), "16 ranks before and has 32"),
            (slow, self.report("missing-workers", 1, 1), "incomplete"),
            (slow, self.report("healthy-pipeline", 1, 1), "other work"),
        ):
            answer = self.verdict(before, after)
            self.assertEqual(answer["verdict"], "undecided")
            self.assertIn(says, answer["reason"])

    def test_folders_and_the_store_are_taken(self) -> None:
        store = Store(self.folder / "store.db")
        self.addCleanup(store.base.close)
        store.job("3fa9d1e0b2c4", "train")
        store.report("3fa9d1e0b2c4", 1, "figure7")
        place = ["--store", store.path]
        answer = self.verdict("train/1", "3fa9/1", *place)
        self.assertEqual((answer["verdict"], answer["finding"]), ("not-fixed", 1))
        answer = self.verdict(GOLDEN / "figure7.json", "train/1", *place, "--finding", "PT-202")
        self.assertEqual(answer["finding"], 3)
        slow = self.report("python-slow", 1, 1)
        folder = self.folder / "reports"
        folder.mkdir()
        (folder / "report.json").write_bytes(slow.read_bytes())
        self.assertEqual(self.verdict(folder, slow)["verdict"], "not-fixed")

    def test_wrong_inputs_get_one_clear_line(self) -> None:
        slow = self.report("python-slow", 1, 1)
        broken, other, empty = (self.folder / name for name in ("b.json", "o.json", "empty"))
        broken.write_text('{"schema": "perftracker.rep', encoding="utf-8")
        other.write_text('{"schema": "perftracker.diff.v1"}', encoding="utf-8")
        empty.mkdir()
        for words, status, says in (
            ((slow,), 2, "expected two reports"),
            ((slow, "/no/such"), 1, "no store"),
            ((slow, "none"), 1, "no such file"),
            ((slow, broken), 1, "expected a report in JSON"),
            ((other, slow), 1, "found perftracker.diff.v1"),
            ((slow, empty), 1, "found none"),
            ((slow, slow, "--finding", "F9"), 1, "no finding F9"),
        ):
            done = self.call(*words)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(says, done.stderr)
            self.assertEqual(done.stdout, "")

    def test_the_text_begins_with_the_answer(self) -> None:
        done = self.call(self.report("python-slow", 1, 1), self.report("python-slow", 2, 0))
        self.assertTrue(done.stdout.startswith("FIXED: "), done.stdout)
        self.assertIn(" came back (+- ", done.stdout)

    @unittest.skipUnless(TRACES.is_dir(), "PERFTRACKER_TRACES names no folder of real traces")
    def test_real_jobs(self) -> None:
        ranks = TRACES / "multi_rank"
        for before, after, verdict in (
            ("dlrm4_sleep_1s", "dlrm4_sleep_20ms", "partly"),  # the same job, a smaller sleep
            ("dlrm4_sleep_20ms", "dlrm4_sleep_1s", "not-fixed"),
            ("dlrm4_sleep_1s", "dlrm4_sleep_1s", "not-fixed"),
            ("megatron_tp2", "resnet18_ddp2", "undecided"),  # two programs of two ranks each
            ("resnet18_ddp2", "megatron_tp2", "undecided"),
        ):
            paths = [self.folder / f"{name}.json" for name in (before, after)]
            for path, name in zip(paths, (before, after), strict=True):
                if not path.exists():
                    words = ["analyze", ranks / name, "-f", "json", "-o", path]
                    subprocess.run(
                        [PROGRAM, *words], check=True, capture_output=True, env=ENV, timeout=LIMIT_S
                    )
            with self.subTest(f"{before} {after}"):
                self.assertEqual(self.verdict(*paths)["verdict"], verdict)


if __name__ == "__main__":
    unittest.main()
