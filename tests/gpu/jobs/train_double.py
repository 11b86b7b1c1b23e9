# SPDX-License-Identifier: Apache-2.0
"""Trains on GPUs that are doubles (tests/gpu/doubles): a job of several processes.

    train_double.py --ranks 8 --seconds 20 --fault gpu --rank 3

It contains no code for PerfTracker. Kernels take a set time; a collective of NCCL moves data when
all ranks have come to it, at the pace of the slowest link. Faults of --rank,
from when the file --begin is there, or from the start:

    gpu     all kernels take three times as long; kernel: one of them does
    link    its link carries data at a third of the speed
    python  a function takes long before kernels are launched; late: before a collective is
    hang    the rank never comes to a collective

With --fork the ranks are forks of a process that has imported torch but not PerfTracker; else
each is a new process.

DOUBLE_MODEL names the library that calls those of CUDA (libmodel.c), DOUBLE_CUPTI one that a real
job would have loaded with CUDA's runtime.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "agent"))

import warm  # noqa: E402

LAYERS = 4
MS = 1_000_000
FORWARD, BACKWARD, UPDATE = range(3)
KERNELS = (
    (b"_ZN5model13layer_forwardILi128EEEvPKfPf", 3),
    (b"_ZN5model14layer_backwardILi128EEEvPKfPf", 5),
    (b"_ZN5model6updateEPf", 2),
)
GEMM = (4096, 4096, 3000)  # about 1 ms at the double's 100 TFLOPS
REDUCED, GATHERED, SHIFTED, NORM = 60_000_000, 10_000_000, 10_000_000, 1000  # elements of 2 bytes
FAULTS = ("none", "gpu", "kernel", "link", "python", "late", "hang")


class Gpu:
    """The calls that a framework would make."""

    def __init__(self, ranks: int, rank: int) -> None:
        ctypes.CDLL(os.environ["DOUBLE_CUPTI"])
        self._model = model = ctypes.CDLL(os.environ["DOUBLE_MODEL"])
        model.model_graph.restype = ctypes.c_void_p
        model.model_replay.argtypes = [ctypes.c_void_p]
        model.model_upload.argtypes = [ctypes.c_size_t]
        model.model_kernel.argtypes = [ctypes.c_char_p, ctypes.c_int64]
        model.model_set_time.argtypes = [ctypes.c_int, ctypes.c_int64]
        model.model_slow_link.argtypes = [ctypes.c_int, ctypes.c_double]
        for name in ("all_reduce", "all_reduces", "all_gather", "shift"):
            getattr(model, f"model_{name}").argtypes = [ctypes.c_int, ctypes.c_size_t]
        self._ranks, self._rank = ranks, rank
        model.model_start()
        for name, ms in KERNELS:
            model.model_kernel(name, ms * MS)
        self._data = model.model_comm(1, b"data", ranks, rank)
        self._norm = model.model_comm(2, b"norm", ranks, rank)
        self._graph = self._capture()

    def _capture(self) -> int:
        """The end of a step: two kernels and a collective in one graph."""
        self._model.model_capture()
        self._model.model_all_reduce(self._norm, NORM)
        self._model.model_launch(UPDATE, 1)
        return self._model.model_graph()

    def layer(self, kernel: int) -> None:
        self._model.model_launch(kernel, 1)
        self._model.model_gemm(*GEMM)

    def gather(self) -> None:
        self._model.model_all_gather(self._data, GATHERED // self._ranks)
        self._model.model_wait_for_comm()

    def shift(self) -> None:
        self._model.model_wait_for_compute()
        self._model.model_shift(self._data, SHIFTED, self._ranks, self._rank)
        self._model.model_wait_for_comm()

    def reduce(self, parts: int) -> None:
        self._model.model_wait_for_compute()
        if parts == 1:
            self._model.model_all_reduce(self._data, REDUCED)
        else:
            self._model.model_all_reduces(self._data, REDUCED // parts, parts)

    def update(self) -> None:
        self._model.model_wait_for_comm()
        self._model.model_replay(self._graph)
        self._model.model_synchronize()

    def upload(self, count: int) -> None:
        self._model.model_upload(count)

    def slow(self, kernels: tuple[int, ...]) -> None:
        for kernel in kernels:
            self._model.model_set_time(kernel, 3 * KERNELS[kernel][1] * MS)

    def slow_link(self) -> None:
        self._model.model_slow_link(self._data, 3.0)


class Fault:
    """What goes wrong on this rank, as soon as it may."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._kind = options.fault if int(os.environ["RANK"]) == options.rank else "none"
        self._begin = options.begin
        self.augment_s = 0.002
        self.late_s = 0.0

    def look(self, gpu: Gpu) -> None:
        if self._kind == "none" or (self._begin and not os.path.exists(self._begin)):
            return
        gpu.slow({"gpu": (FORWARD, BACKWARD, UPDATE), "kernel": (BACKWARD,)}.get(self._kind, ()))
        if self._kind == "link":
            gpu.slow_link()
        self.augment_s = 0.05 if self._kind == "python" else self.augment_s
        self.late_s = {"late": 0.1, "hang": 3600}.get(self._kind, 0.0)
        self._kind = "none"


