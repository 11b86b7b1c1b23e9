#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Experiment E5: PM sampling from a process that does no work on the GPU.

Another process runs kernels of 5 ms, 15 ms apart, in a deep window, which says when each began.

Expected: 10 kHz for 20 s without an overflow or a lost sample; the sampler sees the other
process: the cores go from idle to busy at each kernel, and the end of that mean of 100 us is less
than 300 us behind the kernel's begin by CUPTI (a sample, a mean, and the clocks' distance);
decoding takes less than 5 % of a core; launches take as long as without it, within 5 %. The
device's clocks beside the same kernels with and without a sampler, and the device memory that the
sampler takes, are reported (nvidia-smi). Rates above 10 kHz are not requested.

    tests/gpu/e5_pmsampling.py [--build DIR] [--double]
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time

from experiment import (
    Beside,
    Check,
    Experiment,
    Figures,
    Machine,
    at_least,
    at_most,
    equal,
    more_frac,
    objects,
    run,
)

SECONDS = {False: 20, True: 2}
HZ = 10000
MEAN_US = 100


def launch_ns(machine: Machine) -> float:
    command = [machine.program("e_launches"), "windows", "5" if machine.double else "100"]
    phases = objects(run(command, machine.environment()).stdout)
    return next(p["whole_ns"] for p in phases if p["phase"] == "before")


def device_state() -> dict[str, int]:
    """Clocks in MHz and used memory in MiB of the first device."""
    query = "--query-gpu=clocks.sm,clocks.mem,memory.used"
    command = ["nvidia-smi", "-i", "0", query, "--format=csv,noheader,nounits"]
    if shutil.which(command[0]) is None:
        return {}
    output = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    values = [int(word) for word in output.replace(",", " ").split() if word.isdigit()]
    names = ("clock_cores", "clock_memory", "memory_used")
    return dict(zip(names, values, strict=True)) if len(values) == len(names) else {}


def measure(machine: Machine) -> Figures:
    machine.need_gpu()
    seconds = SECONDS[machine.double]
    load = [machine.program("e_load"), "spin", str(seconds + 3), "recorded"]
    sampler = [machine.program("e_pmsampling"), str(seconds), str(MEAN_US)]
    alone = launch_ns(machine)
    with Beside(load, machine.environment()) as work:
        time.sleep(1.5)  # its context is there then
        without = device_state()
        with Beside(sampler, machine.sampler_environment()) as session:
            time.sleep(1)
            beside_it = device_state()
            output = session.result()
        spins = work.result()[-1]["spins"]
    with Beside(sampler, machine.sampler_environment()):
        time.sleep(0.5)
        beside = launch_ns(machine)
    return {
        "seconds": seconds,
        "followed": not machine.double,  # the doubles of both know nothing of each other
        "session": output[0]["session"],
        "metrics": {m["metric"]: m for m in output if "metric" in m},
        "edges_ns": output[-1]["edges_ns"],
        "spins": spins,
        "device": {} if machine.double else {"without": without, "beside": beside_it},
        "launch_ns": alone,
        "launch_beside_ns": beside,
    }


def lags_us(figures: Figures) -> list[float]:
    """From the begin of each kernel in the session to the edge that follows it within 5 ms."""
    session, edges = figures["session"], figures["edges_ns"]
    lags = []
    for begin, end in figures["spins"]:
        if session["begin_ns"] < begin and end < session["end_ns"]:
            behind = [edge - begin for edge in edges if -1e6 < edge - begin < 5e6]
            lags.append(min(behind, key=abs) / 1e3 if behind else float("inf"))
    return lags


def judge(figures: Figures) -> list[Check]:
    session, lags = figures["session"], lags_us(figures)
    cpu_pct = session["cpu_ms"] / 10 / figures["seconds"]
    more = 100 * more_frac(figures["launch_beside_ns"], figures["launch_ns"])
    lag = statistics.median(abs(lag) for lag in lags) if lags else float("inf")
    checks = [
        equal("samples a second that are asked for at the end", session["hz"], HZ),
        at_least("samples", session["samples"], 0.98 * HZ * figures["seconds"]),
        equal("overflows and lost samples", session["overflows"] + session["failed"], 0),
        at_most("CPU of the sampler", cpu_pct, 5, " %"),
        at_most("launches beside the sampler", more, 5, " %"),
    ]
    device = figures.get("device") or {}
    for name, value in device.get("beside", {}).items():
        seen = f"{device['without'].get(name)} without, {value} beside a session"
        checks.append(Check(name.replace("_", " "), "reported", seen, True))
    if not figures["followed"]:
        return checks
    return [
        *checks,
        at_least("kernels of the other process in the session", len(lags), 10),
        at_most("an edge behind its kernel's begin, median", lag, 300, " us"),
    ]


EXPERIMENT = Experiment("E5", "PM sampling of another process", measure, judge)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
