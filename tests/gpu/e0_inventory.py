#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Experiment E0: what a machine with a GPU has, and which library holds CUPTI beside torch.

Expected: torch maps one copy of libcupti, and no more. A tool can subscribe right after torch is
imported (result 0) and after a run of torch.profiler that detaches (TEARDOWN_CUPTI=1). Without
that the result is 0 or 39 (another subscriber); which one is a thing to know, not to judge.
`perftracker doctor` finds nothing that fails.

    tests/gpu/e0_inventory.py [--build DIR] [--double]
"""

from __future__ import annotations

import glob
import json
import pathlib
import shutil
import subprocess
import sys

from experiment import Check, Experiment, Figures, Machine, Skip, equal, run

LIBRARIES = ("libcupti", "libnvperf_host", "libnccl", "libcudart", "libcuda.so")
PROBE = """
import ctypes, json, os, sys
for name in ("DOUBLE_CUDA", "DOUBLE_CUPTI"):
    if name in os.environ:
        ctypes.CDLL(os.environ[name])
import torch
number, pointer = ctypes.c_uint32, ctypes.c_void_p
CALLBACK = ctypes.CFUNCTYPE(None, pointer, number, number, pointer)
callback = CALLBACK(lambda *_: None)
def mapped():
    paths = {line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if "/" in line}
    return sorted(path for path in paths if any(name in path for name in sys.argv[1:]))
def subscribe():
    paths = [path for path in mapped() if "libcupti" in path]
    if not paths:
        return None
    cupti = ctypes.CDLL(paths[0])
    subscriber = ctypes.c_void_p()
    result = cupti.cuptiSubscribe(ctypes.byref(subscriber), callback, None)
    if result == 0:
        cupti.cuptiUnsubscribe(subscriber)
    return result
def work():
    x = torch.ones(64, 64, device="cuda" if torch.cuda.is_available() else "cpu")
    with torch.profiler.profile():
        (x @ x).sum().item()
output = {"torch": torch.__version__, "cuda": torch.version.cuda, "mapped": mapped()}
output["after_import"] = subscribe()
work()
output["after_profiler"] = subscribe()
output["mapped_later"] = mapped()
version = ctypes.c_uint32()
for path in output["mapped_later"]:
    if "libcupti" in path and ctypes.CDLL(path).cuptiGetVersion(ctypes.byref(version)) == 0:
        output["cupti"] = version.value
if torch.cuda.is_available() and torch.distributed.is_nccl_available():
    output["nccl"] = torch.cuda.nccl.version()
print(json.dumps(output))
"""


def probe(machine: Machine, teardown: bool) -> Figures:
    env = machine.environment(**({"TEARDOWN_CUPTI": "1"} if teardown else {}))
    output = run([machine.python(), "-c", PROBE, *LIBRARIES], env)
    return json.loads(output.stdout.splitlines()[-1])


def text_of(*command: str) -> str:
    if shutil.which(command[0]) is None:
        return ""
    return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.strip()


def admin_only() -> str:
    path = pathlib.Path("/proc/driver/nvidia/params")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((line.split()[-1] for line in lines if "RmProfilingAdminOnly" in line), "")


def doctor(machine: Machine) -> dict[str, str]:
    command = [machine.program(), "doctor", "--format", "json"]
    output = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
    return {check["id"]: check["state"] for check in json.loads(output)["checks"]}


def measure(machine: Machine) -> Figures:
    machine.need_gpu()
    query = "name,driver_version,mig.mode.current,persistence_mode,memory.total"
    try:
        output = {"plain": probe(machine, False), "teardown": probe(machine, True)}
    except RuntimeError as trouble:
        raise Skip(str(trouble)) from trouble
    return {
        **output,
        "gpus": text_of("nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader").splitlines(),
        "nvidia_smi": text_of("nvidia-smi", "-q").splitlines(),
        "devices": sorted(glob.glob("/dev/nvidia*")),
        "profiling_admin_only": admin_only(),
        "dcgm": bool(text_of("pgrep", "-x", "nv-hostengine")),
        "doctor": doctor(machine),
    }


def judge(figures: Figures) -> list[Check]:
    plain, teardown = figures["plain"], figures["teardown"]
    copies = [path for path in plain["mapped_later"] if "libcupti" in path]
    failed = sorted(name for name, state in figures["doctor"].items() if state == "failed")
    return [
        equal("copies of libcupti in a process with torch", len(copies), 1),
        equal("cuptiSubscribe after import torch", plain["after_import"], 0),
        equal("the same after torch.profiler with TEARDOWN_CUPTI=1", teardown["after_profiler"], 0),
        Check(
            "the same without", "0 or 39", str(plain["after_profiler"]),
            plain["after_profiler"] in (0, 39),
        ),
        equal("checks of perftracker doctor that fail", failed, []),
    ]  # fmt: skip


EXPERIMENT = Experiment("E0", "inventory, and who holds CUPTI", measure, judge)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
