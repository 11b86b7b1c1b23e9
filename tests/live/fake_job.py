#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job of scripted workers: no torch, no hook, but the real socket and a real block.

Each worker follows src/format/shared/message.h as the agent does, marks an iteration
every --ms milliseconds, becomes slow at --slow-at, and meets an order as its
entry in --behave says: obey, miss, die, lie (a trace path outside), scribble
(garbage all over its ring), silent (never answers), garbage (its trace is no
trace), crash (it is killed at iteration 60, order or not), raise (a ValueError ends
it then), leave (it ends well then), or hide (its hook switches itself off then, and
it goes on). With --restarts, a rank that fails ends the others, and all are started
again and obey, as torchrun does. After --iterations they end, or when the
file --until is there, a pattern. With --record,
what each worker was ordered is written there. In an overhead check of a window's collectors
its iterations take --overhead-cost percent longer, while nothing is left out.
"""

from __future__ import annotations

import argparse
import array
import contextlib
import fcntl
import glob
import itertools
import json
import mmap
import os
import pathlib
import random
import signal
import socket
import struct
import sys
import time

MESSAGE = struct.Struct("<IHHIIiiiiQQQqqQ512s")
HEAD = struct.Struct("<IIIIQQQII")
ORDER = struct.Struct("<QQQQQIIIIII")
OVERHEAD = struct.Struct("<QQQQIIQ")  # and the window that was taken
RECORD = struct.Struct("<qqIHHQ")
START = struct.Struct("<d")  # by the monotonic clock; then a byte a rank that is there
RING = 16384
RING_OFFSET = HEAD.size + ORDER.size + OVERHEAD.size
LAYOUT_OFFSET = RING_OFFSET + RING * RECORD.size
SIZE = 39202816  # of struct flight
STEP_OFFSET, HEAD_OFFSET, STATE_OFFSET, BACKOFF_OFFSET = 16, 32, 40, 44

HELLO, BEGUN, DONE, MISSED, BYE = 1, 2, 3, 4, 5
DISABLED = 3  # of the worker's states
DATALOADER, DATALOADER_END, OPTIMIZER = 1, 2, 3
U64, STEP = 2**64 - 1, 0x9E3779B97F4A7C15  # of splitmix
MOST_MORE = 60000  # iterations
START_LIMIT_S = 20
BEHIND_S = 0.005  # a longer pause is not caught up with, so that no iteration is too short
ADD_SEALS, SEALS = 1033, 1 | 2 | 4  # F_ADD_SEALS; SEAL, SHRINK, GROW


def finish(x: int) -> int:
    """splitmix_finish() of src/base/splitmix.h."""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & U64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & U64
    return x ^ x >> 31


def slice_is_on(number: int, start: int, piece: int) -> bool:
    """overhead_slice_is_on() of src/format/shared/block.h."""
    seed = finish((number * STEP & U64) ^ start)
    return (piece & 1) != finish((seed + piece // 2 * STEP) & U64) >> 63


def make_block() -> tuple[int, mmap.mmap]:
    fd = os.memfd_create("fake-worker", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, SIZE)
    fcntl.fcntl(fd, ADD_SEALS, SEALS)
    block = mmap.mmap(fd, SIZE)
    HEAD.pack_into(block, 0, 0x50544231, 2, RING, 0, 0, 0, 0, 0, 0)
    struct.pack_into("<I", block, LAYOUT_OFFSET, SIZE)
    return fd, block


class Worker:
    def __init__(
        self, rank: int, options: argparse.Namespace, behavior: str, shared: mmap.mmap
    ) -> None:
        self.rank, self.options, self.behavior, self.shared = rank, options, behavior, shared
        self.step = self.head = self.seen = 0
        self.hidden = False
        self.elapsed_s = 0.0  # at the end of the iteration under way, since the first began
        self.window: dict[str, int] = {}
        self.bounds: list[int] = []
        fd, self.block = make_block()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(os.environ["PERFTRACKER_SOCKET"])
        self.send(HELLO, fd=fd)
        os.close(fd)

    def send(self, kind: int, text: str = "", fd: int = -1, window_ns: int = 0) -> None:
        data = MESSAGE.pack(
            0x50544D31, 1, kind, os.getpid(), os.getpid(), self.rank, self.rank,
            self.options.world, 0, self.seen, self.step, window_ns, time.monotonic_ns(),
            time.time_ns(), 0, text.encode(),
        )  # fmt: skip
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))
        with contextlib.suppress(OSError):  # the daemon is gone: the job goes on
            self.socket.sendmsg([data], [rights] if fd >= 0 else [])

    def mark(self, kind: int) -> None:
        if self.hidden:
            return
        step = self.step + 1 if kind == OPTIMIZER else 0
        offset = RING_OFFSET + self.head % RING * RECORD.size
        RECORD.pack_into(self.block, offset, time.monotonic_ns(), 0, self.head + 1, kind, 0, step)
        self.head += 1
        struct.pack_into("<Q", self.block, HEAD_OFFSET, self.head)
        if kind == OPTIMIZER:
            self.step += 1
            struct.pack_into("<Q", self.block, STEP_OFFSET, self.step)
            self.follow_order()

    def overhead_cost_frac(self) -> float:
        number, start, length, count, kind, *_ = OVERHEAD.unpack_from(
            self.block, HEAD.size + ORDER.size
        )
        left_out = struct.unpack_from("<I", self.block, BACKOFF_OFFSET)[0]
        if number == 0 or count == 0 or kind != 1 or self.step < start or left_out != 0:
            return 0
        piece = (self.step - start) // length
        on = piece < count and slice_is_on(number, start, piece)
        return self.options.overhead_cost / 100 if on else 0

    def follow_order(self) -> None:
        number, start, window_ns, least, most, canceled, stride, *_ = ORDER.unpack_from(
            self.block, HEAD.size
        )
        if self.window:
            self.bounds.append(self.due_ns())
            if len(self.bounds) > self.window["steps"]:
                self.end_window()
        elif number > self.seen and self.step >= start and not canceled:
            self.seen = number
            self.note(number, start, window_ns, least, most, stride)
            self.begin_window(most)

    def note(self, *numbers: int) -> None:
        if self.options.record:
            with open(self.options.record, "a") as file:
                file.write(json.dumps([self.rank, self.step, *numbers]) + "\n")

    def begin_window(self, steps: int) -> None:
        if self.behavior == "miss":
            self.send(MISSED, "the test wants it so")
            return
        if self.behavior == "silent":
            return
        self.send(BEGUN)
        if self.behavior == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        self.window = {"steps": steps}
        self.bounds = [self.due_ns()]

    def end_window(self) -> None:
        path = pathlib.Path(os.environ["PERFTRACKER_DIR"], f"{self.rank}-{self.seen}.json")
        if self.behavior == "lie":
            path = pathlib.Path(self.options.outside)
        elif self.behavior == "garbage":
            path.write_text('{"traceEvents": [{"ph": "X", "ts": ')
        else:
            path.write_text(json.dumps(self.trace()))
        length = self.bounds[-1] - self.bounds[0]
        self.window = {}
        self.send(DONE, str(path), window_ns=length)

    def trace(self) -> dict:
        """One step after the other; on the slow rank most of each is one Python function."""
        events = []

        def add(cat: str, name: str, start: float, end: float, **args: object) -> None:
            events.append(
                {"ph": "X", "cat": cat, "name": name, "pid": os.getpid(), "tid": os.getpid(),
                 "ts": start / 1e3, "dur": (end - start) / 1e3, "args": args}
            )  # fmt: skip

        for number, (start, end) in enumerate(zip(self.bounds, self.bounds[1:], strict=False)):
            slow = start + (end - start) * (0.7 if self.rank == self.options.slow_rank else 0.01)
            ids = {"Python id": number + 1, "Python parent id": None}
            add("user_annotation", f"ProfilerStep#{self.step + number}", start, end)
            add("python_function", "train.py(7): slow_function", start, slow, **ids)
            add("cpu_op", "aten::mm", slow, slow + (end - slow) / 2, **{"External id": number})
            add(
                "cpu_op", "gloo:all_reduce", slow + (end - slow) / 2, end, **{"External id": number}
            )
        info = {"rank": self.rank, "world_size": self.options.world, "backend": "gloo"}
        return {"schemaVersion": 1, "distributedInfo": info, "traceEvents": events}

    def scribble(self) -> None:
        start = RING_OFFSET
        self.block[start:SIZE] = random.Random(1).randbytes(SIZE - start)
        struct.pack_into("<Q", self.block, HEAD_OFFSET, random.getrandbits(63))

    def is_over(self, number: int) -> bool:
        """Whether the awaited file exists, or the number of iterations is at its limit."""
        least, until = self.options.iterations, self.options.until
        if number < least or number >= least + MOST_MORE:
            return number >= least
        return until == "" or bool(glob.glob(until))

    def end_early(self) -> None:
        if self.behavior == "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.behavior == "raise":
            self.send(BYE, "ValueError")
            os._exit(1)
        elif self.behavior == "leave":
            self.send(BYE)
            os._exit(0)

    def await_others(self, local: int, count: int) -> None:
        """All ranks begin at once, so that none has to catch up with the one that began first."""
        self.shared[START.size + local] = 1
        deadline = time.monotonic() + START_LIMIT_S
        while time.monotonic() < deadline and START.unpack_from(self.shared)[0] == 0:
            if local == 0 and all(self.shared[START.size : START.size + count]):
                START.pack_into(self.shared, 0, time.monotonic())
            time.sleep(0.002)
        if START.unpack_from(self.shared)[0] == 0:
            START.pack_into(self.shared, 0, time.monotonic())

    def due_ns(self) -> int:
        """When the iteration ended for all ranks, by the wall clock, however late this one was."""
        (start_s,) = START.unpack_from(self.shared)
        ended_s = min(start_s + self.elapsed_s, time.monotonic())
        return time.time_ns() - int((time.monotonic() - ended_s) * 1e9)

    def compute(self, seconds: float) -> None:
        """By one clock of all ranks: those that a busy machine delays stay in step, as if each
        waited for the others. After a long pause of one, all go on later."""
        (start_s,) = START.unpack_from(self.shared)
        behind_s = time.monotonic() - start_s - self.elapsed_s
        if behind_s > BEHIND_S:
            start_s += behind_s
            START.pack_into(self.shared, 0, start_s)
        self.elapsed_s += seconds
        time.sleep(max(0.0, start_s + self.elapsed_s - time.monotonic()))

    def run(self) -> None:
        if self.options.pids:
            with open(self.options.pids, "a") as file:
                file.write(f"{os.getpid()}\n")
        for number in itertools.count():
            if self.is_over(number):
                break
            slow = self.options.slow_at and number >= self.options.slow_at
            self.mark(DATALOADER)
            self.mark(DATALOADER_END)
            factor = (self.options.slow_factor if slow else 1) + self.overhead_cost_frac()
            self.compute(self.options.ms * factor / 1e3)
            self.mark(OPTIMIZER)
            if number == 60:
                self.end_early()
            if self.behavior == "hide" and number == 60:
                struct.pack_into("<I", self.block, STATE_OFFSET, DISABLED)
                self.hidden = True
            if self.behavior == "scribble" and number % 10 == 9:
                self.scribble()
        if not self.hidden:
            self.send(BYE)


def run_life(options: argparse.Namespace, words: list[str]) -> bool:
    """Returns whether all ranks ended well; those of a job with restarts end together."""
    children, well = set(), True
    shared = mmap.mmap(-1, mmap.PAGESIZE)
    count = options.ranks or options.world
    for local in range(count):
        rank = options.first + local
        pid = os.fork()
        if pid == 0:
            behavior = words[rank] if rank < len(words) else "obey"
            worker = Worker(rank, options, behavior, shared)
            worker.await_others(local, count)
            worker.run()
            os._exit(0)
        children.add(pid)
    while children:
        pid, status = os.wait()
        children.discard(pid)
        well = well and status == 0
        for other in children if options.restarts and status else ():
            os.kill(other, signal.SIGTERM)
    return well


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pids", help="file that gets a line with the pid of each rank")
    parser.add_argument("--world", type=int, default=2)
    parser.add_argument("--first", type=int, default=0, help="rank of this host's first one")
    parser.add_argument("--ranks", type=int, default=0, help="of this host; 0: all")
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--until", default="", metavar="FILE", help="goes on until it is there")
    parser.add_argument("--ms", type=float, default=20)
    parser.add_argument("--ms-from", default="", metavar="FILE", help="has --ms")
    parser.add_argument("--slow-at", type=int, default=0)
    parser.add_argument("--slow-factor", type=float, default=5)
    parser.add_argument("--slow-rank", type=int, default=1)
    parser.add_argument("--behave", default="", help="one word a rank, by commas")
    parser.add_argument("--overhead-cost", type=float, default=0)
    parser.add_argument("--outside", default="/nonexistent")
    parser.add_argument("--record", default="")
    parser.add_argument("--status", type=int, default=0)
    parser.add_argument("--restarts", type=int, default=0)
    options = parser.parse_args()
    if options.ms_from:
        options.ms = float(pathlib.Path(options.ms_from).read_text())
    words = options.behave.split(",")
    while not run_life(options, words) and options.restarts:
        options.restarts -= 1
        words = []
    print("job done", flush=True)
    return options.status


if __name__ == "__main__":
    sys.exit(main())
