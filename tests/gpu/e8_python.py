#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Experiment E8: what it costs to see Python, and torch.compile beside it.

Training loops under `perftracker run`: stacks sampled (the default), every call traced
(--exact), torch.profiler with stacks, and a compiled model. Runs on a CPU too, and says so.

Expected: with samples a step takes at most 2 % longer in a window, or what steps differ by; with
exact calls at most three times as long; less with samples than with torch.profiler. A window
makes torch.compile neither compile again nor break a graph. Operators are recorded: the hook's
self-test with this torch succeeds.

    tests/gpu/e8_python.py [--build DIR] [--double]
"""

from __future__ import annotations

import sys

from experiment import (
    Check,
    Experiment,
    Figures,
    Job,
    Machine,
    Skip,
    allowed_frac,
    at_most,
    equal,
    more_frac,
)

WAYS = {
    "samples": ("--source", "agent"),
    "exact": ("--source", "agent", "--exact"),
    "torch.profiler": ("--source", "torch"),
}


def device(machine: Machine) -> str:
    try:
        machine.need_gpu()
        machine.python()
    except Skip:
        return "cpu"
    return machine.device()


def compiled(machine: Machine, on: str) -> Figures:
    with Job(machine, "--device", on, "--compile") as job:
        job.await_steps(100, 300)  # the pace of the first ones holds the compiler's work
        report, why = job.profile()
        if report is None:
            return {"why": why}
        job.await_steps(10)
        seen = job.end()
        absent = [each["source"] for each in report["coverage"]["sources_absent"]]
        return {"early": seen["compiled_early"], "late": seen["compiled_late"], "absent": absent}


def measure(machine: Machine) -> Figures:
    on = device(machine)
    figures: Figures = {"on": {"cuda": "device", "cpu": "CPU"}.get(on, on), "ways": {}}
    for name, options in WAYS.items():
        with Job(machine, "--device", on, options=options) as job:
            figures["ways"][name] = job.compare(40)
    try:
        figures["compiled"] = (
            {"why": "not on a double"} if machine.double else compiled(machine, on)
        )
    except RuntimeError as trouble:  # there may be no compiler
        figures["compiled"] = {"why": str(trouble)}
    return figures


def judge(figures: Figures) -> list[Check]:
    ways = figures["ways"]
    more = {name: 100 * more_frac(way["in_ms"], way["before_ms"]) for name, way in ways.items()}
    allowed = 100 * allowed_frac(ways["samples"])
    theirs = more["torch.profiler"] + allowed
    checks = [
        at_most("a step in a window, samples", more["samples"], allowed, " %"),
        at_most("the same, every call", more["exact"], 200, " %"),
        at_most("samples against torch.profiler", more["samples"], theirs, " %"),
    ]
    seen = figures["compiled"]
    if "why" in seen:
        return checks
    return [
        *checks,
        equal("graphs that were compiled again", seen["late"]["graphs"], seen["early"]["graphs"]),
        equal("graphs that were broken", seen["late"]["breaks"], seen["early"]["breaks"]),
        Check(
            "operators are recorded",
            "yes",
            str(seen["absent"]),
            "operators" not in seen["absent"],
        ),
    ]


EXPERIMENT = Experiment("E8", "Python and torch.compile", measure, judge)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
