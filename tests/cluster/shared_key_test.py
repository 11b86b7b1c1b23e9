#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A fleet whose hosts share a key (make-users --shared): jobs of two hosts reach the hub."""

from __future__ import annotations

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from fleet import WORKERS, SharedKeyTest, live  # noqa: E402

LOOP = """
import os, sys, time
import perftracker
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
    perftracker.step()
"""


class SharedKey(SharedKeyTest):
    def test_the_hub_leads_jobs_of_all_hosts(self) -> None:
        self.start_fleet()
        script, end = self.folder / "loop.py", self.folder / "end"
        script.write_text(LOOP)
        for host in WORKERS:
            given = {"PERFTRACKER": "1", "PERFTRACKER_JOB": "shared", "RANK": str(host - 1)}
            given |= {"WORLD_SIZE": str(len(WORKERS)), "PYTHONPATH": str(live.ROOT / "python")}
            given["PERFTRACKER_HOSTD"] = f"{self.folder}/run{host}/hostd.sock"
            self.begin(host, [sys.executable, str(script), str(end)], f"job.{host}", **given)
        log = self.folder / "jobs" / "u0" / "shared" / "daemon.log"
        watched = f"state=watching workers={len(WORKERS)}"
        self.until("both", lambda: log.is_file() and watched in log.read_text())
        end.touch()
        self.await_line(0, "event=job-ended")


if __name__ == "__main__":
    unittest.main()
