# SPDX-License-Identifier: Apache-2.0
"""A job that one rank makes slow from its first step, and a healthy one: the check-up tells."""

from __future__ import annotations

import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from live import RANKS, TorchLiveTest  # noqa: E402

LOOP = """
import os, sys, time, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
torch.set_num_threads(1)
dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(16, 16))
optimizer = torch.optim.SGD(model.parameters(), 1e-9)

def query_config_server():
    time.sleep(float(sys.argv[2]))

end = torch.zeros(1)
while not end:
    time.sleep(0.02)
    if dist.get_rank() == 1:
        query_config_server()
    optimizer.zero_grad()
    model(torch.ones(4, 16)).sum().backward()
    optimizer.step()
    end[0] = float(os.path.exists(sys.argv[1]))
    dist.all_reduce(end)
dist.destroy_process_group()
"""


class Checkup(TorchLiveTest):
    def setUp(self) -> None:
        super().setUp()
        self.script = self.folder / "train.py"
        self.script.write_text(LOOP)
        self.end = self.folder / "end"

    def watch(self, sleep_s: float, is_over: str) -> str:
        """The log of a job that ends when its log has this text."""
        command = (sys.executable, RANKS, "2", str(self.script), str(self.end), str(sleep_s))
        with self.job("--no-audit", "--", *command) as job:
            os.set_blocking(job.stderr.fileno(), False)
            text, deadline = b"", time.monotonic() + 200
            while is_over.encode() not in text and time.monotonic() < deadline:
                text += job.stderr.read() or b""
                time.sleep(0.1)
            self.end.touch()
            os.set_blocking(job.stderr.fileno(), True)
            text += job.stderr.read()
            self.assertEqual(job.wait(timeout=60), 0, text.decode())
        return text.decode()

    def test_a_rank_that_is_slow_from_the_first_step_is_named_by_two_windows(self) -> None:
        log = self.watch(0.05, "event=report-written")
        self.assertIn("event=checkup verdict=unconfirmed", log)
        report = self.report()
        self.assertEqual(report["verdict"], "abnormal", log)
        self.assertEqual(report["trigger"]["kind"], "checkup")
        first = report["findings"][0]
        self.assertEqual(first["ranks"], "1", log)
        self.assertIn("query_config_server", first["function"]["name"], log)

    def test_a_healthy_job_is_checked_and_called_healthy(self) -> None:
        log = self.watch(0.0, "event=checkup verdict=healthy")
        self.assertEqual(self.report()["verdict"], "healthy", log)
        self.assertFalse(self.report()["findings"], log)
