# SPDX-License-Identifier: Apache-2.0
"""Records some iterations of a program with torch.profiler, as its users do.

With "steps" the program tells the profiler where its iterations are; with "plain" it only starts
and stops it. "stacks" records Python functions, too.
"""

from __future__ import annotations

from typing import Any


class Recording:
    """Of one training process."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.folder: str = plan["record_folder"]
        self.how: str = plan["record"]
        self.first: int = plan["at"] + plan["record_before"]
        self.last: int = self.first + plan["record_steps"]
        self.begins_at = self.first - 1 if "steps" in self.how else self.first  # it warms up
        self.profiler: Any = None

    def start(self) -> None:
        from torch import profiler  # not every program has it

        marked = "steps" in self.how
        count = self.last - self.first
        self.profiler = profiler.profile(
            schedule=profiler.schedule(wait=0, warmup=1, active=count) if marked else None,
            activities=[profiler.ProfilerActivity.CPU],
            record_shapes=True,
            with_stack="stacks" in self.how,
            on_trace_ready=profiler.tensorboard_trace_handler(self.folder),
        )
        self.profiler.start()

    def step_begins(self, step: int) -> None:
        if step == self.begins_at:
            self.start()
        elif self.profiler and step == self.last:
            self.profiler.stop()
            self.profiler = None
        elif self.profiler and "steps" in self.how:
            self.profiler.step()
