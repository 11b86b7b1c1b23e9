# SPDX-License-Identifier: Apache-2.0
"""A job that other processes make slow: a stall window opens, and the report has who and why."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from live import QUICK, RANKS, TorchLiveTest  # noqa: E402

LOOP = """
import os, sys, time, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
torch.set_num_threads(1)
dist.init_process_group("gloo")
if dist.get_rank() == 1:
    os.sched_setaffinity(0, {int(sys.argv[2])})
model = DistributedDataParallel(torch.nn.Linear(16, 16))
optimizer = torch.optim.SGD(model.parameters(), 1e-9)

def tokenize():
    begin = time.thread_time()
    while time.thread_time() - begin < 0.02:
        pass

end = torch.zeros(1)
while not end:
    tokenize()
    optimizer.zero_grad()
    model(torch.ones(4, 16)).sum().backward()
    optimizer.step()
    end[0] = float(os.path.exists(sys.argv[1]))
    dist.all_reduce(end)
dist.destroy_process_group()
"""

# Other processes on the CPU of rank 1.
BUSY = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"
BUSY_CNT = 8


class StallHunt(TorchLiveTest):
    def setUp(self) -> None:
        super().setUp()
        self.script = self.folder / "train.py"
        self.script.write_text(LOOP)
        self.busy = self.folder / "busy_neighbor.py"
        self.busy.write_text(BUSY)
        self.end = self.folder / "end"
        self.cpu = max(os.sched_getaffinity(0))

    def starve(self) -> None:
        for _ in range(BUSY_CNT):
            process = subprocess.Popen([sys.executable, str(self.busy), str(self.cpu)])
            self.addCleanup(process.wait)
            self.addCleanup(process.send_signal, signal.SIGKILL)

    def read(self, name: str) -> dict:
        """Empty: not there, or not complete."""
        try:
            return json.loads((self.out / name).read_text())
        except (OSError, ValueError):
            return {}

    def notes(self) -> list[str]:
        """What stall windows added to any report."""
        lines: list[str] = []
        for path in self.out.glob("report-*.json"):
            report = self.read(path.name)
            lines += report.get("notes") or []
            for finding in report.get("findings") or []:
                lines += finding["evidence"]
        return [line for line in lines if line.startswith("stall window after this report: ")]

    def stalls(self) -> list[dict]:
        return [self.read(path.name) for path in self.out.glob("stalls-*.json")]

    def test_a_report_of_a_starved_rank_gets_who_took_its_cpu(self) -> None:
        command = (self.python, RANKS, "2", str(self.script), str(self.end), str(self.cpu))
        with self.job(*QUICK, "--no-audit", "--", *command) as job:
            self.await_workers(2, 40)
            self.starve()
            deadline = time.monotonic() + 240
            while not self.notes() and job.poll() is None and time.monotonic() < deadline:
                time.sleep(0.2)
            self.assertTrue(self.notes(), sorted(path.name for path in self.out.iterdir()))
            causes = {one["cause"]: one for all in self.stalls() for one in all["findings"]}
            self.assertIn("cpu_starvation", causes)
            starved = causes["cpu_starvation"]
            names = [one["command"] for one in starved["culprits"]]
            self.assertTrue(any("busy_neighbor.py" in name for name in names), starved)
            self.assertIn("CPU", self.notes()[0])
            self.assertIn("python", self.notes()[0])
