#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Experiment E2: what a deep window costs while it is open, and what each way to record does.

Loops of empty kernels in C (200,000 launches; the same as replays of a graph) and training steps in
torch, eager and compiled, under a client that records in one of several ways (e_ways.h): off,
attached and idle, kernels, copies and waits too, all calls of the runtime or chosen ones, one
buffer for all threads or one each, of 128 KiB, 1 or 8 MiB, in the device's memory or the host's.
Then the agent's own windows: in the loop of kernels, and by `perftracker run --source agent`.

Expected: attached and idle, a launch costs the job's thread at most 0.1 us more; with chosen calls
and in a window at most 1 us; every kernel is recorded, none is dropped or without times; a step
takes at most 2 % longer, or the usual difference of steps. The cost of the other ways is reported.

    tests/gpu/e2_overhead.py [--build DIR] [--double]
"""

from __future__ import annotations

import statistics
import sys

from experiment import (
    NOISE_FRAC,
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
    noise_frac,
    objects,
    run,
)

ROUNDS = {False: 400, True: 10}  # on a double each launch wakes a thread
WAY_ROUNDS = {False: 782, True: 4}  # of 256 launches
WAY_STEPS = {False: 60, True: 5}
LOOPS = {"eager": (), "compiled": ("--compile",)}
WAYS = ("off", "idle", "kernels", "copies", "runtime", "selected", "one-buffer", "128K", "8M")
WAYS += ("pinned",)
CHOSEN = "selected"  # as the agent records
MOST_MORE_NS = {"idle": 100, CHOSEN: 1000}


def loop_in_way(machine: Machine, loop: str, way: str) -> Figures:
    """In a process of its own: what the last way left can't be seen."""
    command = [machine.program("e_loops"), loop, way, str(WAY_ROUNDS[machine.double])]
    try:
        output = objects(run(command, machine.environment()).stdout)
    except Skip as why:
        return {"why": str(why)}
    return {phase.pop("phase"): phase for phase in output}


def steps_in_ways(machine: Machine, words: tuple[str, ...]) -> list[Figures]:
    """Medians of a step, in ms."""
    script = str(machine.job("way_steps.py"))
    command = [machine.python(), script, machine.program("e_ways.so")]
    command += [str(WAY_STEPS[machine.double]), "--device", machine.device(), *words]
    ways = objects(run(command, machine.environment(), 400).stdout)
    for way in (way for way in ways if "why" not in way):
        before, inside = way.pop("before"), way.pop("in")
        way["before_ms"], way["in_ms"] = statistics.median(before), statistics.median(inside)
        way["noise_frac"] = noise_frac(before)
    return ways


def measure(machine: Machine) -> Figures:
    machine.need_gpu()
    command = [machine.program("e_launches"), "windows", str(ROUNDS[machine.double])]
    figures: Figures = {"launches": objects(run(command, machine.environment()).stdout)}
    figures["ways"] = {
        loop: {way: loop_in_way(machine, loop, way) for way in WAYS}
        for loop in ("launches", "graph")
    }
    figures["loops"], figures["steps"] = {}, {}
    for name, words in LOOPS.items():
        if machine.double and words:
            continue
        try:
            figures["steps"][name] = steps_in_ways(machine, words)
            with Job(machine, *words) as job:
                figures["loops"][name] = job.compare()
        except Skip as why:  # the loops in C need no torch
            figures["absent"] = str(why)
    return figures


def judge_windows(phases: list[Figures]) -> list[Check]:
    before = next(p for p in phases if p["phase"] == "before")
    inside = statistics.median(p["enqueue_ns"] for p in phases if p["phase"] == "in")
    windows = [p for p in phases if p["phase"] == "window"]
    lost = sum(w["dropped"] + w["untimed"] for w in windows)
    drain_ns = sum(w["drain_cpu_ms"] for w in windows) * 1e6 / sum(w["kernels"] for w in windows)
    return [
        at_most("a launch costs more in a window", inside - before["enqueue_ns"], 1000, " ns"),
        at_most("the helper thread's CPU for a kernel", drain_ns, 1000, " ns"),
        equal("kernels", [w["kernels"] for w in windows], [w["launched"] for w in windows]),
        equal("dropped or without times", lost, 0),
    ]


def judge_way(name: str, way: str, output: Figures) -> Check:
    """How much more of the job's thread, of the GPU and of other threads a kernel takes."""
    before, inside, seen = output["before"], output["in"], output["seen"]
    more = {key: inside[key] - before[key] for key in ("queue_ns", "gpu_ns", "others_ns")}
    text = f"{more['queue_ns']:+.0f} ns CPU, {more['gpu_ns']:+.0f} ns GPU"
    text += f", {more['others_ns']:+.0f} ns of other threads"
    if seen["kernels"]:
        text += f", {seen['bytes'] / seen['kernels']:.0f} B in {seen['buffers']} buffers"
    most = MOST_MORE_NS.get(way)
    expected = "reported" if most is None else f"<= {most} ns CPU"
    return Check(f"{name}, {way}", expected, text, most is None or more["queue_ns"] <= most)


def judge_ways(name: str, ways: dict[str, Figures]) -> list[Check]:
    whole = {way: output for way, output in ways.items() if "why" not in output}
    checks = [judge_way(name, way, output) for way, output in whole.items()]
    checks += [Check(f"{name}, {way}", "", ways[way]["why"], True) for way in ways.keys() - whole]
    recorded = {way: output["seen"] for way, output in whole.items() if way not in ("off", "idle")}
    lossy = [way for way, s in recorded.items() if s["kernels"] != s["launched"] or s["dropped"]]
    return [*checks, equal(f"{name}: ways that lost kernels", lossy, [])]


def judge_steps(name: str, way: Figures) -> Check:
    what = f"a step, {name}, {way['way']}"
    if "why" in way:
        return Check(what, "", way["why"], True)
    more = 100 * more_frac(way["in_ms"], way["before_ms"])
    if way["way"] == CHOSEN:
        return at_most(what, more, 100 * max(NOISE_FRAC, way["noise_frac"]), " %")
    a_step = f"{way['kernels'] / way['steps']:.0f} kernels, {way['bytes'] / way['steps']:.0f} B"
    return Check(what, "reported", f"{more:+.2f} %; {a_step} a step", True)


def judge(figures: Figures) -> list[Check]:
    checks = judge_windows(figures["launches"])
    for name, ways in figures["ways"].items():
        checks += judge_ways(name, ways)
    for name, ways in figures["steps"].items():
        checks += [judge_steps(name, way) for way in ways]
        lost = sum(way.get("dropped", 0) for way in ways)
        checks.append(equal(f"steps, {name}: dropped", lost, 0))
    for name, loop in figures["loops"].items():
        more = 100 * more_frac(loop["in_ms"], loop["before_ms"])
        checks.append(at_most(f"a step in a window, {name}", more, 100 * allowed_frac(loop), " %"))
    if "absent" in figures:
        checks.append(Check("training steps", "", figures["absent"], True))
    return checks


EXPERIMENT = Experiment("E2", "cost of a deep window", measure, judge)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
