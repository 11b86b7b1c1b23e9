# SPDX-License-Identifier: Apache-2.0
"""What can go wrong in examples/train_ddp.py, one class for each fault.

The faults are ordinary mistakes of training jobs, reduced to a few lines. The
job calls `prepare` once, and `step` in every iteration from --fault-at on; two
more faults (io, imbalance) live in the data server. `baseline_s` is the healthy
iteration time the job has measured, so that a fault hurts equally on fast and
slow machines: strength 1.0 makes an iteration about twice as long.
"""

from __future__ import annotations

import argparse
import gc
import json
import mmap
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time

IN_SERVER = ("io", "imbalance")
NAMES = ("io", "cpu", "gc", "lock", "noise", "imbalance", "all", "stall", "stop", "quota", "none")


class Fault:
    """Does nothing; the others change what they need."""

    def __init__(self, options: argparse.Namespace, rank: int) -> None:
        self.rank = rank
        self.victim = options.fault_rank
        self.strength = options.fault_strength
        self.baseline_s = 0.0
        self.begun = False

    def prepare(self) -> None:
        """Before the first iteration."""

    def begin(self) -> None:
        """In the first iteration that is hurt."""

    def step(self, number: int) -> None:
        """In every iteration that is hurt."""

    def end(self) -> None:
        """After the last iteration."""

    def apply(self, number: int, times_s: list[float]) -> None:
        if not self.begun:
            self.begun = True
            self.baseline_s = statistics.median(times_s[-100:] or [0.1])
            self.begin()
        self.step(number)


def tokenize_slow(text: bytes, rounds: int) -> list[int]:
    """Byte pairs merged by a dictionary, one at a time, in pure Python."""
    merges: dict[int, int] = {}
    tokens: list[int] = []
    for _ in range(rounds):
        tokens = [0] * len(text)
        previous = 0
        length = 0
        for byte in text:
            pair = previous << 8 | byte
            if pair in merges:
                tokens[length - 1] = merges[pair]
                previous = 0
            else:
                merges[pair] = 256 + (pair & 1023)
                tokens[length] = byte
                length += 1
                previous = byte
    return tokens


class SlowPython(Fault):
    """A slow pure-Python function on one rank (cpu) or on every one (all)."""

    text = b"the quick brown fox jumps over the lazy dog; " * 4

    def __init__(self, options: argparse.Namespace, rank: int) -> None:
        super().__init__(options, rank)
        self.hurt = options.fault == "all" or rank == self.victim
        self.rounds = 0

    def begin(self) -> None:
        if not self.hurt:
            return
        begin_s = time.thread_time()
        tokenize_slow(self.text, 200)
        round_s = (time.thread_time() - begin_s) / 200
        self.rounds = int(self.strength * self.baseline_s / round_s) + 1

    def step(self, number: int) -> None:
        if self.hurt:
            tokenize_slow(self.text, self.rounds)


class Collections(Fault):
    """Forced garbage collections over a big heap, one rank after another."""

    def __init__(self, options: argparse.Namespace, rank: int) -> None:
        super().__init__(options, rank)
        self.world_size = int(os.environ.get("WORLD_SIZE", "1"))
        self.cache: list[object] = []

    def prepare(self) -> None:
        """Grows the heap until one collection takes long enough to hurt."""
        gc.disable()
        while len(self.cache) < 5_000_000:
            self.cache += [[i] for i in range(100_000)]
            begin_s = time.thread_time()
            gc.collect()
            if time.thread_time() - begin_s > 0.06 * self.strength:
                break
        gc.enable()

    def step(self, number: int) -> None:
        if number % self.world_size == self.rank:
            gc.collect()

    def end(self) -> None:
        self.cache.clear()


class HeldLock(Fault):
    """A metrics thread that encodes a big document, holding the GIL throughout."""

    def begin(self) -> None:
        if self.rank == self.victim:
            threading.Thread(target=self.export_metrics, name="metrics", daemon=True).start()

    def export_metrics(self) -> None:
        row = {"name": "loss", "values": [1.5] * 20}
        begin_s = time.thread_time()
        json.dumps([row] * 200)
        row_s = (time.thread_time() - begin_s) / 200
        document = [row] * (int(1.5 * self.baseline_s / row_s) + 1)
        while True:
            time.sleep(0.2 * self.baseline_s / self.strength)
            json.dumps(document)


class NoisyNeighbor(Fault):
    """Strangers that keep the core busy to which the victim is bound."""

    # Orphaned at once, so that they are no part of the job; they leave when the victim does.
    hog = """
import os, sys
if os.fork():
    os._exit(0)
while os.path.exists("/proc/" + sys.argv[1]):
    for _ in range(10**6):
        pass
"""

    def prepare(self) -> None:
        """The victim has a core of its own to lose; with few cores others visit it too."""
        cores = sorted(os.sched_getaffinity(0))
        if self.rank == self.victim:
            os.sched_setaffinity(0, cores[-1:])
        elif len(cores) > 2:
            os.sched_setaffinity(0, cores[:-1])

    def begin(self) -> None:
        if self.rank != self.victim:
            return
        for _ in range(round(4 * self.strength)):
            subprocess.check_call([sys.executable, "-S", "-c", self.hog, str(os.getpid())])


