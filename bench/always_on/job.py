# SPDX-License-Identifier: Apache-2.0
"""The measured job: one process on one CPU, iterations of a chosen length.

Arguments: what, a number, seconds, CPU. `torch` trains a small model from a DataLoader; `plain` is
a loop of arithmetic that calls perftracker.step(); the number is the work of an iteration. With
`torch-work` and `plain-work` it is milliseconds, and the work that takes so long is printed.
`marks` prints how many ns the marks of an optimizer's step take: its iterations do no work.
"""

from __future__ import annotations

import itertools
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

MARKS_CNT = 20000


def work_plain(amount: int) -> float:
    value = 0.5
    for _ in range(amount):
        value = 3.7 * value * (1.0 - value)
    return value


def amount_for(work: Callable[[int], object], ms: float) -> int:
    """How much work takes so long: from the median of a few tries, twice."""
    amount = 8
    for _ in range(12):
        took = []
        for _ in range(5):
            begin = time.perf_counter()
            work(amount)
            took.append(1e3 * (time.perf_counter() - begin))
        amount = max(1, round(amount * min(max(ms / statistics.median(took), 0.1), 10)))
    return amount


def train_plain(amount: int, seconds: float) -> None:
    import perftracker

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        work_plain(amount)
        perftracker.step()


def make_torch() -> tuple[Any, Callable[[int], object]]:
    """The model, and its work: so many rows, in pieces of 32, as operators and Python calls."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
    rows = torch.randn(4096, 64)

    def work(amount: int) -> None:
        loss = sum(
            model(rows[begin % 4064 : begin % 4064 + min(32, amount - begin)]).square().mean()
            for begin in range(0, amount, 32)
        )
        loss.backward()

    return model, work


def train_torch(amount: int, seconds: float) -> None:
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    model, work = make_torch()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    batches = DataLoader(TensorDataset(torch.arange(4096)), batch_size=1)
    end = time.monotonic() + seconds
    for _ in itertools.chain.from_iterable(itertools.repeat(batches)):
        optimizer.zero_grad()
        work(amount)
        optimizer.step()
        if time.monotonic() > end:
            return


def measure_marks() -> None:
    """ns of an iteration of an optimizer that does nothing: with and without PerfTracker."""
    import torch

    class Nothing(torch.optim.Optimizer):
        def step(self, closure: object = None) -> None:
            pass

    optimizer = Nothing([torch.zeros(1)], {})
    took = []
    for _ in range(50):
        begin = time.perf_counter_ns()
        for _ in range(MARKS_CNT // 50):
            optimizer.step()
        took.append((time.perf_counter_ns() - begin) / (MARKS_CNT // 50))
    print(f"marks_ns {statistics.median(took):.0f}", flush=True)


def main() -> None:
    what, number, seconds, cpu = sys.argv[1], *map(float, sys.argv[2:4]), int(sys.argv[4])
    os.sched_setaffinity(0, {cpu})  # before torch and the agent start threads
    if what == "marks":
        measure_marks()
    elif what == "plain-work":
        print(f"work {amount_for(work_plain, number)}", flush=True)
    elif what == "torch-work":
        print(f"work {amount_for(make_torch()[1], number)}", flush=True)
    elif what == "plain":
        train_plain(int(number), seconds)
    else:
        train_torch(int(number), seconds)


if __name__ == "__main__":
    main()
