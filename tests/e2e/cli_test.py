# SPDX-License-Identifier: Apache-2.0
"""The program as people call it: help, errors, files in and out, jobs passed through.

Texts are compared with tests/golden/cli; PERFTRACKER_UPDATE_GOLDEN=1
writes them anew.
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = ROOT / "build" / "src" / "cmd" / "perftracker"
GOLDEN = ROOT / "tests" / "golden" / "cli"
COMMANDS = [
    "run",
    "profile",
    "accept",
    "stacks",
    "flame",
    "replay",
    "roofline",
    "stalls",
    "status",
    "timeline",
    "analyze",
    "diff",
    "summarize",
    "localize",
    "simulate",
    "dump",
    "doctor",
    "gpu-sampler",
]


def call(*words: str | pathlib.Path, folder: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(PROGRAM), *map(str, words)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def event(category: str, name: str, span_us: tuple[float, float], lane: int = 1) -> dict[str, Any]:
    begin, end = span_us
    known = {"ph": "X", "pid": 1, "tid": lane, "args": {}}
    return {**known, "cat": category, "name": name, "ts": begin, "dur": end - begin}


def write_trace(path: pathlib.Path, rank: int, gather_us: float) -> None:
    """Six steps of 32 ms: 10 ms of compute, a gather, an all-reduce that ends on all at 31 ms."""
    events = []
    for step in range(6):
        begin = 1000.0 + 32_000 * step
        late = begin + 10_000 + gather_us
        events += [
            event("user_annotation", f"ProfilerStep#{step}", (begin, begin + 32_000)),
            event("cpu_op", "aten::mm", (begin + 10, begin + 9_990)),
            event("cpu_op", "aten::gather", (begin + 10_000, late)),
            event("cpu_op", "c10d::allreduce_", (late + 10, late + 50)),
            event("user_annotation", "gloo:all_reduce", (late + 60, begin + 31_000), lane=2),
        ]
    info = {"backend": "gloo", "rank": rank, "world_size": 2}
    path.write_text(json.dumps({"distributedInfo": info, "traceEvents": events}))


class Texts(unittest.TestCase):
    def golden(self, name: str, text: str) -> None:
        path = GOLDEN / name
        if os.environ.get("PERFTRACKER_UPDATE_GOLDEN"):
            GOLDEN.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.assertEqual(text, path.read_text())

    def test_help_of_every_command_is_as_agreed(self) -> None:
        self.golden("help.txt", call("--help").stdout)
        for command in COMMANDS:
            with self.subTest(command=command):
                done = call(command, "--help")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.golden(f"{command}.help.txt", done.stdout)

    def test_an_unknown_command_is_a_usage_error(self) -> None:
        done = call("anlyze")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.golden("unknown-command.txt", done.stderr)

    def test_unknown_options_are_usage_errors(self) -> None:
        for command in COMMANDS:
            with self.subTest(command=command):
                done = call(command, "--no-such-option")
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn("--help", done.stderr)

    def test_nothing_to_analyze_is_a_usage_error(self) -> None:
        self.assertEqual(call("analyze").returncode, 2)

    def test_the_error_names_a_missing_file(self) -> None:
        done = call("analyze", "/nonexistent/trace.json")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("/nonexistent/trace.json", done.stderr.splitlines()[0])


class Traces(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        for rank, gather_us in ((0, 3000.0), (1, 18_000.0)):
            write_trace(self.folder / f"rank{rank}.json", rank, gather_us)

    def test_the_late_rank_is_named(self) -> None:
        done = call("analyze", "--format", "json", self.folder)
        report = json.loads(done.stdout)
        self.assertEqual((done.returncode, report["verdict"]), (0, "abnormal"))
        self.assertEqual(report["findings"][0]["ranks"], "1")
        self.assertIn("aten::gather", report["findings"][0]["function"]["name"])

    def test_exit_code_makes_findings_an_exit_status(self) -> None:
        self.assertEqual(call("analyze", "--exit-code", self.folder).returncode, 3)

    def test_halves_say_what_the_whole_says(self) -> None:
        (self.folder / "prints").mkdir()
        prints = [self.folder / "prints" / f"rank{rank}.ptfp" for rank in (0, 1)]
        for rank, out in enumerate(prints):
            done = call("summarize", self.folder / f"rank{rank}.json", "-o", out)
            self.assertEqual(done.returncode, 0, done.stderr)
        halves = json.loads(call("localize", "--format", "json", *prints).stdout)
        whole = json.loads(call("analyze", "--format", "json", self.folder).stdout)
        self.assertEqual(halves["findings"], whole["findings"])
        self.assertIn("aten::mm", call("dump", prints[0]).stdout)

    def test_same_files_give_same_bytes(self) -> None:
        for form in ("json", "html"):
            first, again = (call("analyze", "--format", form, self.folder) for _ in range(2))
            self.assertEqual(first.stdout, again.stdout)

    def test_a_broken_file_costs_only_itself(self) -> None:
        path = self.folder / "rank2.json"
        path.write_text('{"traceEvents": [{"ph": ')
        done = call("analyze", "--format", "json", self.folder)
        report = json.loads(done.stdout)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(report["findings"][0]["ranks"], "1")
        self.assertIn("rank2.json", json.dumps(report["failures"]))

    def test_a_page_is_written_where_asked(self) -> None:
        out = self.folder / "report.html"
        self.assertEqual(call("analyze", "-f", "html", "-o", out, self.folder).returncode, 0)
        self.assertIn("<html", out.read_text())


class Jobs(unittest.TestCase):
    """Commands that have no torch in them run unharmed."""

    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.out = temporary.name

    def test_output_and_exit_status_pass_through(self) -> None:
        done = call("run", "--out", self.out, "--", "sh", "-c", "echo said; exit 7")
        self.assertEqual((done.returncode, done.stdout), (7, "said\n"))

    def test_a_command_that_is_not_there_gives_127(self) -> None:
        self.assertEqual(call("run", "--out", self.out, "--", "/nonexistent/job").returncode, 127)

    def test_a_signal_reaches_the_job(self) -> None:
        script = "trap 'echo caught; exit 5' TERM; echo ready; while :; do sleep 0.1; done"
        command = [str(PROGRAM), "run", "--out", self.out, "--", "sh", "-c", script]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, text=True, **pipes) as job:
            assert job.stdout
            self.assertEqual(job.stdout.readline(), "ready\n")
            job.send_signal(signal.SIGTERM)
            begin_s = time.monotonic()
            self.assertEqual(job.stdout.read(), "caught\n")
            self.assertEqual(job.wait(timeout=20), 5)
            self.assertLess(time.monotonic() - begin_s, 20)


if __name__ == "__main__":
    unittest.main()
