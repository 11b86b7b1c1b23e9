# SPDX-License-Identifier: Apache-2.0
"""The measured job: ranks on doubles of CUDA's libraries; writes the time of each iteration.

Arguments: layers, kernels in a layer, ns of a kernel, seconds, output folder. A layer has five
multiplications of matrices, too, of four such times each, and ends with an all-reduce that runs
beside the next one. A line of the output is "time.time() at its begin, milliseconds, milliseconds
of CPU of the thread that launches and of the process, in_window", all of rank 0.
"""

import ctypes
import os
import pathlib
import sys
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

GEMMS = 5
FLOP_PER_NS = 1e5  # of the double


def in_window() -> bool:
    ours = sys.modules.get("perftracker")
    return bool(ours and ours.status()["profiling"])


class Gpu:
    def __init__(self, kernels: int, kernel_ns: int) -> None:
        ctypes.CDLL(os.environ["DOUBLE_CUPTI"])
        self._model = ctypes.CDLL(os.environ["DOUBLE_MODEL"])
        self._model.model_kernel.argtypes = [ctypes.c_char_p, ctypes.c_int64]
        self._model.model_all_reduce.argtypes = [ctypes.c_int, ctypes.c_size_t]
        self._model.model_start()
        rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self._comm = self._model.model_comm(1, b"data", ranks, rank)
        self._model.model_kernel(b"_ZN5model5layerEPf", kernel_ns)
        self._kernels = kernels
        self._columns = max(1, round(4 * kernel_ns * FLOP_PER_NS / (2 * 1024 * 1024)))
        self._elements = kernel_ns * 25  # bytes of half the layer's kernel, at 100 GB/s

    def layer(self) -> None:
        for _ in range(GEMMS):
            self._model.model_launch(0, self._kernels // GEMMS)
            self._model.model_gemm(1024, 1024, self._columns)
        self._model.model_wait_for_compute()
        self._model.model_all_reduce(self._comm, self._elements)

    def end(self) -> None:
        self._model.model_wait_for_comm()
        self._model.model_synchronize()


def main() -> None:
    layers, kernels, kernel_ns, seconds = (int(text) for text in sys.argv[1:5])
    folder = pathlib.Path(sys.argv[5])
    torch.set_num_threads(1)
    gpu = Gpu(kernels, kernel_ns)
    model = torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    end_s = time.perf_counter() + seconds
    lines, stop, last = [], folder / "stop", 1 << 20
    for number, (x,) in enumerate(DataLoader(TensorDataset(torch.randn(last, 16)), batch_size=1)):
        begin_s, wall_s = time.perf_counter(), time.time()
        begin_thread_s, begin_cpu_s = time.thread_time(), time.process_time()
        optimizer.zero_grad()
        model(x).mean().backward()
        for _ in range(layers):
            gpu.layer()
        gpu.end()
        optimizer.step()
        ms = 1e3 * (time.perf_counter() - begin_s)
        thread_ms = 1e3 * (time.thread_time() - begin_thread_s)
        cpu_ms = 1e3 * (time.process_time() - begin_cpu_s)
        lines.append(f"{wall_s:.6f} {ms:.4f} {thread_ms:.4f} {cpu_ms:.4f} {int(in_window())}\n")
        # Both end after the same step: none is further than one step ahead.
        if os.environ["RANK"] == "0" and begin_s > end_s and not stop.exists():
            stop.write_text(str(number + 2))
        if stop.exists() and number >= int(stop.read_text() or number + 1):
            break
    if os.environ["RANK"] == "0":
        (folder / "times.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
