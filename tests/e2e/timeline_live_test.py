# SPDX-License-Identifier: Apache-2.0
"""`perftracker timeline` on a real job of four ranks: running, hanging, and dead."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest
from collections.abc import Callable, Iterator
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "live"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from live import PROGRAM, LiveTest, TorchLiveTest  # noqa: E402
from live import RANKS as LAUNCHER  # noqa: E402
from timeline_test import assert_valid  # noqa: E402

RANKS = 4
VICTIM = 2


def slices_of(trace: dict[str, Any], rank: int, category: str) -> list[dict[str, Any]]:
    """Slices of one rank; its pid in the trace is its position among the ranks."""
    order = [about["rank"] for about in trace["otherData"]["ranks"]]
    pid = order.index(rank) + 1
    events = trace["traceEvents"]
    return [e for e in events if e["ph"] == "X" and e["pid"] == pid and e["cat"] == category]


class RealJob(TorchLiveTest):
    @contextlib.contextmanager
    def training(self, steps: int, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """A small model: what is looked at does not depend on it. The launcher ends its ranks."""
        script = (str(ROOT / "examples" / "train_ddp.py"), "--steps", str(steps))
        small = ("--width", "32", "--length", "16", "--rows", "1")
        command = (self.python, LAUNCHER, str(RANKS), *script, *small)
        with self.job("--quiet", *words, "--", *command) as job:
            try:
                yield job
            finally:
                job.terminate()
                job.communicate(timeout=60)

    def timeline(self, *words: str) -> dict[str, Any]:
        """From a shell that knows of no job but by the job's folder."""
        env = {**self.env, "XDG_RUNTIME_DIR": str(self.folder / "elsewhere")}
        command = [PROGRAM, "timeline", *words, str(self.out)]
        done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("was not asked", done.stderr)
        trace = json.loads(pathlib.Path(done.stdout.strip()).read_text())
        assert_valid(self, trace)
        return trace

    def assert_shows_all(self, trace: dict[str, Any]) -> None:
        """What a person needs of each rank."""
        self.assertEqual([r["rank"] for r in trace["otherData"]["ranks"]], list(range(RANKS)))
        names = [e for e in trace["traceEvents"] if e["name"] == "process_name"]
        host = os.uname().nodename
        for rank, name in enumerate(names):
            self.assertEqual(name["args"]["name"], f"rank {rank} \N{MIDDLE DOT} {host}")
            for category in ("iteration", "collective", "python"):
                self.assertTrue(slices_of(trace, rank, category), (rank, category))

    def await_true(self, what: Callable[[], object], limit_s: float = 240) -> None:
        deadline = time.monotonic() + limit_s
        while not what():
            self.assertLess(time.monotonic(), deadline, "it does not happen")
            time.sleep(0.05)

    def state(self, rank: int) -> str:
        return next((w["state"] for w in self.workers() if w["rank"] == rank), "gone")

    def test_a_job_is_asked_in_the_middle_and_goes_on(self) -> None:
        with self.training(150) as job:
            self.await_workers(RANKS, 30)
            first = self.timeline()
            again = self.timeline("--last", "0")
            self.assertIsNone(job.poll())
            out, err = job.communicate(timeout=300)
        self.assertEqual(job.returncode, 0, err.decode())
        self.assertIn(b"step 150 ", out)
        self.assert_shows_all(first)
        self.assert_shows_all(again)
        # Those that all ranks still had when the first was asked.
        reduced = slices_of(again, 0, "collective")[10:-10]
        self.assertTrue(reduced)
        whole = [e for e in reduced if e.get("args", {}).get("of") == RANKS]
        self.assertGreaterEqual(len(whole), 0.9 * len(reduced))
        # Nothing of a job that is over is left to be asked.
        self.assertFalse((self.out / "socket").is_symlink())
        self.assertEqual(len(self.timeline()["otherData"]["ranks"]), RANKS)

    def test_where_a_job_hangs_is_seen_while_it_hangs(self) -> None:
        with self.training(100_000):
            workers = self.await_workers(RANKS, 30)
            victim = next(w["pid"] for w in workers if w["rank"] == VICTIM)
            os.kill(victim, signal.SIGSTOP)
            try:
                self.await_true(lambda: min(w["silent_ms"] for w in self.workers()) > 1500)
                trace = self.timeline()
            finally:
                os.kill(victim, signal.SIGCONT)
            self.await_true(lambda: max(w["silent_ms"] for w in self.workers()) < 1000)
        self.assert_shows_all(trace)
        behind = [about["ends_before_all_ns"] for about in trace["otherData"]["ranks"]]
        self.assertEqual(max(range(RANKS), key=lambda rank: behind[rank]), VICTIM)
        for rank in set(range(RANKS)) - {VICTIM}:
            ends = [e.get("args", {}).get("end") for e in slices_of(trace, rank, "iteration")]
            self.assertIn("not seen", ends)

    def test_what_a_killed_rank_recorded_is_kept(self) -> None:
        # The window must outlast the kill, and neither a slowdown of a busy machine nor a check-up
        # take the first report.
        words = ("--source", "agent", "--window", "300", "--steps", "100000", "--slowdown", "900")
        words += ("--no-checkup",)
        with self.training(100_000, *words) as job:
            workers = self.await_workers(RANKS, 30)
            victim = next(w["pid"] for w in workers if w["rank"] == VICTIM)
            command = [PROGRAM, "profile"]
            with subprocess.Popen(command, env=self.env, stdout=subprocess.DEVNULL) as profile:
                self.await_true(lambda: self.state(VICTIM) == "profiling")
                step = max(w["step"] for w in self.workers())
                self.await_true(lambda: max(w["step"] for w in self.workers()) > step + 5)
                os.kill(victim, signal.SIGKILL)
                log = job.communicate(timeout=120)[1].decode()
                profile.wait(timeout=60)
        self.assertNotEqual(job.returncode, 0)
        trace = self.timeline("--last", "0")
        self.assert_shows_all(trace)
        self.assertTrue(slices_of(trace, VICTIM, "operator"), "the window is not there")
        # Its half of the window is a fingerprint, and the report says so; the log does if no rank
        # had a whole window, and there is no report.
        prints = self.out / "fingerprints" / "1" / f"rank{VICTIM}.ptfp"
        done = self.ask("dump", str(prints))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("aten::", done.stdout)
        told = log
        with contextlib.suppress(FileNotFoundError):
            told = json.dumps(self.report("report-1.json")["failures"])
        self.assertIn("its process ended during the profile", told)
        self.assertIn(str(prints), told)


