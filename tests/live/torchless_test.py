# SPDX-License-Identifier: Apache-2.0
"""A loop without torch that calls perftracker.step(): as a job of JAX, on a CPU."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from live import PROGRAM, LiveTest  # noqa: E402

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

TWO = """
import subprocess, sys

jobs = [subprocess.Popen([sys.executable, *sys.argv[1:]]) for _ in range(2)]
sys.exit(sum(job.wait() for job in jobs))
"""


class Torchless(LiveTest):
    def profile_by_an_agent(self) -> None:
        """The tool that writes: its answer comes before the report does."""
        call = {"name": "request_profile", "arguments": {"job": str(self.out)}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        answer = subprocess.run(
            [PROGRAM, "mcp", "--allow-profile", str(self.out)], input=json.dumps(message),
            capture_output=True, text=True, env=self.env, timeout=120, check=True,
        )  # fmt: skip
        self.assertFalse(json.loads(answer.stdout)["result"]["isError"], answer.stdout)
        self.assertIn("asks for a profile", answer.stderr)
        deadline = time.monotonic() + 240
        while not (self.out / "report-2.json").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(self.report("report-2.json")["coverage"]["workers_analyzed"], 1)

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
            self.profile_by_an_agent()
            end.touch()
            _, err = job.communicate(timeout=120)
            self.assertEqual(job.returncode, 0, err.decode())

    def test_processes_without_ranks_are_counted_and_told(self) -> None:
        script, end = self.folder / "train.py", self.folder / "end"
        script.write_text(LOOP)
        words = ("--", sys.executable, "-c", TWO, str(script), str(end))
        unranked = {name: "" for name in ("RANK", "SLURM_PROCID", "PMI_RANK")}
        self.env |= unranked
        with self.job(*words) as job:
            pids = {worker["rank"]: worker["pid"] for worker in self.await_workers(2, 30)}
            answer = self.ask("profile", limit_s=120)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            report = self.report("report-1.json")
            end.touch()
            _, err = job.communicate(timeout=120)
        self.assertEqual(job.returncode, 0, err.decode())
        self.assertEqual(report["rank_source"], "the order in which the workers started")
        (note,) = (text for text in report["notes"] if "has no ranks" in text)
        for rank, pid in pids.items():
            self.assertIn(f"rank {rank} is pid {pid}", note)
