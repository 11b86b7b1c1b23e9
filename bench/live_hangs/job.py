# SPDX-License-Identifier: Apache-2.0
"""A DDP job of the bench: rank VICTIM hangs in one of many ways at one iteration.

    job.py KIND FOLDER

It makes FOLDER/hung when the fault begins; the job ends when FOLDER/end is there.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import signal
import socket
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

VICTIM, STEP = 2, 120
KIND, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207


def take_the_lock() -> None:
    lock = threading.Lock()
    threading.Thread(target=keep_the_lock, args=(lock,), daemon=True).start()
    while not lock.locked():
        time.sleep(0.001)
    lock.acquire()


def keep_the_lock(lock: threading.Lock) -> None:
    lock.acquire()
    time.sleep(10**4)


def take_a_mutex_twice() -> None:
    """A deadlock in C code that keeps the interpreter's lock."""
    libc = ctypes.PyDLL(None)
    mutex = ctypes.create_string_buffer(64)
    libc.pthread_mutex_lock(mutex)
    libc.pthread_mutex_lock(mutex)


def spin_without_end() -> None:
    number = 0
    while True:
        number = (number * 5 + 1) % 1000003


def sleep_in_c() -> None:
    ctypes.PyDLL(None).sleep(10**4)


def read_from_a_silent_server() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    with socket.create_connection(server.getsockname()) as client:
        client.recv(1)


def stop_itself() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def be_traced() -> None:
    libc, me = ctypes.CDLL(None), os.getpid()
    libc.prctl(0x59616D61, -1, 0, 0, 0)
    if os.fork() == 0:
        libc.ptrace(PTRACE_SEIZE, me, None, None)
        libc.ptrace(PTRACE_INTERRUPT, me, None, None)
        time.sleep(10**4)
    time.sleep(10**4)


def start_a_program_that_never_starts() -> None:
    """The parent of a vfork is in uninterruptible sleep until the child runs a program."""
    fifo = str(FOLDER / "fifo")
    os.mkfifo(fifo)
    action = (os.POSIX_SPAWN_OPEN, 5, fifo, os.O_RDONLY, 0)
    os.posix_spawn("/bin/true", ["true"], {}, file_actions=[action])


def leave_early() -> None:
    """A child keeps the connections open, so that the others are not told."""
    if os.fork() == 0:
        time.sleep(10**4)
    raise SystemExit(0)


def call_another_collective() -> None:
    dist.broadcast(torch.ones(7), src=0)


def sleep_without_end() -> None:
    time.sleep(10**4)


def save_a_checkpoint() -> None:
    time.sleep(25)


FAULTS = {
    "lock": take_the_lock,
    "mutex": take_a_mutex_twice,
    "loop": spin_without_end,
    "gil": sleep_in_c,
    "socket": read_from_a_silent_server,
    "stop": stop_itself,
    "traced": be_traced,
    "kernel": start_a_program_that_never_starts,
    "exit": leave_early,
    "mismatch": call_another_collective,
    "sleep": sleep_without_end,
    "checkpoint": save_a_checkpoint,
}


class Numbers(Dataset):
    def __init__(self) -> None:
        self.rank = dist.get_rank()

    def __len__(self) -> int:
        return 10**6

    def __getitem__(self, index: int) -> torch.Tensor:
        if KIND == "loader" and self.rank == VICTIM and index == 4 * STEP:
            (FOLDER / "hung").touch()
            self.read_a_shard_that_never_comes()
        return torch.ones(16)

    def read_a_shard_that_never_comes(self) -> None:
        read_from_a_silent_server()


def batches() -> object:
    if KIND in ("loader", "socket", "checkpoint"):
        return DataLoader(Numbers(), batch_size=4, num_workers=1 if KIND == "loader" else 0)
    return (torch.ones(4, 16) for _ in range(10**6))


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 16))
    optimizer = torch.optim.SGD(model.parameters(), 1e-9)
    here = dist.get_rank() == VICTIM
    for step, batch in enumerate(batches()):
        if here and step == STEP and KIND in FAULTS:
            (FOLDER / "hung").touch()
            FAULTS[KIND]()
        if KIND == "skip" and step >= STEP:
            if step == STEP and here:
                (FOLDER / "hung").touch()
            else:
                dist.barrier()
        if KIND == "evaluation" and step == STEP:
            (FOLDER / "hung").touch()
            for _ in range(800):
                model.module(batch)
                time.sleep(0.03)
        if KIND == "compile" and step == 3:
            (FOLDER / "hung").touch()
            time.sleep(60)
        optimizer.zero_grad()
        model(batch).sum().backward()
        time.sleep(0.01)
        optimizer.step()
        if step > 10 and step % 10 == 0 and (FOLDER / "end").exists() and step > STEP + 60:
            break


main()
