# SPDX-License-Identifier: Apache-2.0
"""How fast the machine itself is during a run, by a fixed piece of work, apart from the job.

Its CPU time does not grow while it waits for a CPU, but does where the host gives the CPUs of this
machine, their caches or their clock to others.
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
from typing import Any

EVERY_S = 0.25
WORK = 12_000  # additions, about 0.5 ms: 0.2 % of a CPU
BEFORE_S = 15.0  # of an alarm


def work_ms() -> float:
    start, total = time.thread_time_ns(), 0
    for number in range(WORK):
        total += number
    return (time.thread_time_ns() - start) / 1e6


class Reference:
    """Measures in a thread of the bench, which otherwise sleeps."""

    def __init__(self) -> None:
        self.samples: list[tuple[float, float]] = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.measure)

    def measure(self) -> None:
        while not self.over.wait(EVERY_S):
            self.samples.append((round(time.time(), 2), round(work_ms(), 4)))

    def __enter__(self) -> Reference:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()


def factor_at(record: dict[str, Any], at_s: float) -> float:
    """By how much the machine was slower before a time than in the fastest fifth of the run."""
    samples = record.get("machine", [])
    then = [ms for when, ms in samples if at_s - BEFORE_S <= when <= at_s]
    if len(then) < 10 or len(samples) < 100:
        return 1.0  # unknown
    fast = sorted(ms for _, ms in samples)[len(samples) // 5]
    return statistics.median(then) / fast


if __name__ == "__main__":
    sys.exit("this is a module: run bench/live_jobs")
