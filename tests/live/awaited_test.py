# SPDX-License-Identifier: Apache-2.0
"""Loops that are fed by a thread or by a process of their own, which becomes slow or ends."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import time
import unittest
from contextlib import AbstractContextManager

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from live import TorchLiveTest  # noqa: E402

LOOP = """
import multiprocessing, os, queue, sys, threading, time, torch
torch.set_num_threads(1)
folder = sys.argv[1]
def read_shard():
    time.sleep(0.2 if os.path.exists(folder + "/slow") else 0)
    if os.path.exists(folder + "/die"): raise ValueError("a bad shard")
    return [1.0] * 16
def fill(batches):
    while True: batches.put(read_shard())
def beat():
    while True: time.sleep(0.7)
def act(pipe):
    while pipe.recv(): pipe.send(read_shard())
def feed_by_thread():
    batches = queue.Queue(2)
    threading.Thread(target=fill, args=(batches,), daemon=True).start()
    return batches.get
def feed_by_child():
    ours, theirs = multiprocessing.Pipe()
    multiprocessing.Process(target=act, args=(theirs,), daemon=True).start()
    def ask():
        ours.send(True)
        return ours.recv()
    return ask
def train(feed):
    threading.Thread(target=beat, daemon=True).start()
    model = torch.nn.Linear(16, 16)
    optimizer = torch.optim.SGD(model.parameters(), 1e-9)
    while not os.path.exists(folder + "/end"):
        optimizer.zero_grad(); model(torch.tensor(feed())).sum().backward(); time.sleep(0.02)
        optimizer.step()
train(feed_by_thread() if sys.argv[2] == "thread" else feed_by_child())
"""
PLACE = "train.py(5): read_shard"


class Awaited(TorchLiveTest):
    def setUp(self) -> None:
        super().setUp()
        self.script = self.folder / "train.py"
        self.script.write_text(LOOP)

    def train(self, feeder: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
        return self.job("--", self.python, str(self.script), str(self.folder), feeder)

    def await_report(self, verdicts: tuple[str, ...], limit_s: float = 240) -> dict:
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            report = self.report() if (self.out / "report.json").exists() else {"verdict": ""}
            if report["verdict"] in verdicts:
                return report
            time.sleep(0.2)
        raise AssertionError(f"no report with a verdict of {verdicts}")

    def check_slow(self, feeder: str, whose: str, outermost: str) -> None:
        with self.train(feeder) as job:
            self.await_workers(1, 150)
            self.assertEqual(self.ask("profile", limit_s=120).returncode, 0)
            self.assertEqual(self.report("report-1.json")["findings"], [])
            (self.folder / "slow").touch()
            finding = self.await_report(("abnormal", "slow"))["findings"][0]
            self.assertIn(f"in {PLACE}", finding["title"])
            said = next(line for line in finding["evidence"] if line.startswith("it waits for"))
            self.assertRegex(said, f"^it waits for {whose}, which spend [0-9]+ % in ")
            self.assertIn(f"{outermost} > {PLACE} > <system call clock_nanosleep>", said)
            (self.folder / "end").touch()
            _, err = job.communicate(timeout=120)
            self.assertEqual(job.returncode, 0, err.decode())

    def test_a_slow_function_of_a_thread_is_named(self) -> None:
        self.check_slow("thread", "other threads of the process", "train.py(9): fill")

    def test_a_slow_function_of_a_child_is_named(self) -> None:
        self.check_slow("child", "its child processes", "train.py(13): act")

    def test_a_thread_that_ended_is_named_in_a_hang(self) -> None:
        with self.train("thread") as job:
            self.await_workers(1, 150)
            (self.folder / "die").touch()
            finding = self.await_report(("abnormal",))["findings"][0]
            self.assertEqual(finding["id"], "PT-908")
            self.assertRegex(
                finding["evidence"][0],
                r"; a thread of it ended [0-9.]+ s ago, last seen in train.py\(9\): fill",
            )
            self.assertIsNone(job.poll())


if __name__ == "__main__":
    unittest.main()
