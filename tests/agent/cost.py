# SPDX-License-Identifier: Apache-2.0
"""What the hook costs the job, in nanoseconds of CPU time. Fails when it is too much.

PERFTRACKER_PYTHON names an interpreter with torch, PERFTRACKER_AGENT the library.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

MARK_LIMIT_NS = 2_000  # per call of a C function from Python
PAIR_LIMIT_NS = 30_000  # per iteration: a wrapped next and a wrapped step


def timed(function, count=20000, rounds=7):
    """CPU time of the median round: neighbors on the machine disturb the others."""
    results = []
    for _ in range(rounds):
        begin = time.thread_time_ns()
        for _ in range(count):
            function()
        results.append((time.thread_time_ns() - begin) / count)
    return statistics.median(results)


def nothing():
    pass


def measure_marks(loader, optimizer):
    """The C functions themselves, in the order in which a loop calls them."""
    from perftracker import _hook

    calls, mark_iteration = _hook._hook.calls, _hook._hook.mark_iteration
    begins, ends = calls.loader_begins, calls.loader_ends
    step_begins, step_ends = calls.step_begins, calls.step_ends

    def loader_pair():
        begins(loader)
        ends(loader)

    def step_pair():
        step_begins(optimizer)
        step_ends(optimizer)

    call = timed(nothing)
    results = {
        "loader_mark_ns": (timed(loader_pair) - call) / 2,
        "step_mark_ns": (timed(step_pair) - call) / 2,
        "iteration_ns": timed(mark_iteration),
    }
    assert _hook.status()["state"] == "active", _hook.status()
    return results


def measure():
    import torch
    from torch.utils.data import dataloader

    class Iter(dataloader._BaseDataLoaderIter):
        def __init__(self):
            self._dataset = self

    class Step(torch.optim.Optimizer):
        def step(self):
            pass

    wrapped = dataloader._BaseDataLoaderIter.__next__
    bare = getattr(wrapped, "__wrapped__", None)
    empty_next = type("E", (), {"__next__": lambda self: None}).__next__
    optimizer = Step([torch.nn.Parameter(torch.zeros(1))], {})
    results = {"step_ns": timed(optimizer.step)}
    if bare is not None:
        loader = Iter()
        # The real __next__ is replaced by an empty one, so only the hook's cost is left.
        cell = next(c for c in wrapped.__closure__ if c.cell_contents is bare)
        cell.cell_contents = empty_next
        results["next_ns"] = timed(lambda: wrapped(loader))
        results["empty_next_ns"] = timed(lambda: empty_next(loader))
        results.update(measure_marks(loader, optimizer))
    print(" ".join("%s=%.0f" % item for item in results.items()))


def run(env):
    python = os.environ.get("PERFTRACKER_PYTHON", os.path.join(ROOT, ".venv", "bin", "python"))
    command = [python, os.path.abspath(__file__), "measure"]
    out = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    return {key: float(value) for key, value in (pair.split("=") for pair in out.split())}


def main():
    import daemon

    with tempfile.TemporaryDirectory() as folder:
        fake = daemon.Daemon(folder)
        with_hook = run({**fake.environment(), "PYTHONWARNINGS": "ignore"})
        fake.kill()
    bare = run({**os.environ, "PYTHONWARNINGS": "ignore"})
    step = with_hook["step_ns"] - bare["step_ns"]
    pair = with_hook["next_ns"] - with_hook["empty_next_ns"] + step
    marks = {name: with_hook[name] for name in ("loader_mark_ns", "step_mark_ns", "iteration_ns")}
    print("per call: loader %.0f ns, step %.0f ns, iteration %.0f ns" % tuple(marks.values()))
    print("next +%.0f ns, step +%.0f ns (of %.0f)" % (pair - step, step, bare["step_ns"]))
    return 1 if max(marks.values()) > MARK_LIMIT_NS or pair > PAIR_LIMIT_NS else 0


if __name__ == "__main__":
    sys.exit(measure() if sys.argv[1:] else main())
