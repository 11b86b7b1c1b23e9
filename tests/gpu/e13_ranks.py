#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Experiment E13: a job of several ranks with NCCL: healthy, slow and stuck, to the report.

Three ranks share one card (jobs/rank_steps.py says how) under `perftracker run`: once healthy, and
once with each fault on one rank from some time on: a data set that sleeps, a busy Python function,
more kernels, a copy to pageable memory, a function that never returns.

Expected: the healthy job has no finding, of each other one the first names the rank and a word of
the fault.

With --double, on a CPU by gloo. E13_FAULTS and E13_SOURCES choose ("loader copy", "auto agent");
E13_OPTIONS are more of `perftracker run` (--no-audit); E13_KEEP is a folder that keeps what the
jobs left; E13_SECONDS is how long each runs.

    tests/gpu/e13_ranks.py [--build DIR] [--double]
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from experiment import Check, Experiment, Figures, Machine, Skip, end_group

RANK = 1
WORDS = {
    "none": (),
    "loader": ("read_slowly", "slow-data-loading"),
    "python": ("tokenize_slowly",),
    "kernel": ("gemm", "matmul", "aten::mm", "cutlass", "nvjet"),
    "copy": ("Memcpy DtoH", "aten::copy_", "aten::_to_copy", "cudaMemcpy", "cpu"),
    "hang": ("wait_for_license",),
}
SECONDS = float(os.environ.get("E13_SECONDS", "32"))
AFTER_S = 10
LIMIT_S = 100


def command(machine: Machine, fault: str, out: pathlib.Path, source: str) -> list[str]:
    watch = ["run", "--out", str(out), "--keep-traces", "--source", source]
    watch += ["--min-gap", "4", "--blocked", "40"]
    watch += os.environ.get("E13_OPTIONS", "--no-audit").split()
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=3"]
    job = [str(machine.job("rank_steps.py")), "--seconds", str(SECONDS)]
    job += ["--device", "cpu" if machine.double else "cuda"]
    job += ["--fault", fault, "--rank", str(RANK), "--after", str(AFTER_S)]
    return [machine.program(), *watch, "--", machine.python(not machine.double), *launch, *job]


def reports(out: pathlib.Path) -> list[Figures]:
    numbered = sorted(out.glob("report-*.json"), key=lambda path: int(path.stem[7:]))
    paths = [*numbered, *out.glob("report.json")]
    found = []
    for path in paths:
        report = json.loads(path.read_text())
        found.append({
            "file": path.name,
            "verdict": report["verdict"],
            "reason": report["reason"],
            "trigger": report.get("trigger"),
            "findings": [
                [f["cause"], f["function"]["name"], f["ranks"], round(f["gain_pct"], 1)]
                for f in report["findings"]
            ],
        })  # fmt: skip
    return found


def try_fault(machine: Machine, fault: str, source: str, keep: str) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(keep or folder) / f"{fault}-{source}"
        out.mkdir(parents=True, exist_ok=True)
        words = command(machine, fault, out, source)
        with open(out / "log", "w") as log:
            process = subprocess.Popen(
                words, env=machine.environment(), stdout=log, stderr=log, text=True, process_group=0
            )
            try:
                code: int | str = process.wait(LIMIT_S if fault != "hang" else 60)
            except subprocess.TimeoutExpired:
                end_group(process)
                code = "ended by us"
        text = (out / "log").read_text()
        if "Duplicate GPU" in text:
            raise Skip("this NCCL takes no two ranks on one card")
        return {"fault": fault, "source": source, "code": code, "reports": reports(out),
                "log": text[-3000:]}  # fmt: skip


def measure(machine: Machine) -> Figures:
    machine.need_gpu()
    keep = os.environ.get("E13_KEEP", "")
    faults = os.environ.get("E13_FAULTS", " ".join(WORDS)).split()
    sources = os.environ.get("E13_SOURCES", "auto").split()
    return {"jobs": [try_fault(machine, f, s, keep) for s in sources for f in faults]}


def judge(figures: Figures) -> list[Check]:
    checks = []
    for job in figures["jobs"]:
        fault, seen = job["fault"], [r["findings"] for r in job["reports"]]
        name = f"{fault}, {job['source']}"
        if fault == "none":
            ok = job["code"] == 0 and not any(seen)
            checks.append(Check(name, "no finding", str(seen), ok))
            continue
        named = [f for findings in seen for f in findings[:1] if f[2] == str(RANK)]
        ok = any(word in text for f in named for text in f[:2] for word in WORDS[fault])
        checks.append(Check(name, f"rank {RANK}, {WORDS[fault][0]}", str(seen), ok))
    return checks


EXPERIMENT = Experiment("E13", "ranks with NCCL on one card", measure, judge)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
