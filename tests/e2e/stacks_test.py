# SPDX-License-Identifier: Apache-2.0
"""`perftracker stacks` on torch ranks: a stopped rank stands out, and a job finds its workers."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "live"))

from live import RANKS as LAUNCHER  # noqa: E402
from live import TorchLiveTest, children  # noqa: E402

PROGRAM = ROOT / "build" / "src" / "cmd" / "perftracker"

JOB = """
import sys, time
import torch, torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 16))
optimizer = torch.optim.SGD(model.parameters(), 1e-9)

def work():
    time.sleep(0.02)

while True:
    optimizer.zero_grad(); model(torch.ones(4, 16)).sum().backward(); work(); optimizer.step()
"""


class TorchStacks(TorchLiveTest):
    def setUp(self) -> None:
        super().setUp()
        self.script = self.folder / "train.py"
        self.script.write_text(JOB)

    def stacks(self, *words: object) -> list[dict]:
        done = self.ask("stacks", "--format", "json", *map(str, words))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)["processes"]

    def main_functions(self, process: dict) -> list[str]:
        (main,) = [t for t in process["threads"] if t["role"] == "main"]
        return [frame["function"] for frame in main["frames"]]

    def test_a_stopped_rank_stands_out_and_goes_on(self) -> None:
        command = [self.python, LAUNCHER, "2", str(self.script)]
        pids: list[int] = []
        job = subprocess.Popen(command, env=self.env)
        try:
            pids = self.await_ranks(job)
            os.kill(pids[1], signal.SIGSTOP)
            blocked = self.await_blocked(pids[0])
            found = {p["pid"]: p for p in self.stacks(*pids)}
            self.assertEqual(found[pids[1]]["state"], "T")
            self.assertIn("<module>", self.main_functions(found[pids[1]]))
            self.assertTrue({"forward", "backward"} & set(blocked), blocked)
            text = self.ask("stacks", *map(str, pids)).stdout
            self.assertIn(f"running or sleeping  @{pids[0]}|{pids[1]}", text)
            self.assertIn(f"stopped by a signal  @{pids[1]}|{pids[0]}", text)
            os.kill(pids[1], signal.SIGCONT)
            self.await_unblocked(pids[0])
            self.assertIsNone(job.poll())
        finally:
            job.terminate()
            for pid in pids:  # a stopped one does not end by SIGTERM
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            job.wait(60)

    def await_ranks(self, job: subprocess.Popen[bytes]) -> list[int]:
        """Until both are in the loop. They are forks, so their RANK is not in /proc."""
        until = time.monotonic() + 120
        while time.monotonic() < until:
            time.sleep(0.2)
            pids = children(job.pid)
            done = self.ask("stacks", "--format", "json", *map(str, pids)) if pids else None
            if done is None or done.returncode != 0:
                continue
            found = json.loads(done.stdout)["processes"]
            busy = [p for p in found if {"work", "backward"} & set(self.main_functions(p))]
            if len(busy) == 2:
                return [p["pid"] for p in busy]
        raise AssertionError("the ranks do not train")

    def await_blocked(self, pid: int) -> list[str]:
        """The functions of its main thread once two readings agree that it waits."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            before, after = (self.main_functions(self.stacks(pid)[0]) for _ in range(2))
            # In the second iteration, DDP sends its buckets in forward.
            waits = {"forward", "backward"} & set(after)
            if before == after and "work" not in after and waits:
                return after
        raise AssertionError("rank 0 does not wait")

    def await_unblocked(self, pid: int) -> None:
        until = time.monotonic() + 60
        while "work" not in self.main_functions(self.stacks(pid)[0]):
            self.assertLess(time.monotonic(), until)

    def test_a_job_is_named_by_its_folder(self) -> None:
        words = ("--no-audit", "--", self.python, LAUNCHER, "2", str(self.script))
        with self.job(*words) as job:
            try:
                workers = self.await_workers(2, 3)
                found = self.stacks("--job", self.out)
            finally:
                job.terminate()
                job.communicate(timeout=60)
        self.assertEqual({p["pid"] for p in found}, {w["pid"] for w in workers})
        self.assertEqual(sorted(p["rank"] for p in found), [0, 1])
