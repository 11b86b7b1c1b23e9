# SPDX-License-Identifier: Apache-2.0
"""A training loop for experiments: writes down when each step ended.

    steps.py FOLDER --device cuda|cpu|double [--compile] [--fault loader|gc|kernel]

FOLDER/steps gets 8 bytes a step: CLOCK_MONOTONIC in ns. It goes on until FOLDER/stop is there;
the fault begins with FOLDER/fault; FOLDER/profiler starts torch's profiler for PROFILED steps. At
the end FOLDER/figures.json has the loop's own figures.
"""

import argparse
import ctypes
import gc
import json
import os
import pathlib
import time

import torch
from torch.utils.data import DataLoader, Dataset

PROFILED = 40
LAYERS = 8
FORWARD = b"_ZN5model13layer_forwardILi128EEEvPKfPf"
BACKWARD = b"_ZN5model14layer_backwardILi128EEEvPKfPf"


def read_slowly() -> None:
    time.sleep(0.02)


class Data(Dataset):
    """Numbers; slow to read when that is the fault."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._row = torch.randn(*shape)
        self.slow = False

    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.slow:
            read_slowly()
        return self._row


class Cuda:
    """A transformer on a GPU; on a CPU a smaller one."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._device = torch.device(options.device)
        width, self.shape = (512, (128, 512)) if options.device == "cuda" else (64, (32, 64))
        layer = torch.nn.TransformerEncoderLayer(width, 8, batch_first=True, dropout=0)
        self.model = torch.nn.TransformerEncoder(
            layer, LAYERS if options.device == "cuda" else 2, enable_nested_tensor=False
        ).to(self._device)
        self._forward = torch.compile(self.model) if options.compile else self.model
        self.slow = False

    def step(self, x: torch.Tensor) -> None:
        x = x.to(self._device, non_blocking=True)
        loss = self._forward(x).pow(2).mean()
        loss.backward()
        if self.slow:
            big = torch.ones(4096, 4096, device=self._device)
            (big @ big).sum()
        loss.item()  # as most loops do: the host waits for the device


class Double:
    """Kernels of the double of a GPU beside a model on the CPU, whose optimizer steps."""

    shape = (16,)

    def __init__(self, _: argparse.Namespace) -> None:
        cuda = ctypes.CDLL(os.environ["DOUBLE_CUDA"])
        ctypes.CDLL(os.environ["DOUBLE_CUPTI"])
        types = [ctypes.c_char_p, ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint32]
        cuda.double_launch.argtypes = types
        cuda.double_context(1)
        self._cuda = cuda
        self._names = [ctypes.create_string_buffer(name) for name in (FORWARD, BACKWARD)]
        self.model = torch.nn.Linear(16, 1)
        self.slow = False

    def step(self, x: torch.Tensor) -> None:
        self.model(x).mean().backward()
        for name in self._names:
            for _ in range(LAYERS):
                slow = self.slow and name is self._names[1]
                self._cuda.double_launch(name, 7, 3_000_000 if slow else 1_000_000, 1)
        self._cuda.double_synchronize(7)


class Watch:
    """The files by which an experiment speaks to the loop."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._steps = os.open(folder / "steps", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def has(self, name: str) -> bool:
        return (self._folder / name).exists()

    def step(self) -> None:
        os.write(self._steps, time.monotonic_ns().to_bytes(8, "little"))

    def report(self, figures: dict) -> None:
        (self._folder / "figures.json").write_text(json.dumps(figures))


class Profiler:
    """The user's own, for some steps."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._profiler: torch.profiler.profile | None = None
        self._left = 0
        self.events = -1  # of the device; of the CPU where there is none

    def step(self) -> None:
        if self._profiler is None and self.events < 0 and self._watch.has("profiler"):
            self._profiler = torch.profiler.profile()
            self._profiler.start()
            self._left = PROFILED
        elif self._profiler is not None:
            self._left -= 1
            if self._left == 0:
                self._end()

    def _end(self) -> None:
        self._profiler.stop()
        kind = torch.autograd.DeviceType.CUDA if torch.cuda.is_available() else None
        events = self._profiler.events() or []
        self.events = sum(kind is None or event.device_type == kind for event in events)
        self._profiler = None


def compiled() -> dict[str, int]:
    """What torch.compile has done so far."""
    counters = torch._dynamo.utils.counters
    graphs = counters["stats"].get("unique_graphs", 0)
    return {"graphs": graphs, "breaks": sum(counters["graph_break"].values())}


def train(options: argparse.Namespace) -> None:
    watch = Watch(pathlib.Path(options.folder))
    work = (Double if options.device == "double" else Cuda)(options)
    data, profiler = Data(work.shape), Profiler(watch)
    optimizer = torch.optim.SGD(work.model.parameters(), lr=1e-6)
    early: dict[str, int] = {}
    for step, x in enumerate(DataLoader(data, batch_size=8 if options.device == "cuda" else 1)):
        faulty = options.fault != "none" and watch.has("fault")
        data.slow = faulty and options.fault == "loader"
        work.slow = faulty and options.fault == "kernel"
        if faulty and options.fault == "gc":
            gc.collect()
        optimizer.zero_grad()
        work.step(x)
        optimizer.step()
        watch.step()
        profiler.step()
        if step == 20 and options.compile:
            early = compiled()
        if watch.has("stop"):
            break
    late = compiled() if options.compile else {}
    watch.report({"compiled_early": early, "compiled_late": late, "profiled": profiler.events})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--device", choices=("cuda", "cpu", "double"), default="cuda")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--cpu", type=int, default=-1, help="the only one to run on")
    parser.add_argument("--fault", choices=("none", "loader", "gc", "kernel"), default="none")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.cpu >= 0:
        os.sched_setaffinity(0, {options.cpu})
    train(options)


if __name__ == "__main__":
    main()
