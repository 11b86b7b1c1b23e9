# SPDX-License-Identifier: Apache-2.0
"""A real DataLoader with two child processes whose collate function becomes slow, or hangs."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import time
from contextlib import AbstractContextManager

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from live import TorchLiveTest  # noqa: E402

LOOP = """
import os, sys, time, torch
from torch.utils.data import DataLoader, TensorDataset
torch.set_num_threads(1)
folder = sys.argv[1]
def read_shard():
    time.sleep(0.1 if os.path.exists(folder + "/slow") else 0)
    while os.path.exists(folder + "/hang"): time.sleep(0.5)
def collate(samples):
    read_shard()
    return torch.stack([x for (x,) in samples])
def train(method):
    model = torch.nn.Linear(16, 16)
    optimizer = torch.optim.SGD(model.parameters(), 1e-9)
    data = TensorDataset(torch.ones(200000, 16))
    for batch in DataLoader(
        data, batch_size=4, num_workers=2, collate_fn=collate, multiprocessing_context=method
    ):
        optimizer.zero_grad(); model(batch).sum().backward(); time.sleep(0.02); optimizer.step()
        if os.path.exists(folder + "/end"): break
if __name__ == "__main__":
    train(sys.argv[2])
"""
CALLERS = "train.py(9): collate > train.py(6): read_shard > <system call clock_nanosleep>"


class Loader(TorchLiveTest):
    def setUp(self) -> None:
        super().setUp()
        self.script = self.folder / "train.py"
        self.script.write_text(LOOP)

    def train(self, method: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
        """The job, with children that multiprocessing starts by that method."""
        return self.job("--", self.python, str(self.script), str(self.folder), method)

    def await_finding(self, name: str, limit_s: float = 240) -> dict:
        """The first finding of a report that has some."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            report = self.report() if (self.out / "report.json").exists() else {"findings": []}
            if report["findings"]:
                return report["findings"][0]
            time.sleep(0.2)
        raise AssertionError(f"no report of {name}")

    def check_slow(self, method: str) -> None:
        with self.train(method) as job:
            self.await_workers(1, 150)
            self.assertEqual(self.ask("profile", limit_s=120).returncode, 0)
            self.assertEqual(self.report("report-1.json")["findings"], [])
            (self.folder / "slow").touch()
            finding = self.await_finding("the slow function")
            self.assertEqual(finding["cause"], "slow-data-loading")
            self.assertIn("worker processes are in train.py(6): read_shard", finding["title"])
            said = next(line for line in finding["evidence"] if "worker processes" in line)
            self.assertIn(f" % in {CALLERS}", said)
            (self.folder / "end").touch()
            _, err = job.communicate(timeout=120)
            self.assertEqual(job.returncode, 0, err.decode())

    def test_a_slow_function_of_its_children_is_named_and_a_healthy_one_is_not(self) -> None:
        self.check_slow("fork")

    def test_a_slow_function_of_spawned_children_is_named(self) -> None:
        self.check_slow("spawn")

    def test_a_slow_function_of_children_of_a_fork_server_is_named(self) -> None:
        self.check_slow("forkserver")

    def test_a_function_in_which_its_children_hang_is_named(self) -> None:
        with self.train("fork") as job:
            self.await_workers(1, 150)
            (self.folder / "hang").touch()
            finding = self.await_finding("the hang")
            self.assertEqual(finding["id"], "PT-904")
            self.assertIn("train.py(6): read_shard", finding["function"]["name"])
            self.assertIn(f"its loader's worker processes are in {CALLERS}", finding["evidence"][0])
            (self.folder / "end").touch()
            (self.folder / "hang").unlink()
            _, err = job.communicate(timeout=120)
            self.assertEqual(job.returncode, 0, err.decode())
