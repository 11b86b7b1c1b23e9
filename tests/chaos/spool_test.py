#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes of a fleet that are killed at random moments while results of windows are delivered.

Each test makes PERFTRACKER_CHAOS_POINTS points of trouble in one job over two hosts. Whatever a
host has summarized is in the hub's store in the end, once, and the report of each window has each
rank that delivered once. Without that variable one test runs, with one point: `make chaos` runs
all.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import sys
import time
import unittest
import zlib
from collections.abc import Sequence

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cluster"))

from fleet import WORKERS, FleetTest, live  # noqa: E402

POINTS = int(os.environ.get("PERFTRACKER_CHAOS_POINTS", "1"))
LONG = "PERFTRACKER_CHAOS_POINTS" in os.environ
PORT = 29500
LONGEST_S = 4.0  # of a window until its report, about


class Delivers(FleetTest):
    def setUp(self) -> None:
        super().setUp()
        seed = int(os.environ.get("PERFTRACKER_CHAOS_SEED", time.time_ns()))
        self.random = random.Random(seed)
        self.seed = f"PERFTRACKER_CHAOS_SEED={seed}"
        self.start_fleet()
        self.job = self.start_job("job", PORT)
        self.await_window(PORT)

    # --- what is where ---

    def summarized(self) -> dict[bytes, pathlib.Path]:
        """The fingerprints that hosts have made, by their bytes."""
        files = self.folder.glob("hostd*/u0/*/**/fingerprints/*/rank*.ptfp")
        return {path.read_bytes(): path for path in files}

    def rows(self, sql: str) -> list[tuple]:
        with contextlib.closing(sqlite3.connect(f"{self.folder}/fleet.db", timeout=60)) as store:
            return store.execute(sql).fetchall()

    def kept(self) -> int:
        """Results that hosts keep; -1: not all hosts have said it."""
        done = self.ask("status", "--hub", "--config", self.site(0), "--format", "json")
        if done.returncode != 0:
            return -1
        jobs = json.loads(done.stdout)["jobs"]
        if not jobs or jobs[0].get("hosts") != len(WORKERS):
            return -1
        return jobs[0]["results_kept"]

    def logs(self) -> str:
        texts = [self.seed, f"leader:\n{self.job_log(PORT)}"]
        texts += [f"host {host}:\n{self.log(host)}" for host in (0, *WORKERS)]
        for path in self.folder.glob("hostd*/u0/*/daemon.log"):
            texts.append(f"{path}:\n{path.read_text()}")
        return "\n".join(texts)

    def assert_nothing_is_lost(self, least: int = 1) -> None:
        """least: 0 where a daemon was killed, perhaps before it kept what it had made."""
        stored = collections.Counter(
            zlib.decompress(data) for (data,) in self.rows("SELECT data FROM fingerprint")
        )
        for data, path in self.summarized().items():
            self.assertIn(stored[data], (least, 1), f"{path}\n{self.logs()}")
        windows = [text for (text,) in self.rows("SELECT text FROM event WHERE kind = 'window'")]
        self.assertEqual(len(windows), len(set(windows)), windows)
        reports = self.rows(
            "SELECT workers, (SELECT count(*) FROM fingerprint AS f"
            " WHERE f.job = report.job AND f.number = report.number)"
            " FROM report WHERE why = 'request' AND number > 0"
        )
        for workers, fingerprints in reports:
            self.assertEqual(workers, fingerprints, f"{reports}\n{self.logs()}")

    # --- trouble ---

    def socket(self) -> str:
        return str(next((self.folder / "hubrun").glob("*.sock")))

    def profile(self) -> subprocess.Popen[str]:
        words = [live.PROGRAM, "profile", "--socket", self.socket(), "--format", "json",
                 "--timeout", "200"]  # fmt: skip
        return subprocess.Popen(
            words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=self.env
        )

    def leader(self) -> int:
        (pid,) = live.children(self.inner(0))
        return pid

    def member(self, host: int) -> int:
        (pid,) = live.children(self.inner(host))
        return pid

    def restarts(self) -> int:
        return self.log(0).count("event=job-started")

    def await_leader(self, before: int) -> None:
        self.until("another leader", lambda: self.restarts() > before)
        self.await_watch(PORT)  # a window is ordered at once then

    def await_nothing_kept(self) -> None:
        self.until(f"an empty spool\n{self.logs()}", lambda: self.kept() == 0)

    def finish(self) -> None:
        # A window that was under way when its hub was killed ends, too.
        time.sleep(LONGEST_S)
        self.await_nothing_kept()
        self.end_jobs("job", self.job)
        self.await_line(0, "event=job-ended")
        self.assert_nothing_is_lost()
        self.assertGreater(len(self.rows("SELECT 1 FROM fingerprint")), 0)
        if os.environ.get("PERFTRACKER_CHAOS_SHOW"):
            print(self.logs(), file=sys.stderr)

    def test_a_leader_that_is_killed(self) -> None:
        for _ in range(POINTS):
            before = self.restarts()
            asked = self.profile()
            time.sleep(self.random.uniform(0, LONGEST_S))
            os.kill(self.leader(), signal.SIGKILL)
            asked.wait(240)
            self.await_leader(before)
        self.finish()

    @unittest.skipUnless(LONG, "make chaos runs it")
    def test_a_hub_that_is_killed_with_its_leaders(self) -> None:
        for _ in range(POINTS):
            before = self.restarts()
            asked = self.profile()
            time.sleep(self.random.uniform(0, LONGEST_S))
            leader = self.leader()
            os.kill(self.inner(0), signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                os.kill(leader, signal.SIGKILL)
            asked.wait(240)
            self.services[0].wait(60)
            self.start_service(0)
            self.await_leader(before)
        self.finish()

    @unittest.skipUnless(LONG, "make chaos runs it")
    def test_a_daemon_that_is_killed(self) -> None:
        """Its results are sent by the next daemon of the job on that host."""
        host = WORKERS[0]
        asked = self.profile()
        time.sleep(self.random.uniform(0, LONGEST_S))
        os.kill(self.member(host), signal.SIGKILL)
        asked.wait(240)
        self.end_jobs("job", self.job)
        self.job = self.start_job("again", PORT)
        self.await_line(host, "event=job-started", 2)
        joined = f"event=host-joined host={self.net.name(host)}"
        self.until("its daemon", lambda: self.job_log(PORT).count(joined) >= 1)
        self.await_nothing_kept()
        self.end_jobs("again", self.job)
        self.await_line(0, "event=job-ended")
        self.assert_nothing_is_lost(least=0)


@unittest.skipUnless(LONG, "make chaos runs it")
class FullDisk(Delivers):
    """The spool of a host is on a disk of one page, which no result fits on."""

    test_a_leader_that_is_killed = None
    test_a_hub_that_is_killed_with_its_leaders = None
    test_a_daemon_that_is_killed = None

    def begin(
        self, host: int, words: Sequence[str], log: str, **env: str
    ) -> subprocess.Popen[bytes]:
        if host == WORKERS[0] and "hostd" in words:
            spool = self.folder / f"hostd{host}" / "spool"
            spool.mkdir(mode=0o711, parents=True)
            mount = f'mount -t tmpfs -o size=4k,mode=711 tmpfs {spool} && exec "$@"'
            words = ["unshare", "--mount", "sh", "-c", mount, "sh", *words]
        return super().begin(host, words, log, **env)

    def test_results_come_though_nothing_can_be_kept(self) -> None:
        daemon_log = next((self.folder / f"hostd{WORKERS[0]}").glob("u0/*/daemon.log"))
        for _ in range(POINTS):
            asked = self.profile()
            asked.communicate(timeout=240)
            self.assertEqual(asked.returncode, 0, self.logs())
        self.until("the full disk", lambda: "event=result-not-kept" in daemon_log.read_text())
        self.assertIn("No space left on device", daemon_log.read_text())
        self.finish()
        rows = self.rows("SELECT workers FROM report WHERE why = 'request'")
        self.assertEqual(rows, [(len(WORKERS),)] * POINTS, self.logs())


if __name__ == "__main__":
    unittest.main()
