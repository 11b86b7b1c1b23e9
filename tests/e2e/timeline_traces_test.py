# SPDX-License-Identifier: Apache-2.0
"""`perftracker timeline` on plain traces: of simulated jobs, and of other people's."""

from __future__ import annotations

import collections
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest
from typing import Any

import timeline_test as viewer

TRACES = pathlib.Path(
    os.environ.get("PERFTRACKER_TRACES", viewer.ROOT.parent / "shared" / "traces")
)
Trace = dict[str, Any]


def slices(trace: Trace, category: str) -> list[viewer.Event]:
    return [e for e in trace["traceEvents"] if e.get("cat") == category]


class Pictures(unittest.TestCase):
    def setUp(self) -> None:
        if not os.access(viewer.PROGRAM, os.X_OK):
            self.skipTest(f"{viewer.PROGRAM} is not built")
        folder = tempfile.TemporaryDirectory(prefix="pt-timeline-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def call(self, *words: str | pathlib.Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(viewer.PROGRAM), *map(str, words)],
            capture_output=True,
            text=True,
            cwd=self.folder,
            check=False,
        )

    def simulate(self, scenario: str, *words: str) -> pathlib.Path:
        job = self.folder / scenario
        done = self.call("simulate", "-s", scenario, *words, "-o", job)
        self.assertEqual(done.returncode, 0, done.stderr)
        return job

    def trace(self, *words: str | pathlib.Path) -> Trace:
        done = self.call("timeline", "-o", "-", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = json.loads(done.stdout)
        viewer.assert_valid(self, trace)
        return trace


class Simulated(Pictures):
    def test_a_slow_function_is_marked_on_its_rank_alone(self) -> None:
        job = self.simulate("python-slow-one", "--workers=8")
        trace = self.trace(job)
        found = trace["otherData"]["findings"][0]
        pids = {r["rank"]: i + 1 for i, r in enumerate(trace["otherData"]["ranks"])}
        marked = slices(trace, "finding")
        self.assertTrue(marked)
        self.assertEqual({e["pid"] for e in marked}, {pids[int(found["ranks"])]})
        named = [e for e in marked if e.get("args", {}).get("finding") == found["id"]]
        self.assertGreater(len(named), 3)

    def test_clocks_of_hosts_are_aligned_by_ends_of_collectives(self) -> None:
        job = self.simulate("healthy", "--workers=16")
        apart, aligned = self.trace("--no-align", job), self.trace(job)
        self.assertGreater(self.spread_of_ends(apart), 1000)
        self.assertLess(self.spread_of_ends(aligned), 100)

    def spread_of_ends(self, trace: Trace) -> float:
        """us by which the ends of one collective differ between ranks: the largest."""
        ends: dict[int, list[float]] = collections.defaultdict(list)
        for event in slices(trace, "kernel"):
            if "AllReduce" in event["name"]:
                ends[event["pid"]].append(event["ts"] + event["dur"])
        counts = {len(e) for e in ends.values()}
        self.assertEqual(len(ends), 16)
        last = [list(e)[-min(counts) :] for e in ends.values()]
        return max(max(same) - min(same) for same in zip(*last, strict=True))

    def test_a_compressed_file_is_the_same_picture(self) -> None:
        job = self.simulate("healthy", "--workers=2")
        done = self.call("timeline", "-o", self.folder / "all.json.gz", job)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with gzip.open(self.folder / "all.json.gz", "rt", encoding="utf-8") as file:
            self.assertEqual(json.load(file), self.trace(job))

    def test_ranks_and_the_last_part_are_chosen(self) -> None:
        job = self.simulate("healthy", "--workers=4")
        trace = self.trace("--ranks=1,3", "--last=0.2", job)
        self.assertEqual([r["rank"] for r in trace["otherData"]["ranks"]], [1, 3])
        self.assertLessEqual(max(e["ts"] for e in slices(trace, "kernel")), 200_000)
        done = self.call("timeline", "--ranks=9", job)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("--ranks", done.stderr)

    def test_recorders_and_traces_are_not_mixed(self) -> None:
        job = self.simulate("healthy", "--workers=2")
        (self.folder / "rank0.flight").write_bytes(b"")
        done = self.call("timeline", job / "rank0.json.gz", self.folder / "rank0.flight")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("found both", done.stderr)

    def test_fingerprints_have_nothing_to_draw(self) -> None:
        job = self.simulate("healthy", "--workers=2", "--level=fingerprints")
        done = self.call("timeline", job)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("fingerprint", done.stderr)

    def test_a_broken_trace_does_not_stop_the_others(self) -> None:
        job = self.simulate("healthy", "--workers=3")
        (job / "rank1.json.gz").write_bytes(b"no trace")
        done = self.call("timeline", "-o", "-", job)
        self.assertEqual(done.returncode, 0)
        self.assertIn("left out", done.stderr)
        ranks = [r["rank"] for r in json.loads(done.stdout)["otherData"]["ranks"]]
        self.assertEqual(ranks, [0, 2])

    def test_a_full_disk_is_reported_and_leaves_no_file(self) -> None:
        job = self.simulate("healthy", "--workers=2")
        done = self.call("timeline", "-o", "/dev/full", job)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("cannot write", done.stderr)
        done = self.call("timeline", "-o", self.folder / "none" / "a.json.gz", job)
        self.assertEqual(done.returncode, 1)


class Real(Pictures):
    def setUp(self) -> None:
        super().setUp()
        if not TRACES.is_dir():
            self.skipTest(f"no traces at {TRACES}; set PERFTRACKER_TRACES")

    def test_the_sleep_of_rank_2_is_marked_where_it_is(self) -> None:
        for name, ms in (("dlrm4_sleep_1s", 1001), ("dlrm4_sleep_20ms", 20.2)):
            with self.subTest(set=name):
                trace = self.trace(TRACES / "multi_rank" / name)
                marked = slices(trace, "finding")
                self.assertEqual({e["pid"] for e in marked}, {3})
                idle = [e["dur"] / 1000 for e in marked if e["name"].startswith("idle in")]
                self.assertEqual(len(idle), 3)
                for duration in idle:
                    self.assertAlmostEqual(duration, ms, delta=0.02 * ms)

    def test_every_set_and_every_single_trace_is_a_valid_picture(self) -> None:
        inputs = [*(TRACES / "multi_rank").iterdir(), *(TRACES / "nsys").glob("*.sqlite")]
        inputs += (TRACES / "single").rglob("*.json.gz")
        self.assertGreater(len(inputs), 8)
        for path in sorted(inputs):
            with self.subTest(inputs=path.name):
                shutil.rmtree(self.folder / "x", ignore_errors=True)
                self.trace("--last=0", path)


if __name__ == "__main__":
    unittest.main()
