# SPDX-License-Identifier: Apache-2.0
"""A real job of four ranks that hangs: the report names the blocked rank and its function."""

from __future__ import annotations

import json
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "live"))

from live import RANKS as LAUNCHER  # noqa: E402
from live import TorchLiveTest  # noqa: E402

RANKS = 4
VICTIM = 1
STEP = 90

JOB = f"""
import sys, threading, time
import torch, torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
dist.init_process_group("gloo")
place = sys.argv[1] if dist.get_rank() == {VICTIM} else "nowhere"
step = 0

def read_from_a_server_that_does_not_answer():
    time.sleep(600)

lock = threading.Lock()

def keep_the_lock():
    with lock: time.sleep(600)

def wait_for_a_lock():
    threading.Thread(target=keep_the_lock, daemon=True).start()
    while not lock.locked(): time.sleep(0.001)
    lock.acquire()

class Numbers(Dataset):
    def __len__(self): return 10**6
    def __getitem__(self, i):
        if place == "data" and step == {STEP}: read_from_a_server_that_does_not_answer()
        return torch.ones(16)

model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 16))
optimizer = torch.optim.SGD(model.parameters(), 1e-9)
for batch in DataLoader(Numbers(), batch_size=4):
    if place == "forward" and step == {STEP}: wait_for_a_lock()
    optimizer.zero_grad(); model(batch).sum().backward(); time.sleep(0.01); optimizer.step()
    step += 1
"""


class Standstill(TorchLiveTest):
    def stand_still(self, place: str) -> dict:
        """The finding of the report that is made while the job hangs."""
        script = self.folder / "train.py"
        script.write_text(JOB)
        launcher = (self.python, LAUNCHER, str(RANKS))
        words = ("--no-audit", "--slowdown", "900", "--", *launcher)
        reports: list[pathlib.Path] = []
        with self.job(*words, str(script), place) as job:
            try:
                deadline = time.monotonic() + 240
                while not reports and job.poll() is None:
                    self.assertLess(time.monotonic(), deadline, "no report")
                    time.sleep(0.2)
                    reports = list(self.out.glob("report-*.json"))
                report = self.report(reports[0].name)
                self.check_processes()
            finally:  # the launcher ends its ranks, which have sessions of their own
                job.terminate()
                job.communicate(timeout=60)
        self.assertEqual(report["trigger"]["kind"], "blocked")
        self.assertEqual(len(report["findings"]), 1, report)
        finding = report["findings"][0]
        self.assertEqual(finding["ranks"], str(VICTIM))
        tree = report["hang_stacks"]["tree"]
        self.assertEqual(tree[0]["ranks"], f"0-{RANKS - 1}")
        self.assertTrue(any(node["kind"] == "frame" for node in tree))
        self.check_kept(finding)
        return finding

    def check_processes(self) -> None:
        """Each was read from outside, and is as it was: not stopped, not traced."""
        for worker in self.workers():
            status = pathlib.Path(f"/proc/{worker['pid']}/status").read_text()
            self.assertIn("TracerPid:\t0\n", status)
            self.assertNotIn("State:\tT", status)
            self.assertNotIn("State:\tt", status)

    def check_kept(self, finding: dict) -> None:
        """The records of the hang give the same finding again, as do the files of stacks a part."""
        done = self.ask("analyze", "--format", "json", str(next(self.out.glob("hang-*.json"))))
        again = json.loads(done.stdout)["findings"][0]
        self.assertEqual(again["id"], finding["id"])
        self.assertEqual(again["ranks"], finding["ranks"])
        self.assertEqual(again["function"]["name"], finding["function"]["name"])
        self.assertEqual(len(list((self.out / "stacks").glob("rank*.json"))), RANKS)

    def test_the_function_that_gives_no_data_is_named(self) -> None:
        finding = self.stand_still("data")
        function = finding["function"]
        self.assertEqual(finding["id"], "PT-904")
        self.assertIn("<system call clock_nanosleep>", finding["evidence"][0])
        self.assertIn("read_from_a_server_that_does_not_answer", function["name"])
        self.assertIn("__getitem__", function["stack"][-2])

    def test_the_function_that_keeps_one_rank_from_a_collective_is_named(self) -> None:
        finding = self.stand_still("forward")
        self.assertEqual(finding["id"], "PT-912")
        self.assertIn("wait_for_a_lock", finding["function"]["name"])
        self.assertRegex(finding["evidence"][0], r"that can hold it: [0-9]+ in .*keep_the_lock")
        self.assertIn("_engine_run_backward", finding["evidence"][1])
