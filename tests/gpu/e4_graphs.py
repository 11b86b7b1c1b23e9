#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Experiment E4: CUDA graphs that were captured before the first window.

Expected: two windows each see all kernels of all replays, each with its node, as many nodes as
the graph has; no kernel names a launch that was not (CUDA 13.0 has wrong correlation numbers from
a process's second session on: there the back end reports none). CUPTI is left idle after a window
in which a graph was launched: when it is finalized, a graph that was launched in the window, and
again before the finalize, fails at its next launch (719, seen with CUDA 13.0; e_loops tries it). A
replay after the windows does not fail; how much longer it takes is reported. With a record for each
launch (GRAPH_TRACE) there are as many records as launches. The cost of a record for each launch and
for each kernel is reported.

    tests/gpu/e4_graphs.py [--build DIR] [--double]
"""

from __future__ import annotations

import sys

from e2_overhead import judge_way, loop_in_way
from experiment import Check, Experiment, Figures, Machine, at_least, equal, more_frac, objects, run

REPLAYS = {False: 1000, True: 30}
KERNELS, REPLAYED = 256, 8  # of a round of e_loops, beside the one that keeps the GPU busy


def measure(machine: Machine) -> Figures:
    machine.need_gpu()
    command = [machine.program("e_launches"), "graphs", str(REPLAYS[machine.double])]
    figures: Figures = {"phases": objects(run(command, machine.environment()).stdout)}
    figures["kernels"] = loop_in_way(machine, "graph", "kernels")
    if not machine.double:  # it knows no such records
        figures["traced"] = loop_in_way(machine, "graph", "graph-trace")
    return figures


def judge_traced(figures: Figures) -> list[Check]:
    ways = [("each kernel", figures["kernels"])]
    ways += [("each launch", figures["traced"])] if "traced" in figures else []
    checks = [
        Check(f"a record for {name}", "", output["why"], True)
        if "why" in output
        else judge_way("a record", f"for {name}", output)
        for name, output in ways
    ]
    traced = figures.get("traced", {}).get("seen")
    if traced:
        rounds = traced["launched"] // (KERNELS + 1)
        checks.append(equal("records of launches", traced["records"], rounds * REPLAYED))
    return checks


def judge(figures: Figures) -> list[Check]:
    phases = figures["phases"]
    nodes = next(p["nodes"] for p in phases if p["phase"] == "init")
    before = next(p for p in phases if p["phase"] == "before")
    checks = []
    for window in (p for p in phases if p["phase"] == "window"):
        name = f"window {window['window']}"
        checks += [
            equal(f"{name}: kernels", window["kernels"], window["launched"]),
            equal(f"{name}: with a node", window["graph_kernels"], window["kernels"]),
            equal(f"{name}: different nodes", window["nodes"], nodes),
            equal(f"{name}: kernels of launches that were not", window["unlaunched"], 0),
            at_least(f"{name}: calls that launch", window["calls"], window["launched"] // nodes),
            Check(
                f"{name}: CUPTI is not finalized", "left idle", window["stayed"],
                "CUDA graphs" in window["stayed"],
            ),
        ]  # fmt: skip
    for after in (p for p in phases if p["phase"] == "after"):
        more = 100 * more_frac(after["whole_ns"], before["whole_ns"])
        text = f"{more:+.1f} % for kernels that do nothing"
        checks.append(Check(f"a replay after window {after['window']}", "reported", text, True))
    finalized = figures["kernels"].get("detached", {})
    seen = "fails" if finalized.get("failed") else "works"
    checks.append(Check("a replay after a finalize behind replays", "reported", seen, True))
    return checks + judge_traced(figures)


EXPERIMENT = Experiment("E4", "graphs in deep windows", measure, judge)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
