# SPDX-License-Identifier: Apache-2.0
"""The CPU of one rank: its clock, what it records, and what it launches."""

from __future__ import annotations

import contextlib
import itertools
import math
import random
from collections.abc import Generator, Iterator
from typing import NamedTuple

import numpy
from engine import Engine, Group, Work
from faults import Fault
from spec import Spec

COMPUTE = 7  # number of the stream
COLLECTIVES = {
    "allreduce": ("c10d::allreduce_", "nccl:all_reduce", "AllReduce_Sum_bf16_RING_LL"),
    "allgather": ("c10d::_allgather_base_", "nccl:_all_gather_base", "AllGather_RING_LL"),
    "reduce_scatter": (
        "c10d::_reduce_scatter_base_",
        "nccl:_reduce_scatter_base",
        "ReduceScatter_Sum_bf16_RING_LL",
    ),
    "all_to_all": ("c10d::alltoall_base_", "nccl:all_to_all", "SendRecv"),
    "send": ("c10d::send", "nccl:send", "SendRecv"),
    "recv": ("c10d::recv_", "nccl:recv", "SendRecv"),
}


class Event(NamedTuple):
    """One event of the CPU; the writer adds the ids."""

    name: str
    category: str
    thread: int  # 0: training thread, 1: autograd's
    start: float
    end: float
    args: dict


class Span:
    """Records an event for as long as it is entered."""

    __slots__ = ("args", "category", "name", "rank", "start", "thread")

    def __init__(self, rank: Rank, name: str, category: str, args: dict) -> None:
        self.rank, self.name, self.category, self.args = rank, name, category, args

    def __enter__(self) -> None:
        self.start, self.thread = self.rank.now, self.rank.thread

    def __exit__(self, *failure: object) -> None:
        event = Event(self.name, self.category, self.thread, self.start, self.rank.now, self.args)
        self.rank.events.append(event)


