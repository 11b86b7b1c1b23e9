# SPDX-License-Identifier: Apache-2.0
"""Puts one fault into a program that knows nothing of it.

The bench copies the program and adds one line, `injected.arm(globals())`, before its last
`if __name__`. That wraps three of the program's own functions, which the environment names: `step`
is called once in every iteration, `load` makes a batch, `forward` is the model's. From step `at`
on the fault happens in one of them, once in an iteration, on the victim or on all ranks.

Every training process writes when each of its steps began (`steps-RANK`) and when the fault began
(`begin-RANK`), so that its cost is measured and not assumed.
"""

from __future__ import annotations

import collections
import functools
import json
import mmap
import os
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

ENVIRONMENT = "LIVE_JOBS_FAULT"
ROLES = ("step", "load", "forward")
WARM_STEPS = 20  # of a job; longer than others
SHARED = struct.Struct("qd")


class State:
    """Of this process; a loader's child has a copy, and shares `shared` with its parent."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.shared = mmap.mmap(-1, SHARED.size)  # steps that have begun, seconds of one of late
        self.times: collections.deque[float] = collections.deque(maxlen=100)
        self.trainer = os.getpid()  # the process that trains; not a loader's child
        self.handled = -1  # the last step in which the fault happened
        self.log = -1
        self.fault: Callable[[float, int], None] | None = None
        self.recording: Any = None  # of inject/recording.py, if this run is recorded

    def begun(self) -> int:
        return SHARED.unpack(self.shared[:])[0]

    def amount_s(self) -> float:
        """By how much an iteration shall become longer, by its length until now."""
        plan = self.plan
        pace_s = plan["pace_s"] if plan["at"] == 0 else SHARED.unpack(self.shared[:])[1]
        # Loader's children make batches side by side: each must take this much longer for one.
        children = plan["loader_workers"]
        slower = children * (1 + plan["strength"]) if children else plan["strength"]
        return slower * pace_s

    def count_step(self) -> None:
        if self.log < 0:
            self.trainer = os.getpid()
            self.log = open_log(self.plan, "steps")
            self.recording = recording_of(self.plan)
        now_s, begun = time.time(), self.begun() + 1
        if WARM_STEPS < begun <= self.plan["at"]:
            self.times.append(now_s)
        pace_s = (self.times[-1] - self.times[0]) / len(self.times) if self.times else 0.0
        self.shared[:] = SHARED.pack(begun, pace_s)
        os.write(self.log, b"%.6f\n" % now_s)
        if self.recording:
            self.recording.step_begins(begun)


STATE: State | None = None


def open_log(plan: dict[str, Any], name: str) -> int:
    path = os.path.join(plan["folder"], f"{name}-{rank_here()}")
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)


def recording_of(plan: dict[str, Any]) -> Any:
    if not plan.get("record"):
        return None
    import recording

    return recording.Recording(plan)


def rank_here() -> int:
    dist = sys.modules.get("torch.distributed")
    if dist and dist.is_available() and dist.is_initialized():
        return dist.get_rank()
    return int(os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0")))


def is_hurt(plan: dict[str, Any]) -> bool:
    return plan["victim"] < 0 or rank_here() == plan["victim"]


def is_evaluation(arguments: tuple[Any, ...]) -> bool:
    return bool(arguments) and getattr(arguments[0], "training", True) is False


def hurt(state: State, role: str) -> None:
    """The fault of this iteration, if it belongs to this role and rank."""
    plan, begun = state.plan, state.begun()
    if role != plan["role"] or begun <= plan["at"] or begun == state.handled:
        return
    if plan["fault"] == "none" or not is_hurt(plan):
        return
    if state.fault is None:
        import troubles

        plan["amount_s"] = state.amount_s()
        state.fault = troubles.make(plan)
        os.write(open_log(plan, "begin"), b"%.6f\n" % time.time())
    state.handled = begun
    state.fault(plan["amount_s"], begun)


def called(roles: tuple[str, ...], arguments: tuple[Any, ...]) -> None:
    """Before each call of a wrapped function."""
    state = STATE
    if state is None or is_evaluation(arguments):
        return
    if "step" in roles:
        state.count_step()
    if "load" in roles and state.plan["loader_workers"] and os.getpid() != state.trainer:
        state.handled = -1  # each batch that a loader's child makes
    for role in roles:
        hurt(state, role)


def wrap(roles: tuple[str, ...], function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def with_fault(*args: Any, **kwargs: Any) -> Any:
        import injected  # a launcher may have pickled this function and not its module

        injected.called(roles, args)
        return function(*args, **kwargs)

    return with_fault


def start() -> State | None:
    text = os.environ.get(ENVIRONMENT)
    return State(json.loads(text)) if text else None


def arm(names: dict[str, Any]) -> None:
    """Wraps the functions of the plan; one function can have several roles."""
    if STATE is None:
        return
    functions = STATE.plan["functions"]
    for path in dict.fromkeys(functions.values()):
        roles = tuple(role for role in ROLES if functions[role] == path)
        owner, _, name = path.rpartition(".")
        if owner:
            setattr(names[owner], name, wrap(roles, getattr(names[owner], name)))
        else:
            names[name] = wrap(roles, names[name])
    if STATE.plan["fault"] == "neighbor":
        import troubles

        troubles.pin(STATE.plan)


STATE = start()
