# SPDX-License-Identifier: Apache-2.0
"""How GPUs were used in other people's traces, against figures computed here from their JSON.

Nothing is shared with the program but the window and the words by which kernels are collectives.
"""

from __future__ import annotations

import collections
import gzip
import json
import pathlib
import unittest
from collections.abc import Iterable
from typing import Any

import real

KERNELS = {"kernel", "Kernel"}
COPIES = {"gpu_memcpy", "gpu_memset", "Memcpy", "Memset"}
CALLS = {"cuda_runtime", "cuda_driver", "Runtime", "hip_runtime"}
COLLECTIVE = ("nccl", "rccl", "allreduce", "all_reduce", "cross_device_reduce")

Interval = tuple[int, int]


def traces() -> list[pathlib.Path]:
    found = [*real.TRACES.glob("multi_rank/*/*.gz"), *real.TRACES.glob("single/*.gz")]
    return sorted(found + [*real.TRACES.glob("corner/**/*.gz")])


def events_of(path: pathlib.Path) -> tuple[list[dict[str, Any]], int]:
    trace = json.loads(gzip.open(path).read().decode("utf-8", "replace"))
    base = 0 if isinstance(trace, list) else int(trace.get("baseTimeNanoseconds", 0))
    events = trace if isinstance(trace, list) else trace["traceEvents"]
    whole = [e for e in events if isinstance(e, dict) and e.get("ph") == "X" and "dur" in e]
    return whole, base


def nanoseconds(microseconds: float | str) -> int:
    return round(float(microseconds) * 1000)


def union(intervals: Iterable[Interval]) -> list[Interval]:
    joined: list[Interval] = []
    for start, end in sorted(intervals):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def length(intervals: Iterable[Interval]) -> int:
    return sum(end - start for start, end in intervals)


class Use:
    """The figures of one trace in the window that the program analyzed."""

    def __init__(self, path: pathlib.Path, start: int, end: int) -> None:
        self.parts: dict[str, list[Interval]] = {"compute": [], "memory": [], "comm": []}
        self.totals: dict[str, list[int]] = collections.defaultdict(list)
        self.calls: dict[str, list[int]] = collections.defaultdict(list)
        events, base = events_of(path)
        for event in events:
            begin = nanoseconds(event["ts"]) + base
            until = begin + nanoseconds(event["dur"])
            category, name = event.get("cat"), str(event.get("name"))
            inside = (max(begin, start), min(until, end))
            if category in CALLS and start <= begin < end:
                self.calls[name].append(min(until, end) - begin)
            if category not in KERNELS | COPIES or begin >= end or until <= start:
                continue
            self.parts[self.part(category, name)].append(inside)
            self.totals[name].append(inside[1] - inside[0])

    def part(self, category: str, name: str) -> str:
        lower = name.lower()
        if category in COPIES or lower.startswith("__amd_rocclr_"):
            return "memory"
        return "comm" if any(word in lower for word in COLLECTIVE) else "compute"

    def union_of(self, *parts: str) -> int:
        return length(union(i for part in parts for i in self.parts[part]))


def dumped(path: pathlib.Path) -> dict[str, Any] | None:
    done = real.call("dump", "--format", "json", path)
    return json.loads(done.stdout) if done.returncode == 0 else None


class Activity(unittest.TestCase):
    def assert_near(self, found: float, expected: float, window: int, what: str) -> None:
        # Times are microseconds with a fraction: each event is rounded once.
        self.assertAlmostEqual(found / window, expected / window, delta=2e-3, msg=what)

    def compare(self, path: pathlib.Path, dump: dict[str, Any]) -> None:
        window, use = dump["window_ns"], dump["usage"]
        mine = Use(path, dump["window_start_ns"], dump["window_start_ns"] + window)
        busy = mine.union_of("compute", "memory", "comm")
        self.assert_near(use["busy_ns"], busy, window, "busy")
        for part in ("compute", "memory", "comm"):
            self.assert_near(use[f"{part}_ns"], mine.union_of(part), window, part)
        exposed = busy - mine.union_of("compute", "memory")
        self.assert_near(use["comm_alone_ns"], exposed, window, "exposed communication")
        alone = busy - mine.union_of("compute", "comm")
        self.assert_near(use["memory_alone_ns"], alone, window, "exposed copies")
        for total in dump["totals"]:
            times = (mine.calls if total["kind"] == "runtime" else mine.totals).get(total["name"])
            if times is None:
                continue  # a display name is shorter than the one in the trace
            self.assertEqual(total["count"], len(times), total["name"])
            self.assert_near(total["total_ns"], sum(times), window, total["name"])

    def test_figures_are_those_of_a_script(self) -> None:
        compared = 0
        for path in traces():
            dump = dumped(path)
            if dump is None or dump["usage"] is None:
                continue
            with self.subTest(path=path.name):
                self.compare(path, dump)
                compared += 1
        self.assertGreater(compared, 20)

    def test_the_longest_kernels_are_listed(self) -> None:
        dump = dumped(real.TRACES / "multi_rank" / "dlrm8" / "worker0.pt.trace.json.gz")
        assert dump is not None
        start = dump["window_start_ns"]
        path = real.TRACES / "multi_rank" / "dlrm8" / "worker0.pt.trace.json.gz"
        mine = Use(path, start, start + dump["window_ns"])
        expected = max(mine.totals, key=lambda name: sum(mine.totals[name]))
        listed = [t["name"] for t in dump["totals"] if t["kind"] == "kernel"]
        self.assertTrue(expected.startswith(listed[0][:20]), (expected, listed[0]))

    def test_collectives_by_kind_have_no_waiting(self) -> None:
        report = real.analyze(real.TRACES / "multi_rank" / "megatron_tp2")
        reduce = next(c for c in report["collectives"] if c["operation"] == "all_reduce")
        self.assertTrue(reduce["matched"])
        self.assertEqual(reduce["group_size"], 2)
        # One rank waits 48 ms in 13 of them; what is transferred takes a fraction of that.
        self.assertLess(reduce["latency_ms"] * 13, 2)
        self.assertGreater(sum(c["ms_per_iteration"] for c in report["collectives"]), 20)


if __name__ == "__main__":
    real.skip_without_traces()
    unittest.main()
