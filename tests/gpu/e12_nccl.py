#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Experiment E12: does NCCL take the agent as its profiler plugin, and which events does it send?

Runs all-reduces on all GPUs, or on a single GPU, under `perftracker run`, and counts NCCL's
events in the timeline.

Expected: with two GPUs or more, the all-reduces of every rank once, but for the first few,
before the hook is connected; with bytes, algorithm and a communicator; NCCL 2.23 or newer.
With one GPU NCCL launches no kernel and may send no events, but loads the plugin. The number
of events of each kind is reported, which shows kinds that never come. --double shows with gloo
that the rest of the way works without a GPU: there are no events.

    tests/gpu/e12_nccl.py [--build DIR] [--double]
"""

from __future__ import annotations

import collections
import json
import os
import sys
import tempfile

from experiment import Check, Experiment, Figures, Machine, at_least, equal, run

NCCL_KINDS = ("nccl", "network", "gpu")
CALLS, FIRST, ELEMENTS = 50, 5, 1 << 20
JOB = """
import json, os, torch, torch.distributed as dist
backend, local = os.environ["E12_BACKEND"], int(os.environ["LOCAL_RANK"])
dist.init_process_group(backend)
device = torch.device("cuda", local) if backend == "nccl" else torch.device("cpu")
model = torch.nn.Linear(8, 8).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.utils.data.DataLoader(torch.zeros(%d, 8))
buffer = torch.ones(%d, device=device)
for batch in data:
    model(batch.to(device)).sum().backward()
    dist.all_reduce(buffer)
    optimizer.step()
if backend == "nccl":
    torch.cuda.synchronize()
mapped = os.environ.get("PERFTRACKER_AGENT", "-") in open("/proc/self/maps").read()
version = ".".join(map(str, torch.cuda.nccl.version())) if backend == "nccl" else ""
if local == 0:
    with open(os.environ["E12_COUNTS"], "w") as file:
        json.dump({"nccl": version, "plugin": os.environ.get("NCCL_PROFILER_PLUGIN", ""),
                   "mapped": mapped}, file)
dist.destroy_process_group()
"""
COUNT = "import torch; print(torch.cuda.device_count())"


def run_job(machine: Machine, python: str, ranks: int, out: str) -> Figures:
    job, counts = os.path.join(out, "job.py"), os.path.join(out, "counts.json")
    with open(job, "w") as file:
        file.write(JOB % (CALLS, ELEMENTS))
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    command = [machine.program(), "run", "--quiet", "--source", "agent", "--out", out, "--"]
    backend = "gloo" if machine.double else "nccl"
    env = {**os.environ, "E12_BACKEND": backend, "E12_COUNTS": counts, "OMP_NUM_THREADS": "1"}
    run([*command, python, *launcher, job], env, 300)
    with open(counts) as file:
        return json.load(file)


def timeline(machine: Machine, out: str) -> list[dict]:
    command = [machine.program(), "timeline", "--last", "0", "--output", "-", out]
    return json.loads(run(command).stdout)["traceEvents"]


def measure(machine: Machine) -> Figures:
    machine.need_gpu()
    python = machine.python()
    ranks = 2 if machine.double else int(run([python, "-c", COUNT]).stdout)
    with tempfile.TemporaryDirectory() as out:
        counts = run_job(machine, python, ranks, out)
        events = timeline(machine, out)
    queued = [e for e in events if e.get("cat") == "nccl" and e["name"] == "ncclAllReduce"]
    return {
        **counts,
        "backend": "gloo" if machine.double else "nccl",
        "ranks": ranks,
        "queued": len(queued),
        "sized": sum(event["args"].get("bytes") == 4 * ELEMENTS for event in queued),
        "network": sum(event.get("cat") == "network" for event in events),
        "kinds": collections.Counter(
            f"{e['cat']}: {e['name']}" for e in events if e.get("cat") in NCCL_KINDS
        ),
        "first": queued[:1],
    }


def judge(figures: Figures) -> list[Check]:
    if figures["backend"] == "gloo":
        return [equal("all-reduces that NCCL reported", figures["queued"], 0)]
    kinds = ", ".join(f"{name} {cnt}" for name, cnt in sorted(figures.get("kinds", {}).items()))
    ranks, version = figures["ranks"], tuple(map(int, figures["nccl"].split(".")))
    checks = [
        Check("NCCL", "2.23 or newer", figures["nccl"], version >= (2, 23)),
        Check(
            "its profiler plugin",
            "the agent",
            figures["plugin"],
            "perftracker" in figures["plugin"],
        ),
        equal("the agent is in the process", figures["mapped"], True),
        Check("events of each kind", "reported", kinds, True),
    ]
    if ranks > 1:
        most = CALLS * ranks
        checks.append(
            at_least("all-reduces with their bytes", figures["sized"], most - FIRST * ranks)
        )
        checks.append(
            Check("the same", f"<= {most}", str(figures["sized"]), figures["sized"] <= most)
        )
    return checks


EXPERIMENT = Experiment("E12", "NCCL's profiler plugin", measure, judge)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
