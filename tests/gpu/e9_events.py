#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Experiment E9: CUDA events as a means to time kernels always.

Expected: two records add at most 2 us to a launch, a query takes at most 1 us; in a capture the
stream says so, and a query of an event that was recorded there fails with 907 (captured event);
over 20 s float milliseconds differ from the kernels' own times by less than 50 us, and by more
than 0.25 us: their resolution is 2 us by then, so times must be based anew every few seconds.

    tests/gpu/e9_events.py [--build DIR]
"""

from __future__ import annotations

import sys

from experiment import Check, Experiment, Figures, Machine, at_least, at_most, equal, objects, run

CAPTURED_EVENT = 907


def measure(machine: Machine) -> Figures:
    machine.need_gpu()
    return objects(run([machine.program("e_events")], machine.environment()).stdout)[0]


def judge(figures: Figures) -> list[Check]:
    added_ns = figures["launch_with_events_ns"] - figures["launch_ns"]
    return [
        at_most("two records beside a launch", added_ns, 2000, " ns"),
        at_most("a query", figures["query_ns"], 1000, " ns"),
        equal("a stream that is captured says so", figures["capturing"], 1),
        equal("a query of a captured event", figures["captured_query"], CAPTURED_EVENT),
        equal("every kernel has both times", figures["drift_whole"], True),
        at_most("events against kernels over 20 s", figures["drift_us"], 50, " us"),
        at_least("the same", figures["drift_us"], 0.25, " us"),
    ]


EXPERIMENT = Experiment("E9", "CUDA events", measure, judge)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
