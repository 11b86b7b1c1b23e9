# SPDX-License-Identifier: Apache-2.0
"""What goes wrong: each function is an ordinary mistake of a training program.

`amount_s` is how long an iteration shall become longer; `step` counts iterations. The functions
that a report should name have the names of mistakes.
"""

from __future__ import annotations

import gc
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import faults  # of examples/

TEXT = b"the quick brown fox jumps over the lazy dog; " * 4
Trouble = Callable[[float, int], None]


def query_config_server(amount_s: float, step: int) -> None:
    time.sleep(amount_s)


def augment_in_python(amount_s: float, step: int) -> None:
    end_s = time.thread_time() + amount_s
    while time.thread_time() < end_s:
        faults.tokenize_slow(TEXT, 1)


def read_from_store(amount_s: float, step: int) -> None:
    time.sleep(amount_s)


def write_journal(amount_s: float, step: int) -> None:
    end_s = time.monotonic() + amount_s
    with open(f"journal-{os.getpid()}", "wb") as journal:
        while time.monotonic() < end_s:
            journal.write(os.urandom(1 << 16))
            os.fsync(journal.fileno())


def heavier_batch(amount_s: float, step: int) -> None:
    import torch  # not every program has it

    size = torch.ones(96, 96)
    end_s = time.thread_time() + amount_s
    while time.thread_time() < end_s:
        torch.tanh(size @ size)


def save_snapshot(amount_s: float, step: int) -> None:
    if step % 10 == 0:
        write_journal(10 * amount_s, step)


def retry_request(amount_s: float, step: int) -> None:
    if random.Random(step).random() < 0.2:
        time.sleep(5 * amount_s)


def collate_slowly(amount_s: float, step: int) -> None:
    time.sleep(amount_s)


class ExportsMetrics:
    """A thread that encodes a big document and holds the GIL throughout."""

    def __init__(self, plan: dict[str, Any]) -> None:
        row = {"name": "loss", "values": [1.5] * 20}
        begin_s = time.thread_time()
        json.dumps([row] * 200)
        row_s = (time.thread_time() - begin_s) / 200
        self.document = [row] * (int(plan["amount_s"] / row_s) + 1)
        self.pause_s = 0.3 * plan["amount_s"]
        threading.Thread(target=self.export_metrics, daemon=True).start()

    def export_metrics(self) -> None:
        while True:
            time.sleep(self.pause_s)
            json.dumps(self.document)

    def __call__(self, amount_s: float, step: int) -> None:
        pass


class SharesCache:
    """A thread holds the lock of a cache that the training thread needs."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.lock = threading.Lock()
        self.amount_s = plan["amount_s"]
        threading.Thread(target=self.refresh_cache, daemon=True).start()

    def refresh_cache(self) -> None:
        while True:
            with self.lock:
                time.sleep(self.amount_s)
            time.sleep(0.002)

    def read_cache(self) -> None:
        with self.lock:
            pass

    def __call__(self, amount_s: float, step: int) -> None:
        self.read_cache()


class CollectsGarbage:
    """Grows the heap until a collection takes long enough, and collects in every iteration."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.heap: list[list[int]] = []
        gc.collect()
        gc.freeze()  # what torch has already would make the first collection long
        while len(self.heap) < 3_000_000:
            begin_s = time.thread_time()
            gc.collect()
            if time.thread_time() - begin_s > plan["amount_s"]:
                break
            self.heap += [[i] for i in range(20_000)]

    def __call__(self, amount_s: float, step: int) -> None:
        gc.collect()


SERVER = """
import socket, sys, time
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
print(listener.getsockname()[1], flush=True)
link = listener.accept()[0]
while link.recv(1):
    time.sleep(float(sys.argv[1]))
    link.sendall(b"x" * 1000)
"""


class FetchesShards:
    """Data from a server that answers slowly, or never."""

    def __init__(self, plan: dict[str, Any], wait_s: float) -> None:
        command = [sys.executable, "-S", "-c", SERVER, str(wait_s)]
        self.server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.server.stdout
        port = int(self.server.stdout.readline())
        self.link = socket.create_connection(("127.0.0.1", port))

    def fetch_shard(self) -> None:
        self.link.sendall(b"?")
        left = 1000
        while left:
            left -= len(self.link.recv(left))

    def __call__(self, amount_s: float, step: int) -> None:
        self.fetch_shard()


def pin(plan: dict[str, Any]) -> None:
    """The victim is bound to one CPU; the neighbors come to the same one."""
    cores = sorted(os.sched_getaffinity(0))
    rank = int(os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0")))
    os.sched_setaffinity(0, cores[-1:] if rank == plan["victim"] else cores)


class HasNeighbors:
    """Processes that are no part of the job take the victim's CPU."""

    def __init__(self, plan: dict[str, Any]) -> None:
        cores = sorted(os.sched_getaffinity(0))
        for thread in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(thread), cores[-1:])
        for _ in range(2):
            command = [sys.executable, "-S", "-c", faults.NoisyNeighbor.hog, str(os.getpid())]
            subprocess.check_call(command)

    def __call__(self, amount_s: float, step: int) -> None:
        pass


def acquire_quota(amount_s: float, step: int) -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def wait_until_ready(amount_s: float, step: int) -> None:
    ready: list[int] = []
    while not ready:
        pass


def leave_early(amount_s: float, step: int) -> None:
    os._exit(0)


def check_labels(amount_s: float, step: int) -> None:
    raise ValueError("label 1001 is out of range")


def stop_itself(amount_s: float, step: int) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def make(plan: dict[str, Any]) -> Trouble:
    """The trouble that the plan names: a function, or a class that is made in this process."""
    name = plan["trouble"]
    if name == "FetchesShards":
        return FetchesShards(plan, 1e6 if plan["hangs"] else plan["amount_s"])
    found = globals()[name]
    return found(plan) if isinstance(found, type) else found
