#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Experiment E3: what stays of a deep window after it.

Expected: after each of three windows launches and steps take as long as before, within 2 % or
their usual difference: CUPTI is detached. The real library calls back at the agent's own
cuDriverGetVersion, so that a detach doesn't wait for the job. Opening a window stops the job
for at most 500 ms, closing it takes at most 2 s beside it. Reported: the residue of a client that
only switches off its recording (and so stays attached), beside the residue after a detach, at most
5 %, and the time of each of the client's calls.

    tests/gpu/e3_residue.py [--build DIR] [--double]
"""

from __future__ import annotations

import sys

from e2_overhead import CHOSEN, loop_in_way
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

ROUNDS = {False: 400, True: 10}
WINDOWS = 3


def measure(machine: Machine) -> Figures:
    machine.need_gpu()
    command = [machine.program("e_launches"), "windows", str(ROUNDS[machine.double])]
    figures: Figures = {"launches": objects(run(command, machine.environment()).stdout)}
    figures["bare"] = loop_in_way(machine, "launches", CHOSEN)
    with Job(machine) as job:
        figures["steps"] = [job.compare() for _ in range(1 if machine.double else WINDOWS)]
    return figures


def judge_bare(phases: Figures) -> list[Check]:
    """Of the client of e_ways.h, which switches off before it detaches."""
    if "why" in phases:
        return [Check("a bare client", "", phases["why"], True)]
    more = {
        name: 100 * more_frac(phases[name]["queue_ns"], phases["before"]["queue_ns"])
        for name in ("disabled", "detached")
    }
    times = {**phases["seen"], **phases["detach"]}
    listed = ", ".join(
        f"{name[:-3]} {ms:.2f}" for name, ms in times.items() if name.endswith("_ms")
    )
    return [
        Check("a launch, recording switched off", "reported", f"{more['disabled']:+.1f} %", True),
        at_most("a launch, detached", more["detached"], 5, " %"),
        Check("ms of a bare client's calls", "reported", listed, True),
    ]


def judge(figures: Figures) -> list[Check]:
    phases = figures["launches"]
    before = next(p for p in phases if p["phase"] == "before")
    windows = [p for p in phases if p["phase"] == "window"]
    checks = [
        equal("what stayed attached", [w["stayed"] for w in windows], [""] * len(windows)),
        at_most("opening a window", max(w["open_ms"] for w in windows), 500, " ms"),
        at_most("closing it", max(w["close_ms"] for w in windows), 2000, " ms"),
    ]
    for after in (p for p in phases if p["phase"] == "after"):
        more = 100 * more_frac(after["enqueue_ns"], before["enqueue_ns"])
        checks.append(at_most(f"a launch after window {after['window']}", more, 5, " %"))
    checks += judge_bare(figures["bare"])
    first = figures["steps"][0]
    for number, steps in enumerate(figures["steps"], 1):
        more = 100 * more_frac(steps["after_ms"], first["before_ms"])
        checks.append(
            at_most(f"a step after window {number}", more, 100 * allowed_frac(first), " %")
        )
    return checks


EXPERIMENT = Experiment("E3", "residue of a deep window", measure, judge)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
