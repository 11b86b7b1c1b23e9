# SPDX-License-Identifier: Apache-2.0
"""`perftracker simulate`: its files, their determinism, and that gross faults are found."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import tempfile
import unittest
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = os.environ.get("PERFTRACKER_PROGRAM", str(ROOT / "build" / "src" / "cmd" / "perftracker"))


def ranks_of(text: str) -> set[int]:
    """Of "0-2,7"."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


class Simulate(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def call(self, *words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=120, check=False
        )

    def simulate(self, name: str, *words: object, folder: str = "job") -> dict[str, Any]:
        done = self.call("simulate", "--scenario", name, *words, "-o", self.folder / folder)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        return json.loads((self.folder / folder / "truth.json").read_text(encoding="utf-8"))

    def judged(self, command: str = "analyze", folder: str = "job") -> dict[str, Any]:
        done = self.call(command, "--format", "json", self.folder / folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def bytes_of(self, folder: str) -> dict[str, bytes]:
        return {p.name: p.read_bytes() for p in sorted((self.folder / folder).iterdir())}

    def test_the_same_options_give_the_same_bytes(self) -> None:
        for level in ("events", "fingerprints"):
            for folder in ("a", "b"):
                self.simulate("mixed", "--workers", 4, "--level", level, folder=folder)
            self.assertEqual(self.bytes_of("a"), self.bytes_of("b"))
        for folder in ("c", "d"):
            self.simulate("hang-lock", "--dumps", "recorder,stacks,py-spy", folder=folder)
        self.assertEqual(self.bytes_of("c"), self.bytes_of("d"))

    def test_each_job_that_hangs_is_told_as_far_as_its_dumps_show(self) -> None:
        """Never another rank than the true one; where the dumps show it, that one and its cause."""
        listed = json.loads(self.call("simulate", "--list", "--format", "json").stdout)
        names = [one["name"] for one in listed if "dumps" in one]
        self.assertGreater(len(names), 10)
        for seed, name in enumerate(names):
            truth = self.simulate(name, "--workers", 16, "--seed", seed, folder=name)
            report = self.judged(folder=name)
            accused: set[int] = set()
            for finding in report["findings"]:
                accused |= ranks_of(finding["ranks"])
            said = (name, seed, report["reason"], accused)
            if not truth["hangs"] or truth["rank"] is None:
                self.assertFalse(accused, said)
            elif accused and not truth["pair"]:
                self.assertEqual(accused, {truth["rank"]}, said)
                self.assertIn(report["findings"][0]["cause"], truth["causes_accepted"], said)
            self.assertTrue(accused or not truth["knowable"] or name == "hang-skipped", said)

    def test_dumps_have_the_time_of_a_timeout(self) -> None:
        """Dumps that are as old as their latest collective show no hang."""
        self.simulate("hang-behind", "--dumps", "recorder", "--seed", 5)
        self.assertEqual(self.judged()["verdict"], "abnormal")
        for path in (self.folder / "job").glob("nccl_trace_rank_*"):
            written_s = path.stat().st_mtime - 617
            os.utime(path, (written_s, written_s))
        report = self.judged()
        self.assertEqual((report["verdict"], report["findings"]), ("inconclusive", []))
        self.assertIn("the job may go on", report["reason"])

    def test_wrong_words_of_dumps_are_refused(self) -> None:
        done = self.call("simulate", "-s", "hang-lock", "--dumps", "recorder,gdb", "-o", "x")
        self.assertEqual(done.returncode, 2)
        self.assertIn("recorder,stacks,py-spy", done.stderr)

    def test_another_seed_gives_another_job(self) -> None:
        for seed in (1, 2):
            self.simulate("mixed", "--workers", 4, "--seed", seed, folder=f"{seed}")
        self.assertNotEqual(self.bytes_of("1"), self.bytes_of("2"))

    def test_a_trace_is_read_without_a_complaint(self) -> None:
        self.simulate("healthy-megatron", "--workers", 8, "--pipeline", 2)
        report = self.judged()
        self.assertEqual(report["coverage"]["workers_analyzed"], 8)
        self.assertEqual(report["job"]["world_size"], 8)
        self.assertFalse([n for n in report["notes"] if "events" in n or "values" in n])

    def test_workers_that_sent_nothing_have_no_file(self) -> None:
        truth = self.simulate("missing-workers")
        missing = ranks_of(truth["missing"])
        self.assertEqual(len(missing), 2)
        for rank in range(16):
            there = (self.folder / "job" / f"rank{rank}.json.gz").exists()
            self.assertEqual(there, rank not in missing)
        self.assertEqual(ranks_of(self.judged()["coverage"]["ranks_missing"]), missing)

    def test_a_healthy_job_is_healthy_at_both_levels(self) -> None:
        self.assertEqual(self.simulate("healthy")["verdict"], "healthy")
        self.assertEqual(self.judged()["verdict"], "healthy")
        self.simulate("healthy", "--level", "fingerprints", folder="fp")
        self.assertEqual(self.judged("localize", "fp")["verdict"], "healthy")

    def test_gross_faults_of_one_worker_are_found(self) -> None:
        for name in ("gpu-throttle", "python-slow-one", "pinned-stall", "load-imbalance"):
            with self.subTest(scenario=name):
                fault = self.simulate(name, "--strength", 2, folder=name)["faults"][0]
                first = self.judged(folder=name)["findings"][0]
                self.assertIn(first["cause"], fault["causes_accepted"])
                self.assertEqual(ranks_of(first["ranks"]), ranks_of(fault["ranks"]))

    def test_a_fault_of_all_workers_is_found(self) -> None:
        fault = self.simulate("storage-slow", "--strength", 2)["faults"][0]
        first = self.judged()["findings"][0]
        self.assertEqual((first["cause"], first["scope"]), (fault["cause"], "all"))

    def test_case_1_and_case_2_of_the_paper_are_of_their_size(self) -> None:
        for name, workers in (("c1", 2560), ("C2", 3072)):
            words = ("--level", "fingerprints", "--iterations", 1)
            truth = self.simulate(name, *words, folder=name)
            self.assertEqual(truth["workers"], workers)
            self.assertEqual(len(list((self.folder / name).glob("*.ptfp"))), workers)

    def test_the_list_is_for_people_and_programs(self) -> None:
        done = self.call("simulate", "--list", "--format", "json")
        names = {s["name"] for s in json.loads(done.stdout)}
        self.assertTrue({"C1P1", "C1P2", "C2P1", "C2P2", "C2P3", "EROICA", "healthy"} <= names)
        self.assertIn("nic-bond", self.call("simulate", "--list").stdout)

    def test_wrong_calls_are_errors(self) -> None:
        wrong = (
            ["--scenario", "healthy"],
            ["-o", "x"],
            ["--scenario", "helthy", "-o", self.folder / "x"],
            ["--scenario", "healthy", "--workers", "65", "-o", self.folder / "x"],
            ["--scenario", "healthy", "--strength", "nan", "-o", self.folder / "x"],
            ["--scenario", "healthy", "--counters", "sm", "-o", self.folder / "x"],
            ["--scenario", "healthy", "--level", "bytes", "-o", self.folder / "x"],
            ["healthy"],
        )
        for words in wrong:
            with self.subTest(words=words):
                done = self.call("simulate", *words)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn("perftracker simulate", done.stderr)


if __name__ == "__main__":
    unittest.main()
