# SPDX-License-Identifier: Apache-2.0
"""Writes a simulated job as torch.profiler does: one Kineto file a rank."""

from __future__ import annotations

import gzip
import json
import pathlib

import numpy
from engine import Work
from program import Played
from rank import Rank

BASE_NS = 1735632360 * 10**9  # writers of one job share it
START_US = 3.1e12
LEVELS = {"nccl": 0.1, "Mem": 0.0}


class Clock:
    """A host's clock against true time."""

    def __init__(self, played: Played, rank: int) -> None:
        spec = played.spec
        host = spec.host(rank)
        self.offset, self.drift = spec.clocks_us[host], spec.drifts[host]

    def times(self, us: list[float]) -> numpy.ndarray:
        return START_US + self.offset + numpy.array(us) * (1 + self.drift)

    def spans(self, starts: list[float], ends: list[float]) -> zip:
        """Begins and durations, as writers round them."""
        first, last = self.times(starts), self.times(ends)
        starts, durs = numpy.round(first, 3), numpy.round(last - first, 3)
        return zip(starts.tolist(), durs.tolist(), strict=True)


def cpu_events(rank: Rank, clock: Clock, pid: int, since: float) -> list[dict]:
    """In the order in which they end."""
    kept = [event for event in rank.events if event.start >= since]
    if not rank.spec.annotations:
        kept = [event for event in kept if not event.name.startswith("ProfilerStep#")]
    spans = clock.spans([event.start for event in kept], [event.end for event in kept])
    return [
        {
            "ph": "X",
            "cat": event.category,
            "name": event.name,
            "pid": pid,
            "tid": pid + 97 * event.thread,
            "ts": start,
            "dur": dur,
            "args": {"Ev Idx": number, **event.args},
        }
        for number, (event, (start, dur)) in enumerate(zip(kept, spans, strict=True))
    ]


def gpu_events(works: list[Work], clock: Clock, device: int, since: float) -> list[dict]:
    kept = [work for work in works if work.launched >= since]
    spans = clock.spans([work.start for work in kept], [work.end for work in kept])
    return [
        {
            "ph": "X",
            "cat": work.category,
            "name": work.name,
            "pid": device,
            "tid": work.stream,
            "ts": start,
            "dur": dur,
            "args": {
                "device": device,
                "stream": work.stream,
                "correlation": work.correlation,
                **work.args,
            },
        }
        for work, (start, dur) in zip(kept, spans, strict=True)
    ]


def pulses(start: float, end: float, duty: float, period: float) -> list[tuple[float, float]]:
    """A link that waits for a slow one sends a part, pauses, and sends the next."""
    if duty >= 0.99:
        return [(start, end)]
    count = max(1, round((end - start) / period))
    step = (end - start) / count
    return [(start + i * step, start + (i + duty) * step) for i in range(count)]


def counters(
    played: Played, works: list[Work], clock: Clock, rank: int, since: float
) -> list[dict]:
    """Means over the period of the samples, of the share of time in which a unit was busy."""
    spec, until = played.spec, played.ranks[rank].steps[-1]
    tracks: dict[str, list[tuple[float, float, float]]] = {"sm_active": []}
    for work in works:
        level = next((LEVELS[key] for key in LEVELS if work.name.startswith(key)), 0.85)
        tracks["sm_active"].append((work.start, work.end, level))
    for busy in played.engine.busy.get(rank, []):
        for start, end in pulses(busy.start, busy.end, busy.duty, spec.pulse_us):
            tracks.setdefault(busy.track, []).append((start, end, busy.level))
    noise = numpy.random.default_rng(spec.seed * 1000 + rank)
    made = []
    edges = numpy.arange(since, until + spec.counters_us, spec.counters_us)
    for name, parts in sorted(tracks.items()):
        used = numpy.diff(cumulate(parts, edges)) / spec.counters_us
        used = numpy.clip(used * noise.normal(1, 0.02, used.size), 0, 1)
        moments = numpy.round(clock.times(edges[1:]), 3).tolist()
        for time, value in zip(moments, numpy.round(used, 4).tolist(), strict=True):
            made.append(
                {
                    "ph": "C",
                    "pid": f"GPU {rank % spec.per_host} Counters",
                    "tid": 0,
                    "ts": time,
                    "name": name,
                    "args": {"": value},
                }
            )
    return made


def cumulate(parts: list[tuple[float, float, float]], edges: numpy.ndarray) -> numpy.ndarray:
    """Busy time before each edge."""
    total = numpy.zeros(edges.size)
    if not parts:
        return total
    starts, ends, levels = (numpy.array(one) for one in zip(*parts, strict=True))
    # Each part adds a slope at its start and removes it at its end.
    times = numpy.concatenate([starts, ends])
    slopes = numpy.concatenate([levels, -levels])
    order = numpy.argsort(times, kind="stable")
    times, slopes = times[order], numpy.cumsum(slopes[order])
    areas = numpy.concatenate([[0.0], numpy.cumsum(slopes[:-1] * numpy.diff(times))])
    inside = numpy.interp(edges, times, areas)
    return numpy.where(edges < times[0], 0.0, inside)


def head_of(played: Played, rank: int) -> dict:
    spec = played.spec
    groups = [group for kind in spec.groups.values() for group in kind if rank in group.ranks]
    head = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": rank % spec.per_host, "name": "NVIDIA A100-SXM4-80GB"}],
        "distributedInfo": {
            "backend": "nccl",
            "rank": rank,
            "world_size": spec.world,
            "pg_count": len(groups),
            "pg_config": [
                {
                    "pg_name": group.name,
                    "pg_desc": group.text,
                    "backend_config": "cuda:nccl",
                    "pg_size": len(group.ranks),
                    "ranks": list(group.ranks),
                }
                for group in groups
            ],
        },
    }
    if spec.host_names:
        head["host_name"] = f"node{spec.host(rank)}"
    head |= {"record_shapes": 1} if spec.shapes else {}
    return head | ({"with_stack": 1} if spec.stacks else {})


def write(played: Played, folder: pathlib.Path) -> None:
    """One file for each rank that has one."""
    spec = played.spec
    works: dict[int, list[Work]] = {rank: [] for rank in played.ranks}
    for work in played.engine.done:
        works[work.rank].append(work)
    for number, rank in played.ranks.items():
        if number in played.fault.missing:
            continue
        clock = Clock(played, number)
        since = rank.steps[1] if number in spec.odd_ranks else -1.0
        pid = 4000 + 13 * number
        events = cpu_events(rank, clock, pid, since)
        events += gpu_events(works[number], clock, number % spec.per_host, since)
        if spec.counters_us:
            events += counters(played, works[number], clock, number, max(0.0, since))
        document = head_of(played, number) | {
            "traceEvents": events,
            "traceName": f"rank{number}.json",
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": BASE_NS,
        }
        text = json.dumps(document)
        name = folder / f"rank{number}.pt.trace.json"
        if spec.compressed:
            name.with_suffix(".json.gz").write_bytes(gzip.compress(text.encode(), 1))
        else:
            name.write_text(text)
