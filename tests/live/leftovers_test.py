#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A test whose job exceeds its limit leaves no process, though its job has own sessions."""

from __future__ import annotations

import os
import pathlib
import sys
import unittest

import live

JOB = """
import os, subprocess, sys, time
orphan = subprocess.Popen(["sleep", "600"], start_new_session=True)
open(sys.argv[1], "w").write(f"{os.getpid()} {orphan.pid} ")
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:  # its parent is gone
        open(sys.argv[1], "a").write(f"{os.getpid()}\\n")
        time.sleep(600)
    os._exit(0)
time.sleep(600)
"""


def lives(pid: int) -> bool:
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


class LeavesNothing(live.LiveTest):
    def test_a_job_over_its_limit_is_killed_with_all_that_it_started(self) -> None:
        pids = self.folder / "pids"
        script = self.folder / "job.py"
        script.write_text(JOB)
        limit_s = 2.0
        while not (pids.exists() and pids.read_text().endswith("\n")):  # longer on a busy machine
            pids.unlink(missing_ok=True)
            with self.assertRaisesRegex(AssertionError, "still running"):
                self.run_job("--", sys.executable, str(script), str(pids), limit_s=limit_s)
            limit_s *= 2
        started = [int(word) for word in pids.read_text().split()]
        self.assertEqual(len(started), 3)
        self.assertEqual([pid for pid in started if lives(pid)], [])

    def test_processes_of_others_are_left_alone(self) -> None:
        other = self.enterContext(live.subprocess.Popen(["sleep", "600"], env=dict(os.environ)))
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        self.assertEqual(self.kill_all(), [])
        self.assertTrue(lives(other.pid))


if __name__ == "__main__":
    unittest.main()
