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