class Folders(LiveTest):
    def flights(self, folder: str = "flight") -> list[str]:
        return sorted(path.name for path in (self.out / folder).iterdir())

    def test_records_of_an_earlier_job_are_moved_aside(self) -> None:
        self.run_job(*self.fake("--world", "3", "--iterations", "5"))
        self.assertEqual(self.flights(), [f"rank{rank}.flight" for rank in range(3)])
        self.run_job(*self.fake("--world", "2", "--iterations", "5"))
        self.assertEqual(self.flights(), ["rank0.flight", "rank1.flight"])
        [earlier] = (self.out / "earlier").iterdir()
        earlier_flights = sorted(path.name for path in (earlier / "flight").iterdir())
        self.assertEqual(earlier_flights, [f"rank{rank}.flight" for rank in range(3)])

    def test_a_rank_that_begins_anew_leaves_its_predecessors_record(self) -> None:
        fake = " ".join(self.fake("--world", "1", "--iterations", "5")[1:])
        self.run_job("--", "sh", "-c", f"{fake}; {fake}; {fake}")
        self.assertEqual(self.flights(), ["rank0.before.flight", "rank0.flight"])
        done = self.ask("timeline", "-o", "-", str(self.out))
        self.assertEqual(done.returncode, 0, done.stderr)
        ranks = json.loads(done.stdout)["otherData"]["ranks"]
        self.assertEqual([about["rank"] for about in ranks], [0, 0])


if __name__ == "__main__":
    unittest.main()