# A stranger that looks at the ranks every 2.5 s, as some monitoring agents do: how much memory has
# each of its pages? It is orphaned at once, and leaves when the launcher does.
WATCHER = """
import os, sys, time
if os.fork():
    os._exit(0)
launcher, busy_s = sys.argv[1], float(sys.argv[2])
def ranks():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rpartition(")")[2].split()[1] == launcher:
                    yield pid
        except OSError:
            pass
while os.path.exists("/proc/" + launcher):
    begin_s = time.monotonic()
    while time.monotonic() - begin_s < busy_s:
        for pid in ranks():
            try:
                with open(f"/proc/{pid}/smaps") as smaps:
                    smaps.read()
            except OSError:
                pass
    time.sleep(max(0, 2.5 - (time.monotonic() - begin_s)))
"""


class WatchedMemory(Fault):
    """Something reads the memory maps of all ranks, which map and unmap as allocators do."""

    def prepare(self) -> None:
        self.memory = mmap.mmap(-1, 192 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.memory.madvise(mmap.MADV_NOHUGEPAGE)
        for offset in range(0, len(self.memory), mmap.PAGESIZE):
            self.memory[offset] = 1

    def begin(self) -> None:
        if self.rank == self.victim:
            subprocess.check_call(
                [sys.executable, "-S", "-c", WATCHER, str(os.getppid()), str(0.6 * self.strength)]
            )

    def step(self, number: int) -> None:
        for _ in range(40):
            with mmap.mmap(-1, 1 << 20) as buffer:
                buffer[0] = 1


class Stopped(Fault):
    """A stranger that stops the victim for a while, again and again."""

    stopper = """
import os, signal, sys, time
if os.fork():
    os._exit(0)
pid, stopped_s = int(sys.argv[1]), float(sys.argv[2])
try:
    while True:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(stopped_s)
        os.kill(pid, signal.SIGCONT)
        time.sleep(2)
except ProcessLookupError:
    pass
"""

    def begin(self) -> None:
        if self.rank == self.victim:
            words = [str(os.getpid()), str(1.5 * self.strength)]
            subprocess.check_call([sys.executable, "-S", "-c", self.stopper, *words])


class Quota(Fault):
    """A control group that gives the victim a part of a CPU, as a container's limit does."""

    # Waits for the end of the victim, since a group with a process in it can't be removed.
    remover = """
import os, sys, time
if os.fork():
    os._exit(0)
while os.path.exists("/proc/" + sys.argv[1]):
    time.sleep(0.5)
os.rmdir(sys.argv[2])
"""

    def begin(self) -> None:
        if self.rank != self.victim:
            return
        limit = f"{int(12000 / self.strength)}"
        old, new = pathlib.Path("/sys/fs/cgroup/cpu"), pathlib.Path("/sys/fs/cgroup")
        group = (old if old.is_dir() else new) / f"perftracker-demo-{os.getpid()}"
        try:
            group.mkdir()
            # From outside of the group: no process in it could remove it.
            words = [str(os.getpid()), str(group)]
            subprocess.check_call([sys.executable, "-S", "-c", self.remover, *words])
            if old.is_dir():
                (group / "cpu.cfs_period_us").write_text("100000")
                (group / "cpu.cfs_quota_us").write_text(limit)
            else:
                (group / "cpu.max").write_text(f"{limit} 100000")
            (group / "cgroup.procs").write_text(str(os.getpid()))
        except OSError as error:
            print(
                f"fault quota: cgroups can't be written here, so all is well: {error}", flush=True
            )


CLASSES: dict[str, type[Fault]] = {
    "cpu": SlowPython,
    "all": SlowPython,
    "gc": Collections,
    "lock": HeldLock,
    "noise": NoisyNeighbor,
    "stall": WatchedMemory,
    "stop": Stopped,
    "quota": Quota,
}


def make_fault(options: argparse.Namespace, rank: int) -> Fault:
    return CLASSES.get(options.fault, Fault)(options, rank)


def server_arguments(options: argparse.Namespace) -> list[str]:
    """The options of the data server for this fault."""
    if options.fault not in IN_SERVER:
        return []
    word, usual = ("slow", 1.5) if options.fault == "io" else ("long", 4.0)
    return [
        f"--{word}-rank={options.fault_rank}",
        f"--{word}-from={options.fault_at}",
        f"--{word}-factor={1.0 + usual * options.fault_strength}",
    ]
