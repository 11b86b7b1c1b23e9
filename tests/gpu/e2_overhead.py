#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Experiment E2: what a deep window costs while it is open.

A loop of empty kernels in C through the agent's CUPTI back end, then training loops in torch, eager
and compiled, watched by `perftracker run --source agent`.

Expected: a launch costs the job's thread at most 1 us more in a window; every kernel is
recorded, none is dropped or without times; a step takes at most 2 % longer, or what steps
differ by anyway.

    tests/gpu/e2_overhead.py [--build DIR] [--double]
"""

from __future__ import annotations

import statistics
import sys

from experiment import (
    Check,
    Experiment,
    Figures,
    Job,
    Machine,
    allowed_frac,
    at_most,
    equal,
    more_frac,
    objects,
    run,
)

ROUNDS = {False: 400, True: 10}  # on a double each launch wakes a thread
LOOPS = {"eager": (), "compiled": ("--compile",)}


def measure(machine: Machine) -> Figures:
    machine.need_gpu()
    command = [machine.program("e_launches"), "windows", str(ROUNDS[machine.double])]
    figures: Figures = {"launches": objects(run(command, machine.environment()).stdout)}
    figures["loops"] = {}
    for name, words in LOOPS.items():
        if machine.double and words:
            continue
        with Job(machine, *words) as job:
            figures["loops"][name] = job.compare()
    return figures


def judge(figures: Figures) -> list[Check]:
    phases = figures["launches"]
    before = next(p for p in phases if p["phase"] == "before")
    inside = statistics.median(p["enqueue_ns"] for p in phases if p["phase"] == "in")
    windows = [p for p in phases if p["phase"] == "window"]
    lost = sum(w["dropped"] + w["untimed"] for w in windows)
    drain_ns = sum(w["drain_cpu_ms"] for w in windows) * 1e6 / sum(w["kernels"] for w in windows)
    checks = [
        at_most("a launch costs more in a window", inside - before["enqueue_ns"], 1000, " ns"),
        at_most("our thread's CPU for a kernel", drain_ns, 1000, " ns"),
        equal("kernels", [w["kernels"] for w in windows], [w["launched"] for w in windows]),
        equal("dropped or without times", lost, 0),
    ]
    for name, loop in figures["loops"].items():
        more = 100 * more_frac(loop["in_ms"], loop["before_ms"])
        checks.append(at_most(f"a step in a window, {name}", more, 100 * allowed_frac(loop), " %"))
    return checks


EXPERIMENT = Experiment("E2", "cost of a deep window", measure, judge)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
