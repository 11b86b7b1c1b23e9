# SPDX-License-Identifier: Apache-2.0
"""Scenarios: what is wrong in a job, and which answers are right.

A scenario draws the kind of job that it fits, then the fault, whose size is a share of the job's
healthy iteration. The fault changes what a rank or a link does; who waits for it follows from the
model. Truth states what can be known from the files: without stacks, no function; without
counters, not which member of a ring has the slow link.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import NamedTuple

from spec import KINDS, Spec

# Causes of a rank that is late by what its CPU does; which of them only more records tell.
HOST = ["host-stall", "cpu-bound-python", "garbage-collection", "gil-contention", "cpu-starvation",
        "slow-operator", "unexplained-difference"]  # fmt: skip
COLLECTIVE = ["slow-collective", "slow-link", "nvlink-fallback"]


class Stall(NamedTuple):
    place: str  # in the program
    us: float
    kind: str = ""  # operator or call that lasts; empty: what runs there; random: inside operators
    number: int = 0  # of the operator, where the place is "random"


@dataclasses.dataclass
class Truth:
    """answers: sets of ranks of which one must be accused; the first are the ranks at fault."""

    answers: list[frozenset[int]]
    causes: list[str]
    words: list[str] = dataclasses.field(default_factory=list)  # in the function's name
    possible: frozenset[int] = frozenset()  # by turns: any half of those hit, all of them possible


@dataclasses.dataclass
class Fault:
    gpu: dict[int, float] = dataclasses.field(default_factory=dict)  # factor on kernels
    tokens: dict[int, float] = dataclasses.field(default_factory=dict)  # factor on the input
    cpu: dict[int, float] = dataclasses.field(default_factory=dict)  # factor on operators
    nics: dict[int, float] = dataclasses.field(default_factory=dict)  # share that is left
    links: dict[str, float] = dataclasses.field(default_factory=dict)  # the same, by group
    stalls: dict[tuple[int, int], list[Stall]] = dataclasses.field(default_factory=dict)
    more_layers: dict[int, int] = dataclasses.field(default_factory=dict)  # by stage
    unit: float = 1.0  # factor on all kernels
    evaluations: tuple[int, ...] = ()  # iterations after which the job evaluates
    missing: frozenset[int] = frozenset()  # ranks without a file
    truths: list[Truth] = dataclasses.field(default_factory=list)  # empty: healthy
    cured: dict = dataclasses.field(default_factory=dict)  # what the job has without the fault

    def stall(self, rank: int, iteration: int, stall: Stall) -> None:
        self.stalls.setdefault((rank, iteration), []).append(stall)


def one(ranks: set[int] | frozenset[int], causes: list[str], words: list[str]) -> Truth:
    return Truth([frozenset(ranks)], causes, words)


def healthy(spec: Spec, dice: random.Random, whole: float) -> Fault:
    return Fault()


def gpu(spec: Spec, dice: random.Random, whole: float) -> Fault:
    rank = dice.randrange(spec.world)
    causes = ["gpu-slow"]
    return Fault(
        gpu={rank: dice.uniform(1.15, 2.2)}, truths=[one({rank}, causes, ["gemm", "flash_"])]
    )


def gpu_host(spec: Spec, dice: random.Random, whole: float) -> Fault:
    ranks = spec.host_ranks(dice.randrange(spec.world // spec.per_host))
    factor = dice.uniform(1.15, 1.8)
    return Fault(
        gpu=dict.fromkeys(ranks, factor), truths=[one(ranks, ["gpu-slow"], ["gemm", "flash_"])]
    )


SAMPLES = 4  # of one transfer that tell a steady link from one that pauses


def reduction_us(spec: Spec) -> float:
    """Of one bucket of gradients, without a fault."""
    unit = spec.unit_us * sum(operator[4] for operator in spec.operators)
    return spec.comm * 2 * unit * spec.layers / spec.buckets


def nic_truth(spec: Spec, rank: int, share: float) -> Truth:
    """Only fine counters tell the slow link from those that wait for it."""
    group = spec.group_of("dp", rank)
    ring = next(ring for ring in group.rings if rank in ring)
    period = min(spec.pulse_us / 2, reduction_us(spec) / share / SAMPLES)
    fine = 0 < spec.counters_us <= period
    answers = [{rank}] if fine else [{rank}, set(group.ranks), set(ring)]
    causes = ["slow-link"] if fine else ["slow-link", "slow-collective"]
    return Truth([frozenset(one) for one in answers], causes)


def nic(spec: Spec, dice: random.Random, whole: float) -> Fault:
    rank, share = dice.randrange(spec.world), dice.uniform(0.3, 0.6)
    return Fault(nics={rank: share}, truths=[nic_truth(spec, rank, share)])


def two_nics(spec: Spec, dice: random.Random, whole: float) -> Fault:
    """Both of one rate, in two groups."""
    groups = dice.sample(spec.groups["dp"], 2)
    ranks = [dice.choice(group.ranks) for group in groups]
    share = dice.uniform(0.3, 0.6)
    truths = [nic_truth(spec, rank, share) for rank in ranks]
    both = [frozenset(ranks)]
    if len(truths[0].answers) > 1:
        both.append(frozenset(rank for group in groups for rank in group.ranks))
    for truth in truths:
        truth.answers += both
    return Fault(nics=dict.fromkeys(ranks, share), truths=truths)


def nvlink(spec: Spec, dice: random.Random, whole: float) -> Fault:
    group = dice.choice(spec.groups["tp"])
    share = dice.uniform(0.15, 0.4)
    return Fault(links={group.name: share}, truths=[one(set(group.ranks), COLLECTIVE, [])])


def stalled(spec: Spec, ranks: frozenset[int], stall: Stall, every: int, truth: Truth) -> Fault:
    fault = Fault(truths=[truth])
    for rank in ranks:
        for iteration in range(every - 1, spec.iterations, every):
            fault.stall(rank, iteration, stall)
    return fault


def host_truth(spec: Spec, ranks: frozenset[int], word: str) -> Truth:
    return Truth([ranks], [] if spec.stacks else HOST, [word] if spec.stacks else [])


def size(dice: random.Random, whole: float) -> float:
    return max(2000.0, whole * dice.uniform(0.15, 1.0))


LOADER = Truth([], ["slow-data-loading"], ["__next__", "DataLoader", "dataloader"])


def loader(spec: Spec, dice: random.Random, whole: float) -> Fault:
    ranks = frozenset({dice.randrange(spec.world)})
    truth = dataclasses.replace(LOADER, answers=[ranks])
    return stalled(spec, ranks, Stall("loader", size(dice, whole)), 1, truth)


def loader_all(spec: Spec, dice: random.Random, whole: float) -> Fault:
    ranks = frozenset(range(spec.world))
    truth = dataclasses.replace(LOADER, answers=[ranks])
    return stalled(spec, ranks, Stall("loader", size(dice, whole)), 1, truth)


def python(spec: Spec, dice: random.Random, whole: float) -> Fault:
    ranks = frozenset({dice.randrange(spec.world)})
    place, word = dice.choice((("augment", "random_crop"), ("log", "log_metrics")))
    stall = Stall(place, size(dice, whole))
    return stalled(spec, ranks, stall, 1, host_truth(spec, ranks, word))


def python_all(spec: Spec, dice: random.Random, whole: float) -> Fault:
    ranks = frozenset(range(spec.world))
    truth = host_truth(spec, ranks, "random_crop")
    if not spec.stacks:
        truth.causes = [*truth.causes, "slow-function-everywhere", "host-bound"]
    return stalled(spec, ranks, Stall("augment", size(dice, whole)), 1, truth)


def garbage(spec: Spec, dice: random.Random, whole: float) -> Fault:
    """Each rank collects after so many iterations of its own, anywhere in its program."""
    period = dice.choice((2, 3, 4))
    us = max(8000.0, whole * dice.uniform(0.3, 0.8))
    fault, hit = Fault(), set()
    for rank in range(spec.world):
        for iteration in range(dice.randrange(period), spec.iterations, period):
            fault.stall(rank, iteration, Stall("random", us, number=dice.randrange(12)))
            hit.add(rank)
    everyone = frozenset(range(spec.world))
    fault.truths = [Truth([frozenset(hit)], HOST, ["gc"], everyone)]
    return fault


def rotating(spec: Spec, dice: random.Random, whole: float) -> Fault:
    fault, hit = Fault(), set()
    ranks = list(range(spec.world))
    dice.shuffle(ranks)
    us = size(dice, whole)
    for iteration in range(spec.iterations):
        rank = ranks[iteration % len(ranks)]
        fault.stall(rank, iteration, Stall("log", us))
        hit.add(rank)
    truth = host_truth(spec, frozenset(hit), "log_metrics")
    truth.possible = frozenset(ranks)
    fault.truths = [truth]
    return fault


def uneven(spec: Spec, dice: random.Random, whole: float) -> Fault:
    """One stage has a layer more; without the fault all stages have an equal part of it."""
    stage = dice.randrange(spec.pp)
    ranks = {rank for rank in range(spec.world) if spec.place(rank)["pp"] == stage}
    causes = ["load-imbalance", "uneven-stages"]
    even = 1 + 1 / (spec.pp * spec.layers)
    return Fault(more_layers={stage: 1}, cured={"unit": even}, truths=[one(ranks, causes, [])])


def imbalance(spec: Spec, dice: random.Random, whole: float) -> Fault:
    rank = dice.randrange(spec.world)
    causes = ["load-imbalance"] if spec.shapes else ["load-imbalance", "gpu-slow"]
    words = [] if spec.shapes else ["gemm", "flash_"]
    return Fault(tokens={rank: dice.uniform(1.2, 2.0)}, truths=[one({rank}, causes, words)])


def contention(spec: Spec, dice: random.Random, whole: float) -> Fault:
    """Threads of one host lose slices of 4 ms, at random places."""
    ranks = spec.host_ranks(dice.randrange(spec.world // spec.per_host))
    fault = Fault(truths=[Truth([ranks], [*HOST, "random-stalls"], [], ranks)])
    for rank in ranks:
        for iteration in range(spec.iterations):
            for _ in range(max(1, round(whole * dice.uniform(0.1, 0.5) / 4000))):
                slices = 4000.0 * dice.choice((1, 1, 2))
                fault.stall(rank, iteration, Stall("random", slices, "inside", dice.randrange(14)))
    return fault


def periodic(spec: Spec, dice: random.Random, whole: float) -> Fault:
    ranks = spec.host_ranks(dice.randrange(spec.world // spec.per_host))
    truth = host_truth(spec, ranks, "log_metrics")
    truth.possible = ranks
    return stalled(spec, ranks, Stall("log", 2 * size(dice, whole)), dice.choice((1, 2)), truth)


def allocation(spec: Spec, dice: random.Random, whole: float) -> Fault:
    ranks = frozenset({dice.randrange(spec.world)})
    call = dice.choice(("cudaHostAlloc", "cudaMalloc"))
    causes = ["pinned-memory-allocation"] if call == "cudaHostAlloc" else ["slow-copy"]
    place = dice.choice(("forward", "copy", "optimizer"))
    truth = Truth([ranks], causes, [call])
    return stalled(spec, ranks, Stall(place, size(dice, whole), call), 1, truth)


def copies(spec: Spec, dice: random.Random, whole: float) -> Fault:
    ranks = frozenset({dice.randrange(spec.world)})
    words = ["Memcpy HtoD", "cudaMemcpyAsync", "aten::to", "aten::copy_", "copy_in"]
    truth = Truth([ranks], ["slow-copy"], words)
    return stalled(spec, ranks, Stall("copy", size(dice, whole), "pageable"), 1, truth)


def host_bound(spec: Spec, dice: random.Random, whole: float) -> Fault:
    """Operators take long on the CPUs of all ranks; the GPUs have little to do."""
    unit = dice.uniform(4, 9) / spec.unit_us
    everyone = frozenset(range(spec.world))
    causes = [*HOST, "slow-function-everywhere", "host-bound"]
    factor = dice.uniform(6, 12)
    cpu = dict.fromkeys(everyone, factor)
    return Fault(cpu=cpu, unit=unit, cured={"unit": unit}, truths=[Truth([everyone], causes)])


def checkpoint(spec: Spec, dice: random.Random, whole: float) -> Fault:
    """Once in the window, by all ranks; a pause that belongs to the job."""
    fault, iteration = Fault(), dice.randrange(1, spec.iterations)
    for rank in range(spec.world):
        us = whole * dice.uniform(0.95, 1.05)
        fault.stall(rank, iteration, Stall("checkpoint", us))
    return fault


def evaluation(spec: Spec, dice: random.Random, whole: float) -> Fault:
    return Fault(evaluations=(dice.randrange(1, spec.iterations),))


def missing(spec: Spec, dice: random.Random, whole: float) -> Fault:
    """The rank at fault has no file."""
    make = dice.choice((gpu, python, loader))
    fault = make(spec, dice, whole)
    fault.missing = fault.truths[0].answers[0]
    return fault


def is_spread(spec: Spec) -> bool:
    """Gradients cross hosts, in more than one group, and the files name the groups."""
    groups = spec.groups.get("dp", [])
    return len(groups) > 1 and bool(groups[0].rings) and spec.comm_args


def has_tensor_groups(spec: Spec) -> bool:
    return len(spec.groups["tp"]) > 1 and spec.comm_args


def has_sisters(spec: Spec) -> bool:
    """Groups without a fault are left to compare with."""
    return is_spread(spec) and len(spec.groups["dp"]) > 3


class Scenario(NamedTuple):
    make: Callable[[Spec, random.Random, float], Fault]
    kinds: tuple[str, ...]
    fits: Callable[[Spec], bool] = lambda spec: True


def has_hosts(spec: Spec) -> bool:
    return spec.world >= 2 * spec.per_host and spec.world % spec.per_host == 0


BALANCED = ("ddp", "tp", "fsdp", "moe", "dlrm")
SCENARIOS = {
    "healthy": Scenario(healthy, KINDS),
    "healthy-checkpoint": Scenario(checkpoint, KINDS, lambda spec: spec.iterations > 4),
    "healthy-evaluation": Scenario(evaluation, BALANCED, lambda spec: spec.iterations > 4),
    "slow-gpu": Scenario(gpu, KINDS),
    "slow-gpu-host": Scenario(gpu_host, ("ddp", "tp", "fsdp", "pptp"), has_hosts),
    "nic": Scenario(nic, ("tp",), is_spread),
    "two-nics": Scenario(two_nics, ("tp",), has_sisters),
    "nvlink": Scenario(nvlink, ("tp", "pptp"), has_tensor_groups),
    "loader": Scenario(loader, BALANCED),
    "loader-all": Scenario(loader_all, BALANCED),
    "python": Scenario(python, KINDS),
    "python-all": Scenario(python_all, BALANCED),
    "garbage": Scenario(garbage, BALANCED),
    "rotating": Scenario(rotating, KINDS),
    "uneven-stage": Scenario(uneven, ("pp", "pptp")),
    "imbalance": Scenario(imbalance, ("ddp", "fsdp", "moe")),
    "contention": Scenario(contention, ("ddp", "tp", "fsdp"), has_hosts),
    "periodic-host": Scenario(periodic, ("ddp", "tp", "fsdp"), has_hosts),
    "allocation": Scenario(allocation, BALANCED),
    "copies": Scenario(copies, BALANCED),
    "host-bound": Scenario(host_bound, ("ddp", "fsdp", "tp")),
    "missing-culprit": Scenario(missing, BALANCED),
}
