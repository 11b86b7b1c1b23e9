# SPDX-License-Identifier: Apache-2.0
"""What is kept of a job: `perftracker jobs`, `history` and `report`, and a store that fails."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from live import PROGRAM, QUICK, LiveTest, children  # noqa: E402


class Store(LiveTest):
    def setUp(self) -> None:
        super().setUp()
        self.store = pathlib.Path(self.env["PERFTRACKER_STORE"])

    def slow_job(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        fake = ("--slow-at", "80", "--iterations", "130", *self.until_report())
        done = self.run_job(*QUICK, "--no-checkup", *words, *self.fake(*fake), limit_s=120)
        self.assertEqual((done.returncode, done.stdout), (0, b"job done\n"), done.stderr.decode())
        return done

    def asked(self, *words: str) -> str:
        done = self.ask(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def jobs(self) -> list[dict]:
        return json.loads(self.asked("jobs", "--format", "json"))["jobs"]

    def test_a_slow_job_is_kept_with_its_report_its_pace_and_its_findings(self) -> None:
        self.slow_job("--job-name", "gpt")
        (job,) = self.jobs()
        self.assertEqual((job["name"], job["state"], job["exit_status"]), ("gpt", "ended", 0))
        self.assertEqual((job["workers"], job["not_kept"]), (2, 0))
        self.assertGreaterEqual(job["step"], 100)
        self.assertEqual(job["folder"], str(self.out))
        self.assertEqual(job["verdict"], self.report()["verdict"])
        history = json.loads(self.asked("history", "gpt", "--format", "json"))
        first = next(r for r in history["reports"] if r["report"] == f"{job['job']}/1")
        written = self.report("report-1.json")
        self.assertEqual(first["verdict"], written["verdict"])
        self.assertEqual(
            [(f["id"], f["title"]) for f in first["findings"]],
            [(f["id"], f["title"]) for f in written["findings"]],
        )
        kinds = [event["kind"] for event in history["events"]]
        for kind in ("slow", "order", "end"):
            self.assertIn(kind, kinds)
        # The pace as the store has it: before and after.
        means = [point["mean_ms"] for point in history["pace"]]
        self.assertGreater(max(means), 2 * min(means))
        self.assertTrue(all(p["least_ms"] <= p["mean_ms"] <= p["most_ms"] for p in history["pace"]))

    def test_a_report_comes_back_byte_by_byte(self) -> None:
        self.slow_job("--job-name", "gpt")
        key = self.jobs()[0]["job"]
        for form, suffix in (("text", "txt"), ("json", "json"), ("html", "html")):
            written = (self.out / f"report-1.{suffix}").read_text()
            self.assertEqual(self.asked("report", f"{key[:6]}/1", "--format", form), written)

    def test_fingerprints_of_a_report_can_be_localized_again(self) -> None:
        self.slow_job("--job-name", "gpt")
        again = self.folder / "again"
        self.asked("report", "gpt/1", "--fingerprints", str(again), "--output", os.devnull)
        found = json.loads(self.asked("localize", str(again), "--format", "json"))
        self.assertEqual(found["verdict"], self.report("report-1.json")["verdict"])

    def test_nothing_is_kept_when_asked_so(self) -> None:
        self.run_job("--store", "none", *self.fake("--iterations", "30"))
        self.assertFalse(self.store.exists())
        done = self.ask("jobs")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no job is kept there yet", done.stderr)

    def test_a_job_runs_and_reports_when_the_store_cannot_be_made(self) -> None:
        done = self.slow_job("--store", "/proc/nowhere/store.db")
        said = [x for x in done.stderr.decode().splitlines() if "event=store-fails" in x]
        self.assertEqual(len(said), 1, done.stderr.decode())
        self.assertIn("/proc/nowhere/store.db", said[0])

    def test_a_store_that_another_process_holds_gets_the_job_later(self) -> None:
        self.slow_job("--job-name", "first")
        other = sqlite3.connect(self.store, isolation_level=None)
        self.addCleanup(other.close)
        with self.job("--job-name", "second", *QUICK, *self.fake("--iterations", "100000")) as run:
            self.await_workers(2, 60)
            other.execute("BEGIN EXCLUSIVE")
            time.sleep(12)  # longer than the store waits for a lock
            other.execute("ROLLBACK")
            run.send_signal(signal.SIGINT)
            run.wait(60)
        second = next(job for job in self.jobs() if job["name"] == "second")
        history = json.loads(self.asked("history", "second", "--format", "json"))
        self.assertEqual(second["not_kept"], 0)
        self.assertEqual(history["events"][-1]["kind"], "end")
        self.assertEqual([e["kind"] for e in history["events"][:2]], ["machine", "state"])

    def test_a_daemon_that_was_killed_leaves_what_it_had_written(self) -> None:
        with self.job("--job-name", "killed", *QUICK, *self.fake("--iterations", "100000")) as run:
            self.await_workers(2, 60)
            deadline = time.monotonic() + 60
            while not (self.store.exists() and self.ask("jobs").stdout.count("killed")):
                self.assertLess(time.monotonic(), deadline, "the job is not in the store")
                time.sleep(0.5)
            program = os.path.realpath(PROGRAM)
            daemon = next(
                pid for pid in children(run.pid) if os.readlink(f"/proc/{pid}/exe") == program
            )
            os.kill(daemon, signal.SIGKILL)
        (job,) = self.jobs()
        self.assertEqual(job["ended"], None)
        connection = sqlite3.connect(self.store)
        self.assertEqual(connection.execute("PRAGMA integrity_check").fetchone(), ("ok",))
        connection.execute("UPDATE job SET seen_ns = seen_ns - 120000000000")
        connection.commit()
        connection.close()
        self.assertEqual(self.jobs()[0]["state"], "lost")

    def test_what_is_asked_wrongly_is_told(self) -> None:
        self.slow_job("--job-name", "gpt")
        for words, said in (
            (("history", "other"), "no job 'other'"),
            (("report", "gpt/7"), "no report"),
            (("report", "gpt/x"), "expected JOB/NUMBER"),
            (("jobs", "--store", str(self.folder / "none.db")), "no job is kept there yet"),
        ):
            done = self.ask(*words)
            self.assertEqual(done.returncode, 1, words)
            self.assertIn(said, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1)
