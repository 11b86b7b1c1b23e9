# SPDX-License-Identifier: Apache-2.0
"""Trains on GPUs that are doubles (tests/gpu/doubles): a job of several processes.

    train_double.py --ranks 8 --seconds 20 --fault gpu --rank 3

It knows nothing of who watches it. Kernels take the time that they are told to; a
collective ends when all ranks have come to it. --fault gpu: the kernels of --rank take
three times as long; kernel: one of them does; python: a function of it does. With --begin
FILE the job is healthy until that file is there. DOUBLE_CUDA and DOUBLE_CUPTI name the
libraries, of which a real job would have loaded NVIDIA's.
"""

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time

LAYERS = 4
MS = 1_000_000
FORWARD = b"_ZN5model13layer_forwardILi128EEEvPKfPf"
BACKWARD = b"_ZN5model14layer_backwardILi128EEEvPKfPf"
ALL_REDUCE = b"_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE"
UPDATE = b"_ZN5model6updateEPf"
COMPUTE, COMM = 7, 20  # streams


class Gpu:
    """The calls that a framework would make."""

    def __init__(self, ranks: int) -> None:
        cuda = ctypes.CDLL(os.environ["DOUBLE_CUDA"])
        ctypes.CDLL(os.environ["DOUBLE_CUPTI"])
        self._launch = cuda.double_launch
        self._launch.argtypes = [ctypes.c_char_p, ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint32]
        self._copy = cuda.double_copy
        self._copy.argtypes = [ctypes.c_uint8, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_int64]
        self.synchronize = cuda.double_synchronize
        self._wait = cuda.double_wait
        self.names = {}  # ctypes' own copy of a name lives as long as the call only
        self.ranks = ranks
        self.slowdown = dict.fromkeys((FORWARD, BACKWARD, UPDATE), 1.0)
        cuda.double_context(1)

    def kernel(self, name: bytes, ms: float) -> None:
        kept = self.names.setdefault(name, ctypes.create_string_buffer(name))
        self._launch(kept, COMPUTE, int(ms * self.slowdown[name] * MS), 1)

    def all_reduce(self, ms: float) -> None:
        kept = self.names.setdefault(ALL_REDUCE, ctypes.create_string_buffer(ALL_REDUCE))
        self._wait(COMM, COMPUTE)
        self._launch(kept, COMM, int(ms * MS), self.ranks)

    def wait_reduced(self) -> None:
        self._wait(COMPUTE, COMM)

    def upload(self, count: int) -> None:
        self._copy(1, count, COMPUTE, MS)


class Fault:
    """What goes wrong on this rank, as soon as it may."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._kind = options.fault if int(os.environ["RANK"]) == options.rank else "none"
        self._begin = options.begin
        self.augment_s = 0.002

    def look(self, gpu: Gpu) -> None:
        if self._begin and not os.path.exists(self._begin):
            return
        self._begin = ""
        for name in {"gpu": (FORWARD, BACKWARD, UPDATE), "kernel": (BACKWARD,)}.get(self._kind, ()):
            gpu.slowdown[name] = 3.0
        if self._kind == "python":
            self.augment_s = 0.05


def augment(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.001)


def train(options: argparse.Namespace) -> None:
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    torch.set_num_threads(1)
    fault = Fault(options)
    gpu = Gpu(options.ranks)
    data = TensorDataset(torch.randn(1 << 16, 16), torch.randn(1 << 16, 1))
    model = torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    end = time.monotonic() + options.seconds
    more = torch.ones(1)
    for x, y in DataLoader(data, batch_size=1):
        fault.look(gpu)
        augment(fault.augment_s)
        gpu.upload(x.numel() * 4096)
        for _ in range(LAYERS):
            gpu.kernel(FORWARD, 4)
        loss = (model(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        for layer in range(LAYERS):
            gpu.kernel(BACKWARD, 6)
            if layer % 2 == 1:
                gpu.all_reduce(5)
        gpu.wait_reduced()
        gpu.kernel(UPDATE, 2)
        optimizer.step()
        gpu.synchronize(COMPUTE)
        # All end at the same step: the file says when.
        if os.path.exists(options.stop):
            break
        if int(os.environ["RANK"]) == 0 and time.monotonic() > end:
            more.zero_()
            open(options.stop, "w").close()


def launch(options: argparse.Namespace) -> int:
    """One process for each rank, which meet through a file."""
    with tempfile.TemporaryDirectory() as folder:
        stop = os.path.join(folder, "stop")
        ranks = []
        for rank in range(options.ranks):
            env = {
                **os.environ,
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(options.ranks),
                "DOUBLE_MEET": os.path.join(folder, "meet"),
            }
            ranks.append(subprocess.Popen([sys.executable, *sys.argv, "--stop", stop], env=env))
        while any(process.poll() is None for process in ranks):
            time.sleep(0.05)
            failed = any(process.poll() not in (None, 0) for process in ranks)
            if failed or os.path.exists(stop):  # whoever waits for a rank that has left
                time.sleep(0 if failed else 2)
                for process in ranks:
                    process.terminate()
        return max(process.wait() in (0, -15) for process in ranks) - 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--fault", choices=("none", "gpu", "kernel", "python"), default="none")
    parser.add_argument("--rank", type=int, default=3)
    parser.add_argument("--begin", default="", metavar="FILE")
    parser.add_argument("--stop", default="")
    options = parser.parse_args()
    if "RANK" not in os.environ:
        return launch(options)
    train(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