class Rank:
    def __init__(self, spec: Spec, fault: Fault, engine: Engine, rank: int) -> None:
        self.spec, self.fault, self.engine, self.rank = spec, fault, engine, rank
        self.dice = random.Random(f"{spec.seed}/rank/{rank}")
        normals = numpy.random.default_rng([spec.seed, rank]).normal(size=8192)
        self.normals = itertools.cycle(numpy.clip(normals, -3, 4).tolist())
        self.now = self.dice.uniform(0, 500)
        self.thread = 0
        self.events: list[Event] = []
        self.frames: list[int] = []
        self.frame_count = 0
        self.correlations = 1000 * (rank + 1)
        self.iteration = 0
        self.steps: list[float] = []  # begin of each iteration
        self.chip = math.exp(self.dice.gauss(0, spec.chip_jitter))
        self.gpu_factor = self.chip * fault.gpu.get(rank, 1.0) * fault.tokens.get(rank, 1.0)
        self.random_stalls: list[tuple[int, float, bool]] = []  # operator, us, inside it
        self.operators = 0

    def jitter(self, sigma: float) -> float:
        """A factor around 1, the same in each run of the job."""
        return 1 + sigma * next(self.normals)

    def work(self, us: float) -> None:
        """Computes on the CPU."""
        first = 2.5 if self.spec.warmup and self.iteration == 0 else 1.0
        self.now += us * self.jitter(self.spec.cpu_jitter) * first

    def event(self, name: str, category: str = "cpu_op", **args: object) -> Span:
        return Span(self, name, category, args)

    @contextlib.contextmanager
    def frame(self, name: str) -> Iterator[None]:
        """A Python function, recorded in jobs with stacks."""
        if not self.spec.stacks:
            yield
            return
        self.frame_count += 1
        own = self.frame_count
        parent = self.frames[-1] if self.frames else None
        self.frames.append(own)
        start, thread = self.now, self.thread
        if self.spec.ragged and self.dice.random() < 0.3:
            start -= self.dice.uniform(0, 10)
        yield
        self.frames.pop()
        args = {"Python id": own, "Python parent id": parent}
        self.events.append(Event(name, "python_function", thread, start, self.now, args))

    @contextlib.contextmanager
    def on_thread(self, thread: int) -> Iterator[None]:
        before, self.thread = self.thread, thread
        yield
        self.thread = before

    def begin(self, iteration: int) -> None:
        self.iteration = iteration
        self.steps.append(self.now)
        self.operators = 0
        stalls = self.fault.stalls.get((self.rank, iteration), [])
        self.random_stalls = [
            (one.number, one.us, bool(one.kind)) for one in stalls if one.place == "random"
        ]
        if self.dice.random() < self.spec.hiccup:
            pause = self.dice.uniform(0.1, 1.0) * min(1500.0, 0.02 * self.spec.compute_us)
            self.random_stalls.append((self.dice.randrange(40), pause, True))

    def stall(self, place: str) -> Generator[Work, None, None]:
        """What the fault, if any, does here in this iteration."""
        for one in self.fault.stalls.get((self.rank, self.iteration), []):
            if one.place != place:
                continue
            if one.kind == "pageable":
                yield from self.copy_pageable(one.us)
            elif one.kind in ("cudaHostAlloc", "cudaMalloc"):
                with self.event("aten::empty"):
                    self.work(2.0)
                    with self.event(one.kind, "cuda_runtime"):
                        self.now += one.us
                    self.work(1.0)
            elif one.kind:
                with self.event(one.kind):
                    self.now += one.us
            else:
                self.now += one.us

    def copy_pageable(self, us: float) -> Generator[Work, None, None]:
        """The call returns when the copy is done, in parts as batches are."""
        for _ in range(4):
            with self.event("aten::to"), self.event("aten::copy_"):
                start = self.now
                copy = self.enqueue("Memcpy HtoD (Pageable -> Device)", COMPUTE, us / 4, [])
                copy.args["bytes"] = int(us / 4 * 3000)
                yield copy
                self.now = max(self.now, copy.end)
                self.record_call("cudaMemcpyAsync", start, copy)

    def record_call(self, name: str, start: float, launched: Work | None = None) -> None:
        args = {"correlation": launched.correlation} if launched else {}
        self.events.append(Event(name, "cuda_runtime", self.thread, start, self.now, args))

    def enqueue(self, name: str, stream: int, us: float, after: list[Work | None]) -> Work:
        memory = name.startswith("Mem")
        category = ("gpu_memset" if "Memset" in name else "gpu_memcpy") if memory else "kernel"
        work = Work(self.rank, stream, name, category, us)
        self.correlations += 1
        work.correlation = self.correlations
        work.launched = self.now
        return self.engine.enqueue(work, after)

    def launch(
        self, name: str, us: float, after: list[Work | None] | None = None, stream: int = COMPUTE
    ) -> Work:
        """A kernel, by a runtime call of some us; us: its duration on a healthy GPU."""
        start = self.now
        self.work(5.0)
        dur = us * self.gpu_factor * self.jitter(self.spec.gpu_jitter) + 1.5
        work = self.enqueue(name, stream, dur, after or [])
        blocks = int(108 + us * self.fault.tokens.get(self.rank, 1.0))
        work.args |= {"grid": [blocks, 1, 1], "block": [256, 1, 1]}
        self.record_call("cudaLaunchKernel", start, work)
        return work

    def operator(self, name: str, kernel: str, us: float, after: list | None = None) -> Work:
        args = {}
        if self.spec.shapes:
            rows = int(4096 * self.fault.tokens.get(self.rank, 1.0))
            args = {"Input Dims": [[rows, 1024], [1024, 1024]], "Input type": ["float", "float"]}
        self.pause(inside=False)
        with self.event(name, **args):
            self.work(self.spec.op_us * self.fault.cpu.get(self.rank, 1.0))
            self.pause(inside=True)
            work = self.launch(kernel, us, after)
            self.work(2.0)
        self.operators += 1
        return work

    def pause(self, inside: bool) -> None:
        for number, us, place in self.random_stalls:
            if (number, place) == (self.operators, inside):
                self.now += us

    def collective(
        self,
        what: str,
        group: Group,
        moved: float,
        stream: int,
        after: list[Work | None],
        shown: Group | None = None,
    ) -> Work:
        """moved: bytes over the links of a member; shown: the group that the trace names."""
        shown = shown or group
        outer, annotation, kernel = COLLECTIVES[what]
        args = {
            "Collective name": what,
            "In msg nelems": int(moved / 2),
            "Out msg nelems": int(moved / 2),
            "Group size": len(shown.ranks),
            "dtype": "BFloat16",
            "Process Group Name": shown.name,
            "Process Group Description": shown.text,
            "Process Group Ranks": str(list(shown.ranks)),
        }
        args = args if self.spec.comm_args else {}
        with self.event(outer):
            self.work(2.0)
            with self.event("record_param_comms", **args):
                self.work(2.0)
                with self.event(annotation, "user_annotation"):
                    work = self.launch_member(kernel, group, moved, stream, after)
                    work.args = args
                    self.work(1.0)
                self.work(1.0)
            self.work(1.0)
        return work

    def launch_member(
        self, kernel: str, group: Group, moved: float, stream: int, after: list[Work | None]
    ) -> Work:
        self.work(8.0)
        start = self.now
        self.work(5.0)
        name = f"ncclDevKernel_{kernel}(ncclDevKernelArgsStorage<4096ul>)"
        work = Work(self.rank, stream, name, "kernel", 0.0)
        self.correlations += 1
        work.correlation, work.launched = self.correlations, self.now
        self.engine.join(work, group, moved)
        self.engine.enqueue(work, after)
        self.record_call("cudaLaunchKernel", start, work)
        return work

    def wait(self, call: str, works: list[Work | None]) -> Generator[Work, None, None]:
        """A runtime call that returns when the works are done."""
        start = self.now
        for work in works:
            if work is not None:
                yield work
                self.now = max(self.now, work.end)
        self.now += 4.0
        self.record_call(call, start)
