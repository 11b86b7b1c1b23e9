#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Experiment E10: what a look at a GPU by NVML costs, how often values change, and what it blocks.

Runs nvml_refresh beside kernels of 5 ms, and launches with and without it.

Expected on a Hopper: a slow look takes less than 10 ms, a fast one (GPM) less than 2 ms; GPM's
values change at most 11 times a second; launches take as long as without it, within 5 %. The
rates at which the other values change are a thing to know.

    tests/gpu/e10_nvml.py [--build DIR] [--double]
"""

from __future__ import annotations

import sys
import time

from e5_pmsampling import launch_ns
from experiment import Beside, Check, Experiment, Figures, Machine, at_most, more_frac, objects, run

SECONDS = {False: 10, True: 2}
GPM = ("active", "cores_active", "matrix_active", "memory_active")


def measure(machine: Machine) -> Figures:
    machine.need_gpu()
    seconds = SECONDS[machine.double]
    look = [machine.program("nvml_refresh"), str(seconds)]
    alone = launch_ns(machine)
    with Beside([machine.program("e_load"), "spin", str(seconds + 2)], machine.environment()):
        time.sleep(1.5)
        output = objects(run(look, machine.nvml_environment()).stdout)
    with Beside(look, machine.nvml_environment()):
        time.sleep(0.5)
        beside = launch_ns(machine)
    return {
        "calls": {each["call"]: each for each in output if "call" in each},
        "metrics": [each for each in output if "metric" in each],
        "launch_ns": alone,
        "launch_beside_ns": beside,
    }


def judge(figures: Figures) -> list[Check]:
    calls = figures["calls"]
    more = 100 * more_frac(figures["launch_beside_ns"], figures["launch_ns"])
    checks = [at_most("a slow look, mean", calls["slow"]["mean_us"], 10000, " us")]
    if "fast" in calls:
        gpm = [m["changes_per_second"] for m in figures["metrics"] if m["metric"] in GPM]
        checks.append(at_most("a fast look, mean", calls["fast"]["mean_us"], 2000, " us"))
        checks.append(at_most("changes of GPM's values a second", max(gpm, default=0), 11))
    return [*checks, at_most("launches beside it", more, 5, " %")]


EXPERIMENT = Experiment("E10", "cost and refresh of NVML", measure, judge)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
