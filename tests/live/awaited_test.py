# SPDX-License-Identifier: Apache-2.0
"""Loops fed by a thread, a process or a coroutine of their own, which becomes slow or ends."""

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
def feed_by_simple_queue():
    batches, room = queue.SimpleQueue(), threading.Semaphore(2)
    def fill_simple():
        while room.acquire(): batches.put(read_shard())
    threading.Thread(target=fill_simple, daemon=True).start()
    def take():
        batch = batches.get()
        room.release()
        return batch
    return take
def feed_under_lock():
    lock = threading.Lock()
    def hold():
        while True:
            with lock: read_shard()
            time.sleep(0.003)
    threading.Thread(target=hold, daemon=True).start()
    def enter():
        lock.acquire()
        lock.release()
        return [1.0] * 16
    return enter
def train(feed):
    threading.Thread(target=beat, daemon=True).start()
    model = torch.nn.Linear(16, 16)
    optimizer = torch.optim.SGD(model.parameters(), 1e-9)
    while not os.path.exists(folder + "/end"):
        optimizer.zero_grad(); model(torch.tensor(feed())).sum().backward(); time.sleep(0.02)
        optimizer.step()
train({"thread": feed_by_thread, "child": feed_by_child, "simple": feed_by_simple_queue,
       "lock": feed_under_lock}[sys.argv[2]]())
"""
PLACE = "train.py(5): read_shard"

LOOP_OF_EVENTS = """
import asyncio, os, sys, time, torch
torch.set_num_threads(1)
folder = sys.argv[1]
async def fetch():
    await asyncio.sleep(0.2 if os.path.exists(folder + "/slow") else 0.001)
    return torch.ones(16)
async def produce(batches):
    while True: await batches.put(await fetch())
async def train():
    batches = asyncio.Queue(2)
    producer = asyncio.create_task(produce(batches))
    model = torch.nn.Linear(16, 16)
    optimizer = torch.optim.SGD(model.parameters(), 1e-9)
    while not os.path.exists(folder + "/end"):
        batch = await batches.get()
        optimizer.zero_grad(); model(batch).sum().backward(); time.sleep(0.02)
        optimizer.step()
    producer.cancel()
asyncio.run(train())
"""


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

    def become_slow(self, feeder: str) -> dict:
        """The finding of a job that becomes slow, and then ends well."""
        with self.train(feeder) as job:
            self.await_workers(1, 150)
            self.assertEqual(self.ask("profile", limit_s=120).returncode, 0)
            self.assertEqual(self.report("report-1.json")["findings"], [])
            (self.folder / "slow").touch()
            finding = self.await_report(("abnormal", "slow"))["findings"][0]
            (self.folder / "end").touch()
            _, err = job.communicate(timeout=120)
            self.assertEqual(job.returncode, 0, err.decode())
        return finding

    def check_slow(self, feeder: str, whose: str, outermost: str) -> None:
        finding = self.become_slow(feeder)
        self.assertIn(f"in {PLACE}", finding["title"])
        said = next(line for line in finding["evidence"] if line.startswith("it waits for"))
        self.assertRegex(said, f"^it waits for {whose}, which spend [0-9]+ % in ")
        self.assertIn(f"{outermost} > {PLACE} > <system call clock_nanosleep>", said)

    def test_a_slow_function_of_a_thread_is_named(self) -> None:
        self.check_slow("thread", "other threads of the process", "train.py(9): fill")

    def test_a_slow_function_of_a_child_is_named(self) -> None:
        self.check_slow("child", "its child processes", "train.py(13): act")

    def test_a_thread_that_fills_a_simple_queue_is_named(self) -> None:
        self.check_slow("simple", "other threads of the process", "train.py(28): fill_simple")

    def test_a_thread_that_holds_a_lock_is_named(self) -> None:
        self.check_slow("lock", "other threads of the process", "train.py(38): hold")

    def test_a_coroutine_that_an_event_loop_waits_for_is_named(self) -> None:
        self.script.write_text(LOOP_OF_EVENTS)
        finding = self.become_slow("")
        coroutine = "train.py(10): train"
        self.assertIn(f"an event loop in which {coroutine} waits", finding["title"])
        self.assertTrue(any(f"what it ran most, {coroutine}," in e for e in finding["evidence"]))

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
