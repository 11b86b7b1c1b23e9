#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Experiment E11: faults that are put into a training loop, from the GPU to the report.

One process trains and is asked for a window while it is healthy, then for one with the fault: a
data set that sleeps, gc.collect() at each step, a strange process on the loop's only CPU, a
kernel more in each step. A cap of the GPU's clock isn't tried: it is a setting of the device.

Expected: the healthy window has no finding with the fault; the other names the fault's function or
cause. For the kernel, with no other rank to compare, the share of all kernels on the critical path
rises by 10 points at least, or the step's time by 10 %.

    tests/gpu/e11_faults.py [--build DIR] [--double]
"""

from __future__ import annotations

import os
import sys

from experiment import Beside, Check, Experiment, Figures, Job, Machine, more_frac

HOG = "import os\nos.sched_setaffinity(0, {%d})\nwhile True: pass"
WORDS = {
    "loader": ("slow-data-loading", "read_slowly"),
    "gc": ("garbage-collection", "gc (generation"),
    "hog": ("cpu-starvation", "cpu-contention"),
}


def look(job: Job) -> Figures:
    job.await_steps(40)
    report, why = job.profile()
    if report is None:
        raise RuntimeError(why)
    worker = report["workers"][0]
    return {
        "verdict": report["verdict"],
        "findings": [[f["cause"], f["function"]["name"]] for f in report["findings"]],
        "compute_frac": worker["class_frac"]["compute"],
        "iteration_ms": report["job"]["iteration_ms"],
    }


def try_fault(machine: Machine, fault: str) -> Figures:
    cpu = sorted(os.sched_getaffinity(0))[-1]
    words = ("--fault", fault) if fault != "hog" else ("--cpu", str(cpu))
    with Job(machine, *words) as job:
        before = look(job)
        if fault != "hog":
            job.touch("fault")
            return {"before": before, "with": look(job)}
        with Beside([sys.executable, "-c", HOG % cpu]):
            return {"before": before, "with": look(job)}


def measure(machine: Machine) -> Figures:
    machine.need_gpu()
    return {fault: try_fault(machine, fault) for fault in (*WORDS, "kernel")}


def names(look: Figures, words: tuple[str, ...]) -> bool:
    return any(word in text for finding in look["findings"] for text in finding for word in words)


def slower_pct(looks: Figures) -> float:
    return 100 * more_frac(looks["with"]["iteration_ms"], looks["before"]["iteration_ms"])


def judge(figures: Figures) -> list[Check]:
    checks = []
    for fault, words in WORDS.items():
        before, after = figures[fault]["before"], figures[fault]["with"]
        checks.append(
            Check(
                f"{fault}: before", "not named", str(before["findings"]), not names(before, words)
            )
        )
        seen = f"{after['findings']}, step {slower_pct(figures[fault]):+.1f} %"
        checks.append(Check(f"{fault}: with it", "named", seen, names(after, words)))
    before, after = figures["kernel"]["before"], figures["kernel"]["with"]
    points = 100 * (after["compute_frac"] - before["compute_frac"])
    slower = slower_pct(figures["kernel"])
    seen = f"{points:+.1f} points, step {slower:+.1f} %"
    checks.append(Check("kernel", "10 points or 10 %", seen, points >= 10 or slower >= 10))
    return checks


EXPERIMENT = Experiment("E11", "faults to the report", measure, judge)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
