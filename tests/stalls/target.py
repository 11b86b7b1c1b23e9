# SPDX-License-Identifier: Apache-2.0
"""A process for the tests of `perftracker stalls`: python3 target.py KIND [ARGUMENT]...

It prints "ready", and does what KIND says until it is killed, or for `sum` until its input ends.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import json
import mmap
import os
import queue
import select
import signal
import sys
import threading
import time


def work(rounds: int = 8000) -> int:
    total = 0
    for i in range(rounds):
        total += i
    return total


def ready() -> None:
    print("ready", flush=True)


def busy() -> None:
    while True:
        work()


def idle() -> None:
    while True:
        time.sleep(0.05)


def mapper(mebibytes: str) -> None:
    """Maps and unmaps memory all the time, and has a lot of it in small pages."""
    kept = []
    for index in range(16):
        memory = mmap.mmap(-1, int(mebibytes) * 65536, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        if index % 2:
            memory.madvise(mmap.MADV_DONTFORK)  # so that neighbors remain apart
        for offset in range(0, len(memory), 4096):
            memory[offset] = 1
        kept.append(memory)
    ready()
    while True:
        work(2000)
        for _ in range(4):
            with mmap.mmap(-1, 262144) as memory:
                memory[0] = 1


def reader(pid: str, seconds: str) -> None:
    while True:
        with open(f"/proc/{pid}/smaps", encoding="ascii") as file:
            file.read()
        time.sleep(float(seconds))


def gil() -> None:
    """A thread that sleeps in C without giving up the GIL."""
    libc = ctypes.PyDLL(None)

    def hold() -> None:
        while True:
            time.sleep(0.2)
            libc.usleep(50000)

    threading.Thread(target=hold, daemon=True).start()
    ready()
    busy()


def collect(often: str) -> None:
    """Keeps many objects; collects garbage over and over, or never. SIGTERM: says for how long."""
    kept = [[number] for number in range(900000)]
    gc.disable()
    pauses: list[tuple[float, float]] = []
    begun = 0.0

    def see(phase: str, _info: dict[str, int]) -> None:
        nonlocal begun
        now = time.monotonic()
        if phase == "start":
            begun = now
        else:
            pauses.append((begun, now))

    def say(_number: int, _frame: object) -> None:
        print(json.dumps(pauses), flush=True)
        os._exit(len(kept) == 0)

    gc.callbacks.append(see)
    signal.signal(signal.SIGTERM, say)
    ready()
    while True:
        begin = time.monotonic()
        while time.monotonic() < begin + 0.2:
            work(1000)
        if often == "often":
            gc.collect()


def fsync(path: str) -> None:
    with open(path, "wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 20))
            os.fsync(file.fileno())
            if file.tell() > 64 << 20:
                file.seek(0)


def waiter() -> None:
    """Waits for a thread of its own."""
    items: queue.Queue[int] = queue.Queue(1)

    def produce() -> None:
        while True:
            time.sleep(0.03)
            items.put(1)

    threading.Thread(target=produce, daemon=True).start()
    ready()
    while True:
        items.get()
        work(1000)


def digest() -> None:
    """Always the same result, whatever watches it."""
    state = hashlib.sha256()
    rounds = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        rounds += 1
        state = hashlib.sha256(state.digest()) if rounds <= 1000 else state
    while rounds < 1000:
        rounds += 1
        state = hashlib.sha256(state.digest())
    print(state.hexdigest(), flush=True)


KINDS = {
    "busy": busy,
    "idle": idle,
    "mapper": mapper,
    "reader": reader,
    "gil": gil,
    "collect": collect,
    "fsync": fsync,
    "waiter": waiter,
    "digest": digest,
}

if __name__ == "__main__":
    if sys.argv[1] not in ("mapper", "gil", "collect", "waiter"):
        ready()
    KINDS[sys.argv[1]](*sys.argv[2:])
