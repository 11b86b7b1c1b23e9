#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Experiment E6: what hardware counters count, by work whose bytes are known.

Expected, by PM sampling: copies to the device show on one direction of PCIe, those from it on the
other, each within 25 % of the bytes that were copied, with less than a fifth of that on the
wrong one (`pcie_rx_rate` is what the GPU receives); sets show as activity of the memory and on
no PCIe; a matrix multiplication in bf16 keeps matrix units busy for at least 20 % of the time,
copies for less than 5 %. NVML's and GPM's values for PCIe are reported.

    tests/gpu/e6_counters.py [--build DIR]
"""

from __future__ import annotations

import sys
import time

from experiment import (
    Beside,
    Check,
    Experiment,
    Figures,
    Machine,
    Skip,
    at_least,
    at_most,
    objects,
    run,
)

SECONDS = 4
PCIE = ("pcie_rx_rate", "pcie_tx_rate")
GEMM = """
import time, torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
end = time.monotonic() + %f
while time.monotonic() < end:
    for _ in range(10):
        a @ a
    torch.cuda.synchronize()
"""


def slow_values(fields: Beside) -> Figures:
    """What NVML and GPM said last of the first device; {} where they can't."""
    try:
        output = fields.result()
    except (Skip, RuntimeError):
        return {}
    return {each["metric"]: each["last"] for each in output if each.get("gpu") == 0}


def told_by_nvml(name: str, figures: Figures) -> list[Check]:
    values = figures.get("nvml") or {}
    text = ", ".join(f"{way} {values[way] / 1e9:.2f}" for way in PCIE if way in values)
    return [Check(f"{name}: PCIe by NVML, GB/s", "reported", text, True)] if text else []


def sample(machine: Machine, command: list[str]) -> Figures:
    sampler = [machine.program("e_pmsampling"), str(SECONDS)]
    look = [machine.program("nvml_refresh"), str(SECONDS - 1)]
    with Beside(command, machine.environment()) as work:
        time.sleep(4 if command[0].endswith("python") else 1.5)  # it is at work then
        with Beside(look, machine.nvml_environment()) as fields:
            output = objects(run(sampler, machine.sampler_environment()).stdout)
            nvml = slow_values(fields)
        load = (work.result() or [{}])[-1]
    rate = load.get("bytes", 0) / max(load.get("end_ns", 1) - load.get("begin_ns", 0), 1) * 1e9
    means = {m["metric"]: m["mean"] for m in output if "metric" in m}
    return {"rate": rate, "nvml": nvml, **means}


def measure(machine: Machine) -> Figures:
    machine.need_gpu()
    if machine.double:
        raise Skip("the double of a GPU has no memory")
    load = machine.program("e_load")
    figures = {m: sample(machine, [load, m, str(SECONDS + 3)]) for m in ("h2d", "d2h", "set")}
    figures["gemm"] = sample(machine, [machine.python(), "-c", GEMM % (SECONDS + 8)])
    return figures


def near(what: str, seen: float, known: float) -> Check:
    ok = known > 0 and abs(seen / known - 1) <= 0.25
    return Check(what, f"{known / 1e9:.2f} GB/s +-25 %", f"{seen / 1e9:.2f} GB/s", ok)


def judge(figures: Figures) -> list[Check]:
    to, back = figures["h2d"], figures["d2h"]
    quiet = 0.05 * to["rate"] / 1e9
    on_pcie = max(figures["set"]["pcie_rx_rate"], figures["set"]["pcie_tx_rate"]) / 1e9
    return [
        near("copies to the device, received over PCIe", to["pcie_rx_rate"], to["rate"]),
        at_most("the same, sent", to["pcie_tx_rate"] / 1e9, to["rate"] / 5e9, " GB/s"),
        near("copies from the device, sent over PCIe", back["pcie_tx_rate"], back["rate"]),
        at_most("the same, received", back["pcie_rx_rate"] / 1e9, back["rate"] / 5e9, " GB/s"),
        at_least("sets: the memory is active", figures["set"]["memory_active"], 0.2),
        at_most("sets: on PCIe", on_pcie, quiet, " GB/s"),
        at_least("matrix multiplication: matrix units", figures["gemm"]["matrix_active"], 0.2),
        at_most("copies: matrix units", to["matrix_active"], 0.05),
        *told_by_nvml("copies to the device", to),
        *told_by_nvml("copies from the device", back),
    ]


EXPERIMENT = Experiment("E6", "meaning of the counters", measure, judge)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
