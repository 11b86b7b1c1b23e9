# SPDX-License-Identifier: Apache-2.0
"""The faults, and the right answer to each. inject/troubles.py does them."""

from __future__ import annotations

from typing import NamedTuple

from programs import Program

SLOW, HANGS, FAILS = "slow", "hangs", "fails"
NOTHING = "(?!)"


class Fault(NamedTuple):
    name: str
    trouble: str  # of inject/troubles.py
    role: str  # the function in which it happens
    whom: str  # "one" rank or "all"
    kind: str
    function: str  # pattern: the right function's name, or a frame above it
    cause: str = NOTHING  # or pattern: a right cause
    from_start: bool = False
    in_child: bool = False  # happens in the children of a DataLoader, and only there
    peers: bool = False  # has a meaning only with several ranks


FAULTS = (
    Fault("sleep", "query_config_server", "forward", "one", SLOW, "query_config_server"),
    Fault("python", "augment_in_python", "load", "one", SLOW, "augment_in_python|tokenize_slow"),
    Fault(
        "collate",
        "collate_slowly",
        "load",
        "one",
        SLOW,
        "collate",
        "^slow-data-loading$",
        in_child=True,
    ),
    Fault(
        "gil",
        "ExportsMetrics",
        "forward",
        "one",
        SLOW,
        "export_metrics|waiting for the GIL",
        "^gil-contention$",
    ),
    Fault("lock", "SharesCache", "forward", "one", SLOW, "read_cache|refresh_cache"),
    Fault(
        "gc",
        "CollectsGarbage",
        "forward",
        "one",
        SLOW,
        "CollectsGarbage|gc.collect|collect>",
        "^garbage-collection$",
    ),
    Fault("journal", "write_journal", "load", "one", SLOW, "write_journal"),
    Fault(
        "imbalance", "heavier_batch", "forward", "one", SLOW, "heavier_batch", "^load-imbalance$"
    ),
    Fault("network", "FetchesShards", "load", "one", SLOW, "fetch_shard|recv", "^slow-data"),
    Fault("neighbor", "HasNeighbors", "step", "one", SLOW, NOTHING, "^cpu-starvation$"),
    Fault("snapshot", "save_snapshot", "step", "one", SLOW, "save_snapshot|write_journal"),
    Fault("stalls", "retry_request", "forward", "one", SLOW, "retry_request"),
    Fault(
        "all-store",
        "read_from_store",
        "load",
        "all",
        SLOW,
        "read_from_store",
        "^slow-data-loading$",
        peers=True,
    ),
    Fault(
        "all-python",
        "augment_in_python",
        "forward",
        "all",
        SLOW,
        "augment_in_python|tokenize_slow",
        peers=True,
    ),
    Fault(
        "start-sleep",
        "query_config_server",
        "forward",
        "one",
        SLOW,
        "query_config_server",
        from_start=True,
        peers=True,
    ),
    Fault(
        "start-python",
        "augment_in_python",
        "load",
        "one",
        SLOW,
        "augment_in_python|tokenize_slow",
        from_start=True,
        peers=True,
    ),
    Fault("hang-lock", "acquire_quota", "forward", "one", HANGS, "acquire_quota"),
    Fault("hang-loop", "wait_until_ready", "load", "one", HANGS, "wait_until_ready"),
    Fault(
        "hang-read",
        "FetchesShards",
        "load",
        "one",
        HANGS,
        "fetch_shard|recv",
        "^(slow-data-loading|loader-blocked)$",
    ),
    Fault("stopped", "stop_itself", "step", "one", HANGS, "stop_itself", "^stopped-process$"),
    Fault("exit", "leave_early", "step", "one", FAILS, NOTHING, "^process-ended$", peers=True),
    Fault("crash", "check_labels", "load", "one", FAILS, "check_labels", "^process-ended$"),
)
BY_NAME = {fault.name: fault for fault in FAULTS}
NONE = Fault("none", "", "step", "one", "none", NOTHING)


def fits(fault: Fault, program: Program) -> bool:
    """Whether the fault can happen in the program and means something there."""
    if fault.in_child and not program.loader_workers:
        return False
    return program.ranks > 1 or not fault.peers


def shows_in_trace(fault: Fault, program: Program) -> bool:
    """A single rank that computes more than before has no one to be compared with."""
    return fault.kind == SLOW and (program.ranks > 1 or fault.name != "imbalance")


def victim_of(fault: Fault, program: Program) -> int:
    """The rank that is hurt; -1: all ranks. Rank 0 is special in many programs: not that one."""
    return -1 if fault.whom == "all" else program.ranks - 1