def augment(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.001)


def pack_gradients(seconds: float) -> None:
    if seconds > 0:
        time.sleep(seconds)


def step(gpu: Gpu, fault: Fault) -> None:
    gpu.upload(20_000_000)
    gpu.gather()
    for _ in range(LAYERS):
        gpu.layer(FORWARD)
    gpu.shift()
    for layer in range(LAYERS):
        gpu.layer(BACKWARD)
        if layer == 1:
            gpu.reduce(1)
    pack_gradients(fault.late_s)
    gpu.reduce(3)
    gpu.update()


def train(options: argparse.Namespace) -> None:
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    torch.set_num_threads(1)
    fault = Fault(options)
    gpu = Gpu(options.ranks, int(os.environ["RANK"]))
    data = TensorDataset(torch.randn(1 << 16, 16), torch.randn(1 << 16, 1))
    model = torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    end = time.monotonic() + options.seconds
    for x, y in DataLoader(data, batch_size=1):
        fault.look(gpu)
        augment(fault.augment_s)
        optimizer.zero_grad()
        (model(x) - y).pow(2).mean().backward()
        step(gpu, fault)
        optimizer.step()
        # All end at the same step: the file says when.
        if os.path.exists(options.stop):
            break
        if int(os.environ["RANK"]) == 0 and time.monotonic() > end:
            open(options.stop, "w").close()


def environment(rank: int, ranks: int, folder: str) -> dict[str, str]:
    return {
        **os.environ,
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(ranks),
        "DOUBLE_MEET": os.path.join(folder, "meet"),
    }


def start(options: argparse.Namespace, folder: str) -> list:
    command = [sys.executable, *sys.argv, "--stop", os.path.join(folder, "stop")]
    envs = [environment(rank, options.ranks, folder) for rank in range(options.ranks)]
    if not options.fork:
        return [subprocess.Popen(command, env=env) for env in envs]
    os.environ.pop("PERFTRACKER_SOCKET", None)
    warm.import_torch()
    return [warm.Fork(command[1:], env) for env in envs]


def launch(options: argparse.Namespace) -> int:
    """One process for each rank, which meet through a file."""
    folder = tempfile.mkdtemp()
    parent = os.getpid()
    try:
        ranks = start(options, folder)
        while any(process.poll() is None for process in ranks):
            time.sleep(0.05)
            failed = any(process.poll() not in (None, 0) for process in ranks)
            # A rank may wait for one that left.
            if failed or os.path.exists(os.path.join(folder, "stop")):
                time.sleep(0 if failed else 2)
                for process in ranks:
                    process.terminate()
        return max(process.wait() in (0, -15) for process in ranks) - 1
    finally:
        # Forks of start() pass here, too, when they end; a context manager would remove the
        # folder in each of them.
        if os.getpid() == parent:
            shutil.rmtree(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--fault", choices=FAULTS, default="none")
    parser.add_argument("--rank", type=int, default=3)
    parser.add_argument("--begin", default="", metavar="FILE")
    parser.add_argument("--fork", action="store_true")
    parser.add_argument("--stop", default="")
    options = parser.parse_args()
    if "RANK" not in os.environ:
        return launch(options)
    train(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
