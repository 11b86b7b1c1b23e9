# SPDX-License-Identifier: Apache-2.0
"""A loop without torch that calls perftracker.step(): as a job of JAX, on a CPU."""

from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from live import LiveTest  # noqa: E402

LOOP = """
import os, sys, time
import perftracker

def prepare():
    return sum(i * i for i in range(200_000))

def update():
    time.sleep(0.002)

while not os.path.exists(sys.argv[1]):
    prepare()
    with perftracker.region("update"):
        update()
    perftracker.step()
"""


class Torchless(LiveTest):
    def test_a_profile_on_request_shows_python_functions(self) -> None:
        script, end = self.folder / "train.py", self.folder / "end"
        script.write_text(LOOP)
        with self.job("--", sys.executable, str(script), str(end)) as job:
            self.await_workers(1, 30)
            answer = self.ask("profile", limit_s=120)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            report = self.report("report-1.json")
            self.assertEqual(report["coverage"]["workers_analyzed"], 1, report)
            self.assertGreaterEqual(report["job"]["iterations"], 4, report)
            self.assertEqual(report["job"]["loop"]["marks"], "perftracker.step()")
            names = [function["name"] for function in report["functions"]]
            self.assertTrue(any("prepare" in name for name in names), names)
            end.touch()
            _, err = job.communicate(timeout=120)
            self.assertEqual(job.returncode, 0, err.decode())
