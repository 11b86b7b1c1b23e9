#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Experiment E12: does NCCL take the agent as its profiler plugin, and what does it tell?

For a machine with NVIDIA GPUs and torch: runs all-reduces on all GPUs, or on the one there
is, under `perftracker run`, and counts what NCCL told in the timeline.

    tests/gpu/e12_nccl.py PROGRAM [--backend nccl|gloo]

Expected: with two GPUs or more, the all-reduces of every rank once, but for the first few,
before the hook is connected; with bytes, algorithm and a communicator; NCCL 2.23 or newer.
With one GPU NCCL launches no kernel and may tell nothing, but loads the plugin. --backend
gloo shows that the rest of the way works without a GPU: nothing is told.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile

CALLS, FIRST, ELEMENTS = 50, 5, 1 << 20
JOB = """
import os, torch, torch.distributed as dist
backend = os.environ["E12_BACKEND"]
dist.init_process_group(backend)
local = int(os.environ["LOCAL_RANK"])
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
    print("NCCL", torch.cuda.nccl.version(), "GPUs", torch.cuda.device_count())
dist.destroy_process_group()
"""


def gpu_count() -> int:
    try:
        import torch
    except ImportError:
        return 0
    return torch.cuda.device_count()


def run_job(program: str, backend: str, ranks: int, out: str) -> None:
    job = os.path.join(out, "job.py")
    with open(job, "w") as file:
        file.write(JOB % (CALLS, ELEMENTS))
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    command = [program, "run", "--quiet", "--out", out, "--", sys.executable, *launcher, job]
    env = {**os.environ, "E12_BACKEND": backend, "OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, env=env)


def timeline(program: str, out: str) -> list[dict]:
    command = [program, "timeline", "--last", "0", "--output", "-", out]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(text)["traceEvents"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--backend", choices=["nccl", "gloo"], default="nccl")
    options = parser.parse_args()
    ranks = gpu_count() if options.backend == "nccl" else 2
    if ranks == 0:
        print("skipped: no GPU, or no torch that sees one")
        return 77
    with tempfile.TemporaryDirectory() as out:
        run_job(os.path.abspath(options.program), options.backend, ranks, out)
        events = timeline(os.path.abspath(options.program), out)
    queued = [e for e in events if e.get("cat") == "nccl" and e["name"] == "ncclAllReduce"]
    network = [e for e in events if e.get("cat") == "network"]
    print(f"ranks {ranks}, called {CALLS * ranks}, queued {len(queued)}, network {len(network)}")
    for event in queued[:1]:
        print(json.dumps(event))
    if options.backend == "nccl" and ranks > 1:
        sized = [e for e in queued if e["args"].get("bytes") == 4 * ELEMENTS]
        return 0 if (CALLS - FIRST) * ranks <= len(sized) <= CALLS * ranks else 1
    return 0 if options.backend == "nccl" or not queued else 1


if __name__ == "__main__":
    sys.exit(main())
