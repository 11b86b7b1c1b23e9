# SPDX-License-Identifier: Apache-2.0
"""Makes a program repeatable and writes down what it computes, once it has been armed.

The tests add `observed.arm(globals())` to a copy of a program. All ranks are seeded; after each
step of a torch optimizer a checksum of its weights goes to `weights-RANK`, so that two runs can be
compared bit by bit; each iteration is counted in `count-RANK`. With HOLD in the environment an
iteration waits for the file of that name, so that others can look at a job that has done so many
iterations and no more.
"""

from __future__ import annotations

import functools
import json
import os
import random
import sys
import time
import zlib
from collections.abc import Callable
from typing import Any

ENVIRONMENT = "FRAMEWORKS_TEST"
HOLD_LIMIT_S = 120.0


class State:
    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.iterations = 0
        self.weights = -1

    def rank(self) -> int:
        dist = sys.modules.get("torch.distributed")
        if dist and dist.is_available() and dist.is_initialized():
            return int(dist.get_rank())
        return int(os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0")))

    def path(self, name: str) -> str:
        return os.path.join(self.plan["folder"], f"{name}-{self.rank()}")

    def note_weights(self, optimizer: Any, *_: Any) -> None:
        if self.weights < 0:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            self.weights = os.open(self.path("weights"), flags, 0o644)
        check = 0
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                local = getattr(parameter, "to_local", lambda p=parameter: p)()
                check = zlib.crc32(local.detach().contiguous().numpy().tobytes(), check)
        os.write(self.weights, b"%08x\n" % check)

    def begin_iteration(self) -> None:
        if self.iterations == self.plan["hold_at"] and self.plan["hold"]:
            with open(self.path("count"), "w") as count:
                count.write(str(self.iterations))
            deadline = time.monotonic() + HOLD_LIMIT_S
            while not os.path.exists(self.plan["hold"]) and time.monotonic() < deadline:
                time.sleep(0.02)
        self.iterations += 1


STATE: State | None = None


def counted(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def count(*args: Any, **kwargs: Any) -> Any:
        import observed  # a launcher may have pickled this function and not its module

        evaluates = bool(args) and getattr(args[0], "training", True) is False
        if observed.STATE and not evaluates:
            observed.STATE.begin_iteration()
        return function(*args, **kwargs)

    return count


def seed() -> None:
    number = int(os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0")))
    random.seed(number)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(number)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(number)


def arm(names: dict[str, Any]) -> None:
    """Called once in each process, after the program's imports."""
    if STATE is None:
        return
    owner, _, name = STATE.plan["step"].rpartition(".")
    if owner:
        setattr(names[owner], name, counted(getattr(names[owner], name)))
    else:
        names[name] = counted(names[name])
    seed()
    if "torch" in sys.modules:
        from torch.optim import optimizer

        optimizer.register_optimizer_step_post_hook(STATE.note_weights)


def start() -> State | None:
    text = os.environ.get(ENVIRONMENT)
    return State(json.loads(text)) if text else None


STATE = start()
