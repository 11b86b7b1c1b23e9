# SPDX-License-Identifier: Apache-2.0
"""A real job of four ranks that hangs: the report names the blocked rank and its function."""

from __future__ import annotations

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
import sys, time
import torch, torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
dist.init_process_group("gloo")
place = sys.argv[1] if dist.get_rank() == {VICTIM} else "nowhere"
step = 0

def read_from_a_server_that_does_not_answer():
    time.sleep(600)

def wait_for_a_lock():
    time.sleep(600)

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
            finally:  # the launcher ends its ranks, which have sessions of their own
                job.terminate()
                job.communicate(timeout=60)
        self.assertEqual(report["trigger"]["kind"], "blocked")
        self.assertEqual(len(report["findings"]), 1, report)
        finding = report["findings"][0]
        self.assertEqual(finding["ranks"], str(VICTIM))
        self.assertIn("<system call clock_nanosleep>", finding["evidence"][0])
        return finding

    def test_the_function_that_gives_no_data_is_named(self) -> None:
        finding = self.stand_still("data")
        function = finding["function"]
        self.assertEqual(finding["id"], "PT-904")
        self.assertIn("read_from_a_server_that_does_not_answer", function["name"])
        self.assertIn("__getitem__", function["stack"][-2])

    def test_the_function_that_keeps_one_rank_from_a_collective_is_named(self) -> None:
        finding = self.stand_still("forward")
        self.assertEqual(finding["id"], "PT-907")  # Gloo does not number collectives
        self.assertIn("wait_for_a_lock", finding["function"]["name"])
        self.assertIn("_engine_run_backward", finding["evidence"][1])
