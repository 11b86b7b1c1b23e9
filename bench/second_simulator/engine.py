# SPDX-License-Identifier: Apache-2.0
"""Streams, collectives and links of all ranks, in virtual microseconds.

A rank's CPU program is a generator: it advances its own clock, enqueues work on streams, and
yields a piece of work that it must wait for. Work on a stream begins after its launch, after the
work before it on the stream, and after the work it depends on. A collective moves bytes from the
moment at which the last member's kernel began, until then kernels spin; it ends on all members
together. Transfers are started in the order of time, so that two of them on one network card
follow each other.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator
from typing import NamedTuple

LAUNCH_US = 3.0  # from the launching call to the first moment at which a kernel can run


class Work:
    """One piece of work on a stream: a kernel, a copy or a member's part of a collective."""

    __slots__ = (
        "args",
        "before",
        "category",
        "collective",
        "correlation",
        "dur",
        "end",
        "followers",
        "launched",
        "name",
        "rank",
        "start",
        "stream",
        "waits",
    )

    def __init__(self, rank: int, stream: int, name: str, category: str, dur: float) -> None:
        self.rank, self.stream, self.name, self.category, self.dur = (
            rank,
            stream,
            name,
            category,
            dur,
        )
        self.launched = 0.0
        self.before: list[Work] = []
        self.followers: list[Work] = []
        self.waits = 0
        self.collective: Transfer | None = None
        self.start = self.end = -1.0
        self.correlation = 0
        self.args: dict = {}


class Group(NamedTuple):
    """A process group. rings: which of its members share a ring between hosts."""

    name: str
    text: str  # what the trace has as its description
    ranks: tuple[int, ...]
    rings: tuple[tuple[int, ...], ...]  # empty: the group is inside one host
    kind: str  # "tp", "dp", ...


class Busy(NamedTuple):
    """A link of a rank that moved bytes: share of its nominal rate, in pulses or steady."""

    track: str
    start: float
    end: float
    level: float
    duty: float  # share of time in which it sends; 1: steady


class Transfer:
    """One collective, or the sending of a tensor to one other rank."""

    def __init__(self, group: Group, moved: float, name: str) -> None:
        self.group, self.bytes, self.name = group, moved, name
        self.members: list[Work] = []
        self.start = self.end = -1.0


class Links:
    """Rates in bytes a microsecond, and what is wrong with them."""

    def __init__(self, nic: float, nvlink: float, latency_us: float, peak: float) -> None:
        self.nic, self.nvlink, self.latency_us, self.peak = nic, nvlink, latency_us, peak
        self.slow_nics: dict[int, float] = {}  # rank: share of the rate that is left
        self.slow_groups: dict[str, float] = {}  # the same for the links inside a host, by group
        self.free: dict[int, float] = {}  # when the card of a rank is free again

    def begin(self, transfer: Transfer, at: float) -> float:
        """The members' cards do one thing after the other."""
        cards = transfer.members if transfer.group.rings else []
        return max([at, *(self.free.get(work.rank, 0.0) for work in cards)])

    def play(self, transfer: Transfer, jitter: float) -> list[tuple[int, Busy]]:
        """Sets the transfer's end; returns the use of links by rank."""
        group, start = transfer.group, transfer.start
        if not group.rings:
            share = self.slow_groups.get(group.name, 1.0)
            dur = transfer.bytes / (self.nvlink * share)
            transfer.end = start + self.latency_us + dur * jitter
            level = self.peak * share
            busy = Busy("nvlink_tx", start + self.latency_us, transfer.end, level, 1.0)
            return [(work.rank, busy) for work in transfer.members]
        used, ends = [], []
        begin = start + 3 * self.latency_us
        for ring in group.rings:
            share = min(self.slow_nics.get(rank, 1.0) for rank in ring)
            end = begin + transfer.bytes / len(group.rings) / (self.nic * share) * jitter
            ends.append(end)
            for rank in ring[:1] if group.kind == "p2p" else ring:
                own = self.slow_nics.get(rank, 1.0)
                busy = Busy("pcie_tx", begin, end, self.peak * own, min(1.0, share / own))
                used.append((rank, busy))
        transfer.end = max(ends)
        for work in transfer.members:
            self.free[work.rank] = transfer.end
        return used


class Engine:
    def __init__(self, links: Links, jitter: Callable[[str], float]) -> None:
        """jitter: factor on the duration of the transfer of a name."""
        self.links, self.jitter = links, jitter
        self.tails: dict[tuple[int, int], Work] = {}
        self.done: list[Work] = []
        self.busy: dict[int, list[Busy]] = {}
        self.open: dict[tuple[str, int], Transfer] = {}
        self.counts: dict[tuple[str, int], int] = {}
        self.heap: list[tuple[float, int, Transfer]] = []
        self.order = 0
        self.ready: list[Work] = []

    def tail(self, rank: int, stream: int) -> Work | None:
        return self.tails.get((rank, stream))

    def enqueue(self, work: Work, after: list[Work | None]) -> Work:
        last = self.tails.get((work.rank, work.stream))
        work.before = [one for one in (last, *after) if one is not None]
        for one in work.before:
            if one.end < 0:
                work.waits += 1
                one.followers.append(work)
        self.tails[work.rank, work.stream] = work
        if work.waits == 0:
            self.ready.append(work)
        return work

    def join(self, work: Work, group: Group, moved: float) -> None:
        """Makes the work a member of the next collective of its group."""
        key = (group.name, work.rank)
        number = self.counts.get(key, 0)
        self.counts[key] = number + 1
        place = (group.name, number)
        if place not in self.open:
            self.open[place] = Transfer(group, moved, f"{group.name}/{number}")
        work.collective = self.open[place]

    def settle(self) -> None:
        """Gives a begin and an end to all work for which they are known."""
        while self.ready:
            work = self.ready.pop()
            work.start = max([work.launched + LAUNCH_US, *(one.end + 0.5 for one in work.before)])
            if work.collective is None:
                self.finish(work, work.start + work.dur)
                continue
            transfer = work.collective
            transfer.members.append(work)
            if len(transfer.members) == len(transfer.group.ranks):
                self.order += 1
                at = max(one.start for one in transfer.members)
                heapq.heappush(self.heap, (at, self.order, transfer))

    def finish(self, work: Work, end: float) -> None:
        work.end = end
        self.done.append(work)
        work.before = []
        for follower in work.followers:
            follower.waits -= 1
            if follower.waits == 0:
                self.ready.append(follower)
        work.followers = []

    def transfer_next(self) -> None:
        at, _, transfer = heapq.heappop(self.heap)
        transfer.start = self.links.begin(transfer, at)
        for rank, busy in self.links.play(transfer, self.jitter(transfer.name)):
            self.busy.setdefault(rank, []).append(busy)
        for skew, work in enumerate(sorted(transfer.members, key=lambda one: one.rank)):
            self.finish(work, transfer.end + 0.3 * (skew % 4))

    def run(self, programs: dict[int, Generator[Work, None, None]]) -> None:
        """Runs all programs to their ends; they must wait for each other without a cycle."""
        waiting: dict[int, Work | None] = dict.fromkeys(programs)
        while True:
            moved = True
            while moved:
                moved = False
                for rank, work in list(waiting.items()):
                    if work is not None and work.end < 0:
                        continue
                    moved = True
                    try:
                        waiting[rank] = next(programs[rank])
                    except StopIteration:
                        del waiting[rank]
                    self.settle()
            if self.heap:
                self.transfer_next()
                self.settle()
            elif waiting:
                raise RuntimeError(f"ranks {sorted(waiting)} wait for ever")
            else:
                return
