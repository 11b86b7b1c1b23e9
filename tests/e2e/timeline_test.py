# SPDX-License-Identifier: Apache-2.0
"""`perftracker timeline` on the recorders of two ranks, and the rules of the trace format.

The rules (assert_valid) are those of viewers: slices of a thread nest, arrows are complete
and go forward in time, every thread and process has a name, curves are numbers in the order
of time.
"""

from __future__ import annotations

import collections
import json
import os
import pathlib
import shutil
import stat
import subprocess
import tempfile
import unittest
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("PERFTRACKER_BUILD") or ROOT / "build")
PROGRAM = BUILD / "src" / "cmd" / "perftracker"
SAMPLES = BUILD / "src" / "report" / "timeline_test"
HARDWARE = BUILD / "src" / "report" / "hardwaretracks_test"

Event = dict[str, Any]


def ns(us: float) -> int:
    return round(us * 1000)


def assert_nested(test: unittest.TestCase, slices: list[Event]) -> None:
    """In the order of the file: outer before inner, none reaches over the end of another."""
    ends: list[int] = []
    before = 0
    for event in slices:
        begin = ns(event["ts"])
        end = begin + ns(event["dur"])
        test.assertGreaterEqual(begin, before)
        before = begin
        while ends and ends[-1] <= begin:
            ends.pop()
        if ends:
            test.assertLessEqual(end, ends[-1], event)
        ends.append(end)


def assert_arrows(test: unittest.TestCase, events: list[Event]) -> None:
    """One start, one finish, steps between; each point on a slice that has an inside."""
    kinds = {"collective": ("collective",), "launch": ("gpu",)}
    slices = collections.defaultdict(set)
    for event in events:
        if event["ph"] == "X" and event["dur"] > 0:
            slices[event["pid"], event["tid"], event["ts"]].add(event["cat"])
    arrows = collections.defaultdict(list)
    for event in events:
        if event["ph"] in "stf":
            arrows[event["cat"], event["name"], event["id"]].append(event)
            test.assertLess(event["id"], 2**53)
            on = slices[event["pid"], event["tid"], event["ts"]]
            test.assertTrue(on & set(kinds[event["cat"]]), event)
            test.assertEqual(event.get("bp"), None if event["ph"] == "s" else "e")
    for points in arrows.values():
        by_phase = {phase: [p["ts"] for p in points if p["ph"] == phase] for phase in "stf"}
        test.assertEqual((len(by_phase["s"]), len(by_phase["f"])), (1, 1))
        for time in by_phase["t"]:
            test.assertLessEqual(by_phase["s"][0], time)
            test.assertLessEqual(time, by_phase["f"][0])
        test.assertLessEqual(by_phase["s"][0], by_phase["f"][0])


def assert_curves(test: unittest.TestCase, events: list[Event]) -> None:
    """Numbers, in the order of time; one that is a point for many samples lies between these."""
    before: dict[tuple[int, str], float] = {}
    for event in events:
        if event["ph"] != "C":
            continue
        curve = event["pid"], event["name"]
        test.assertLess(before.get(curve, -1), event["ts"], event)
        before[curve] = event["ts"]
        values = event["args"]
        test.assertTrue(values)
        for value in values.values():
            test.assertIsInstance(value, (int, float))
        if "max" in values:
            test.assertLessEqual(values["min"], values["mean"] + 1e-3)
            test.assertLessEqual(values["mean"], values["max"] + 1e-3)


def assert_valid(test: unittest.TestCase, trace: dict[str, Any]) -> None:
    events = trace["traceEvents"]
    named = {(e["pid"], e["tid"]) for e in events if e["name"] in ("thread_name", "process_name")}
    threads = collections.defaultdict(list)
    for event in events:
        test.assertIn(event["ph"], "XCMstfi")
        test.assertIsInstance(event["name"], str)
        if event["ph"] != "M":
            test.assertGreaterEqual(event["ts"], 0)
            test.assertIn((event["pid"], 0), named)
        if event["ph"] == "i":
            test.assertIn(event["s"], ("g", "p", "t"))
        if event["ph"] == "X":
            test.assertIn((event["pid"], event["tid"]), named)
            threads[event["tid"]].append(event)
    for tid, slices in threads.items():
        test.assertEqual(len({e["pid"] for e in slices}), 1, tid)
        assert_nested(test, slices)
    assert_arrows(test, events)
    assert_curves(test, events)


