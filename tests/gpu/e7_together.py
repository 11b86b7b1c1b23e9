#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Experiment E7: which profilers can work at the same time, and for which users.

Expected: a deep window, PM sampling and NVML's fields (with GPM on Hopper) work at the same time.
A second PM session is refused with a reason, and the first loses no samples by it. As user nobody
(setpriv) a deep window and NVML work; PM sampling does so only where the driver permits it to all
users (RmProfilingAdminOnly: 0), else it reports the missing permission. If torch.profiler begins in
a window of the agent, it gets its events, and the window ends with "the user started a profiler";
while torch.profiler runs, no window begins. Reported where ncu is installed: whether it can start
beside a session.

    tests/gpu/e7_together.py [--build DIR] [--double]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time

from e0_inventory import admin_only
from experiment import Beside, Check, Experiment, Figures, Job, Machine, Skip, at_least, equal, run

SECONDS = {False: 6, True: 2}
NCU = ("ncu", "--metrics", "sm__cycles_elapsed.max", "--launch-count", "1")
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


def together(machine: Machine) -> Figures:
    """All three at once, and a second sampler that comes in the middle."""
    seconds = SECONDS[machine.double]
    sampler = [machine.program("e_pmsampling"), str(seconds)]
    load = [machine.program("e_load"), "spin", str(seconds + 3), "recorded"]
    nvml = [machine.program("nvml_refresh"), str(seconds)]
    env = machine.sampler_environment()
    with Beside(load, machine.environment()) as work:
        time.sleep(1.5)
        with Beside(sampler, env) as first, Beside(nvml, machine.nvml_environment()) as fields:
            time.sleep(1)
            # Each process has a double of its own, which refuses no session.
            second = None if machine.double else attempt([*sampler[:1], "1"], env)
            output = {"session": first.result()[0]["session"], "nvml": len(fields.result())}
        return {**output, "second": second, "kernels": work.result()[-1]["kernels"]}


def ncu_beside(machine: Machine) -> str | None:
    """None: no ncu; "": ncu works during a session; else the reason why not."""
    if machine.double or shutil.which(NCU[0]) is None:
        return None
    sampler = [machine.program("e_pmsampling"), "8"]
    with Beside(sampler, machine.sampler_environment()):
        time.sleep(2)
        command = [*NCU, machine.program("e_load"), "spin", "1"]
        return attempt(command, machine.environment())


def attempt(command: list[str], env: dict[str, str]) -> str:
    """ "" when it works, else why not."""
    try:
        run(command, env)
    except (Skip, RuntimeError) as why:
        return str(why) or "no reason given"
    return ""


def as_nobody(machine: Machine) -> Figures:
    seconds = "1"
    see = [*NOBODY, "test", "-x", machine.program("e_load")]
    if shutil.which("setpriv") is None or os.geteuid() != 0 or subprocess.run(see).returncode != 0:
        return {}  # this user can't become nobody, or user nobody can't read the programs
    window = [*NOBODY, machine.program("e_load"), "spin", seconds, "recorded"]
    sampler = [*NOBODY, machine.program("e_pmsampling"), seconds]
    nvml = [*NOBODY, machine.program("nvml_refresh"), seconds]
    return {
        "window": attempt(window, machine.environment()),
        "sampling": attempt(sampler, machine.sampler_environment()),
        "nvml": attempt(nvml, machine.nvml_environment()),
    }


def profilers(machine: Machine) -> Figures:
    """torch.profiler in a window, then a window requested in a run of torch.profiler."""
    answers = []
    with Job(machine, options=("--source", "agent", "--window", "8", "--steps", "5000")) as job:
        job.await_steps(40)
        asked = threading.Thread(target=lambda: answers.append(job.profile()))
        asked.start()
        time.sleep(3)  # the window is open
        job.touch("profiler")
        asked.join()
        job.await_steps(45)
        profiled = job.end()["profiled"]
    with Job(machine) as job:
        job.await_steps(40)
        job.touch("profiler")
        job.await_steps(2)
        answers.append(job.profile())
    return {"profiled": profiled, "in_window": answers[0][1], "in_profiler": answers[1][1]}


def measure(machine: Machine) -> Figures:
    machine.need_gpu()
    figures: Figures = {"together": together(machine), "nobody": as_nobody(machine)}
    figures["admin_only"], figures["ncu"] = admin_only(), ncu_beside(machine)
    # torch does not see the double of a GPU, so its profiler cannot disturb it.
    if not machine.double:
        figures["profilers"] = profilers(machine)
    return figures


def judge(figures: Figures) -> list[Check]:
    all_three, nobody = figures["together"], figures["nobody"]
    session = all_three["session"]
    checks = [
        at_least("kernels in the window", all_three["kernels"], 10),
        at_least("samples beside it", session["samples"], 1000),
        equal("samples lost", session["overflows"] + session["failed"], 0),
        at_least("lines of NVML beside both", all_three["nvml"], 1),
    ]
    if all_three["second"] is not None:
        second = all_three["second"]
        checks.append(Check("a second sampler", "refused", second, second != ""))
    if figures.get("ncu") is not None:
        checks.append(Check("ncu beside a session", "reported", figures["ncu"] or "works", True))
    if nobody:
        admin, why = figures["admin_only"] == "1", nobody["sampling"]
        checks += [
            equal("a window as nobody", nobody["window"], ""),
            equal("NVML as nobody", nobody["nvml"], ""),
            Check(
                "PM sampling as nobody", "refused" if admin else "works", why, (why != "") == admin
            ),
        ]
    if "profilers" in figures:
        seen = figures["profilers"]
        in_window, in_profiler = seen["in_window"], seen["in_profiler"]
        checks += [
            at_least("events of torch.profiler that began in a window", seen["profiled"], 1),
            Check("that window", "gives way", in_window, "profiler" in in_window),
            Check("a window in a run of it", "none", in_profiler, "profiler" in in_profiler),
        ]
    return checks


EXPERIMENT = Experiment("E7", "beside others, and as nobody", measure, judge)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
