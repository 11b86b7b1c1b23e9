#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Experiment E1: CUDA_INJECTION64_PATH.

Expected: CUDA's driver calls the library's InitializeInjection() once in a process that uses the
GPU, before there is a context, and not in loader processes that were forked and don't; a
second tool that is chained from there (the agent's) answers 1. cuInit takes at most 10 ms
longer with it.

    tests/gpu/e1_injection.py [--build DIR]
"""

from __future__ import annotations

import os
import pathlib
import statistics
import sys
import tempfile

from experiment import Check, Experiment, Figures, Machine, Skip, at_most, equal, objects, run

ROUNDS = 10
JOB = """
import os, torch
from torch.utils.data import DataLoader, TensorDataset
print(os.getpid())
torch.ones(8, device="cuda").sum().item()
data = TensorDataset(torch.zeros(64, 4))
for _ in DataLoader(data, num_workers=2, multiprocessing_context="fork"):
    pass
torch.ones(8, device="cuda").sum().item()
"""


def init_ms(machine: Machine, env: dict[str, str]) -> float:
    return objects(run([machine.program("e_launches"), "init"], env).stdout)[0]["init_ms"]


def measure(machine: Machine) -> Figures:
    machine.need_gpu()
    if machine.double:
        raise Skip("the double of libcuda injects nothing")
    plain = machine.environment()
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        env = {**plain, "E1_LOG": log, "E1_NEXT": machine.agent()}
        env["CUDA_INJECTION64_PATH"] = machine.program("e_injection.so")
        job_pid = int(run([machine.python(), "-c", JOB], env).stdout.split()[0])
        calls = objects(pathlib.Path(log).read_text()) if os.path.exists(log) else []
        costs = [(init_ms(machine, plain), init_ms(machine, env)) for _ in range(ROUNDS)]
    without, with_it = (statistics.median(column) for column in zip(*costs, strict=True))
    return {"job_pid": job_pid, "calls": calls, "init_ms": without, "init_injected_ms": with_it}


def judge(figures: Figures) -> list[Check]:
    calls = figures["calls"]
    more_ms = figures["init_injected_ms"] - figures["init_ms"]
    return [
        equal("processes that were called", [c["pid"] for c in calls], [figures["job_pid"]]),
        equal("calls with a context", sum(call["context"] == 1 for call in calls), 0),
        equal("answers of the chained library", sorted({call["next"] for call in calls}), [1]),
        at_most("cuInit takes longer by", more_ms, 10, " ms"),
    ]


EXPERIMENT = Experiment("E1", "injection by CUDA's driver", measure, judge)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