class Timeline(unittest.TestCase):
    def setUp(self) -> None:
        for needed in (PROGRAM, SAMPLES):
            if not os.access(needed, os.X_OK):
                self.skipTest(f"{needed} is not built")
        folder = tempfile.TemporaryDirectory(prefix="pt-timeline-")
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name) / "out"
        self.flight = self.out / "flight"
        self.flight.mkdir(parents=True)
        subprocess.run([SAMPLES, "--write", self.flight], check=True)
        # No job of this machine is to be asked.
        self.env = {**os.environ, "XDG_RUNTIME_DIR": folder.name}

    def call(self, *words: str | pathlib.Path) -> subprocess.CompletedProcess[str]:
        command = [str(PROGRAM), "timeline", *map(str, words)]
        return subprocess.run(
            command, capture_output=True, text=True, env=self.env, cwd=self.out, check=False
        )

    def trace(self, *words: str | pathlib.Path) -> dict[str, Any]:
        done = self.call("-o", "-", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = json.loads(done.stdout)
        assert_valid(self, trace)
        return trace

    def test_the_folder_of_a_job_becomes_a_file_in_it(self) -> None:
        done = self.call(self.out)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        path = pathlib.Path(done.stdout.strip())
        self.assertEqual(path, self.out / "timeline.json")
        assert_valid(self, json.loads(path.read_text()))
        self.assertEqual(sorted(p.name for p in self.out.iterdir()), ["flight", "timeline.json"])

    def test_files_are_as_good_as_their_folder(self) -> None:
        files = sorted(self.flight.iterdir())
        self.assertEqual(self.trace(*reversed(files)), self.trace(self.out))
        self.assertEqual(self.trace(self.flight), self.trace(self.out))

    def test_five_seconds_between_the_clocks_are_taken_off(self) -> None:
        ranks = self.trace(self.out)["otherData"]["ranks"]
        self.assertEqual(ranks[1]["clock"], "collectives")
        self.assertEqual(ranks[1]["clock_offset_ns"], -5_000_000_000)

    def test_what_is_one_collective_ends_at_one_moment(self) -> None:
        events = self.trace("--last", "0", self.out)["traceEvents"]
        slices = {(e["tid"], e["ts"]): e for e in events if e["ph"] == "X"}
        ends = collections.defaultdict(list)
        for event in events:
            if event["ph"] in "stf":
                of = slices[event["tid"], event["ts"]]
                ends[event["id"]].append(of["ts"] + of["dur"])
        self.assertTrue(ends)
        for moments in ends.values():
            self.assertLessEqual(max(moments) - min(moments), 100)

    def test_wall_clocks_are_believed_on_request(self) -> None:
        trace = self.trace("--no-align", self.out)
        self.assertEqual(trace["otherData"]["ranks"][1]["clock"], "wall clock")
        self.assertEqual(trace["otherData"]["ranks"][1]["clock_offset_ns"], 0)

    def test_ranks_are_chosen(self) -> None:
        trace = self.trace("--ranks", "1", self.out)
        self.assertEqual([r["rank"] for r in trace["otherData"]["ranks"]], [1])
        done = self.call("--ranks", "7", self.out)
        self.assertEqual(done.returncode, 1)
        self.assertIn("of these ranks", done.stderr)

    def test_the_last_part_is_no_longer_than_asked_for(self) -> None:
        slices = [e for e in self.trace("--last", "0.1", self.out)["traceEvents"] if "dur" in e]
        self.assertTrue(slices)
        self.assertLessEqual(max(e["ts"] + e["dur"] for e in slices), 100_000)

    def keep_sidecar(self, path: pathlib.Path) -> None:
        if not os.access(HARDWARE, os.X_OK):
            self.skipTest(f"{HARDWARE} is not built")
        path.parent.mkdir(exist_ok=True)
        subprocess.run([HARDWARE, "--write", path], check=True)

    def hardware(self, *words: str | pathlib.Path) -> list[Event]:
        """Curves and moments of GPUs; each window has a slice with its time."""
        events = self.trace(*words)["traceEvents"]
        found = [e for e in events if e["ph"] in "Ci" and e["name"].startswith("GPU 0:")]
        windows = [e for e in events if e["name"] == "hardware was sampled"]
        self.assertEqual(bool(found), bool(windows))
        return found

    def test_hardware_of_kept_traces_is_drawn(self) -> None:
        everything = ("--last", "0")
        self.assertEqual(self.hardware(*everything, self.out), [])
        self.keep_sidecar(self.out / "traces" / "0-1.flight.sidecar")
        found = self.hardware(*everything, self.out)
        self.assertIn("GPU 0: fault 79", {e["name"] for e in found})
        self.assertEqual(sum(e["ph"] == "C" for e in found), 200)
        self.assertEqual(self.hardware(*everything, "--ranks", "1", self.out), [])

    def test_hardware_beside_a_recorder_is_drawn(self) -> None:
        self.keep_sidecar(self.flight / "rank0.flight.sidecar")
        files = sorted(self.flight.glob("*.flight"))
        self.assertTrue(self.hardware("--last", "0", *files))
        self.assertTrue(self.hardware("--last", "0", self.out))

    def test_a_broken_sidecar_does_not_stop_the_others(self) -> None:
        self.keep_sidecar(self.out / "traces" / "0-1.flight.sidecar")
        (self.out / "traces" / "1-1.flight.sidecar").write_bytes(b"not a sidecar")
        done = self.call("--last", "0", "-o", "-", self.out)
        self.assertEqual(done.returncode, 0)
        self.assertIn("left out: ", done.stderr)
        self.assertIn("GPU 0: fault 79", done.stdout)

    def test_a_broken_file_does_not_stop_the_others(self) -> None:
        (self.flight / "rank2.flight").write_bytes(b"not a recorder")
        done = self.call(self.out)
        self.assertEqual(done.returncode, 0)
        self.assertIn("left out: ", done.stderr)
        self.assertIn("rank2.flight", done.stderr)

    def test_a_folder_without_recorders_says_what_to_do(self) -> None:
        shutil.rmtree(self.flight)
        done = self.call(self.out)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("perftracker run -o", done.stderr)
        self.assertFalse((self.out / "timeline.json").exists())

    def test_a_full_disk_is_reported(self) -> None:
        if not stat.S_ISCHR(os.stat("/dev/full").st_mode):
            self.skipTest("no /dev/full")
        done = self.call("-o", "/dev/full", self.out)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write", done.stderr)

    def test_wrong_words_are_usage_errors(self) -> None:
        for words in ([], ["--last", "x", "."], ["--ranks", "a", "."], ["--format", "x", "."]):
            with self.subTest(words=words):
                self.assertEqual(self.call(*words).returncode, 2)


if __name__ == "__main__":
    unittest.main()
