# SPDX-License-Identifier: Apache-2.0
"""Runs pieces of work beside each other, as many as there are CPUs for.

Each piece has the number of CPUs that it keeps busy on the average: one that mostly waits counts
little. The longest pieces begin first. Compilers are not counted: they run at a lower priority, in
threads of their own, and use the CPU time that is left.
"""

from __future__ import annotations

import concurrent.futures
import heapq
import itertools
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Work(NamedTuple):
    run: Callable[[], Any]
    take: Callable[[Any, float], None]  # gets the result and the seconds that run() took
    cpus: float = 1.0
    seconds: float = 1.0  # about; the longest begin first


class Pool:
    """drain() starts the added work and calls take() for each result, in the calling thread."""

    def __init__(self, cpus: float, threads: int = 64) -> None:
        self.cpus = cpus
        self._busy = 0.0
        self._waiting: list[tuple[float, int, Work]] = []
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._left = 0
        self._drained = False
        self._done: queue.SimpleQueue[tuple[Callable[..., None], tuple]] = queue.SimpleQueue()
        self._threads = concurrent.futures.ThreadPoolExecutor(threads)

    def add(self, *works: Work) -> None:
        with self._lock:
            self._left += len(works)
            for work in works:
                heapq.heappush(self._waiting, (-work.seconds, next(self._numbers), work))
            if self._drained:
                self._begin()

    def aside(self, run: Callable[[], Any], take: Callable[[Any], None]) -> None:
        """Starts at once, beside everything else."""
        with self._lock:
            self._left += 1
        self._threads.submit(lambda: self._done.put(outcome(run, take)))

    def drain(self) -> None:
        """Returns when all work is done, also work that take() added."""
        with self._lock:
            self._drained = True
            self._begin()
        while self._left:
            take, results = self._done.get()
            take(*results)
            with self._lock:
                self._left -= 1

    def _begin(self) -> None:
        """Starts what fits, the longest first; when nothing runs, something always fits."""
        later = []
        while self._waiting:
            entry = heapq.heappop(self._waiting)
            cpus = min(entry[2].cpus, self.cpus)
            if self._busy + cpus <= self.cpus + 1e-9:
                self._busy += cpus
                self._threads.submit(self._run, entry[2], cpus)
            else:
                later.append(entry)
        self._waiting = later  # in order: it was sorted

    def _run(self, work: Work, cpus: float) -> None:
        begin_s = time.monotonic()
        take, results = outcome(work.run, work.take)
        with self._lock:
            self._busy -= cpus
            self._begin()
        self._done.put((take, (*results, time.monotonic() - begin_s)))


def outcome(run: Callable[[], Any], take: Callable[..., None]) -> tuple[Callable[..., None], tuple]:
    """take and its arguments; an exception of run() is raised by drain()."""
    try:
        return take, (run(),)
    except Exception as error:
        return raise_it, (error,)


def raise_it(error: Exception, *_: object) -> None:
    raise error
