# SPDX-License-Identifier: Apache-2.0
"""Reads a worker's flight recorder as src/format/shared/recorder.h lays it out."""

import ctypes
import os
from typing import Dict, List, NamedTuple, Set

import daemon as d

STRINGS, FRAMES, NODES, SAMPLES = 16384, 16384, 65536, 32768
LANES, LANE_RECORDS, WINDOW_RECORDS = 32, 2048, 32768
GPU_LANES = 1024
SAMPLE, OPERATOR, ANNOTATION, COLLECTIVE, PYTHON, CHILD = 32, 37, 38, 39, 42, 58
COLLECTIVE_GROUP = 41
SAMPLE_WINDOW = 8
SOURCE_EXACT = 6
DROPS_UNREADABLE = 4
U32, U64, I64 = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int64


class RawRecord(ctypes.Structure):
    _fields_ = [
        ("time_ns", I64),
        ("value", I64),
        ("seq", U32),
        ("kind", ctypes.c_uint16),
        ("detail", ctypes.c_uint16),
        ("extra", U64),
    ]


class RawLane(ctypes.Structure):
    _fields_ = [
        ("tid", U32),
        ("reserved", U32),
        ("head", U64),
        ("window_head", U64),
        ("name", ctypes.c_char * 16),
    ]


class RawSource(ctypes.Structure):
    _fields_ = [("state", U32), ("why", ctypes.c_char * 124)]


class RawFlight(ctypes.Structure):
    """All but the pages of a window, which begin at the next page."""

    _fields_ = [
        ("block", ctypes.c_char * (d.RING_AT + d.RING * d.RECORD.size)),
        ("layout_bytes", U32),
        ("rank", ctypes.c_int32),
        ("world_size", ctypes.c_int32),
        ("pid", U32),
        ("training_tid", U32),
        ("window_open", U32),
        ("mono_ns", I64),
        ("wall_ns", I64),
        ("sources", RawSource * 8),
        ("drops", U64 * 13),
        ("string_cnt", U32),
        ("text_len", U32),
        ("frame_cnt", U32),
        ("node_cnt", U32),
        ("lane_cnt", U32),
        ("gpu_lane_cnt", U32),
        ("gpu_name", U32),
        ("reserved", U32),
        ("strings", U32 * 2 * STRINGS),
        ("frames", U32 * 4 * FRAMES),
        ("nodes", U32 * 2 * NODES),
        ("lanes", RawLane * LANES),
        ("gpu_lanes", U32 * 2 * GPU_LANES),
        ("sample_head", U64),
        ("samples", RawRecord * SAMPLES),
        ("records", RawRecord * LANE_RECORDS * LANES),
        ("text", ctypes.c_char * (1 << 20)),
    ]


WINDOW_AT = (ctypes.sizeof(RawFlight) + 4095) // 4096 * 4096
RECORDER_BYTES = WINDOW_AT + LANES * WINDOW_RECORDS * d.RECORD.size


class Record(NamedTuple):
    time_ns: int
    value: int
    tid: int
    kind: int
    detail: int
    extra: int


class Group(NamedTuple):
    """Of a collective: its ranks in the job are first, first + stride, ...; stride 0: unknown."""

    name: str
    size: int
    first: int
    stride: int


class Recorder:
    """A look at the recorder of a worker, which may go on writing."""

    def __init__(self, worker: d.Worker) -> None:
        self._block = worker.block
        self.raw = RawFlight.from_buffer(worker.block)
        assert self.raw.layout_bytes == len(worker.block) == RECORDER_BYTES

    def string(self, number: int) -> str:
        at, length = self.raw.strings[number]
        start = RawFlight.text.offset + at
        return self._block[start : start + length].decode()

    def stack(self, node: int) -> List[str]:
        """Function names, outermost first."""
        names: List[str] = []
        while node != 0:
            parent, frame = self.raw.nodes[node]
            names.insert(0, self.string(self.raw.frames[frame][1]))
            node = parent
        return names

    def _ring(self, offset: int, size: int, head: int, tid: int) -> List[Record]:
        found = []
        for position in range(max(0, head - size), head):
            at = offset + position % size * d.RECORD.size
            time_ns, value, seq, kind, detail, extra = d.RECORD.unpack_from(self._block, at)
            if seq == position + 1:
                found.append(Record(time_ns, value, tid, kind, detail, extra))
        return found

    def samples(self, kind: int = SAMPLE) -> List[Record]:
        """Of SAMPLE or CHILD: extra is the node, tid the thread that was looked at."""
        ring = self._ring(RawFlight.samples.offset, SAMPLES, self.raw.sample_head, 0)
        return [
            r._replace(tid=r.extra >> 32, extra=r.extra & 0xFFFFFFFF)
            for r in ring
            if r.kind == kind
        ]

    def _written(self) -> List[Record]:
        """By all threads, also without a window."""
        found = []
        for number, lane in enumerate(self.raw.lanes):
            at = RawFlight.records.offset + number * LANE_RECORDS * d.RECORD.size
            found += self._ring(at, LANE_RECORDS, lane.head, lane.tid)
        return found

    def collectives(self) -> List[str]:
        return [
            self.string(record.extra) for record in self._written() if record.kind == COLLECTIVE
        ]

    def groups(self) -> Set[Group]:
        """Of all collectives. Behind each are its arguments and its group."""
        found = set()
        written = self._written()
        for args, group in zip(written, written[1:]):  # noqa: B905 - not in Python 3.8
            if group.kind == COLLECTIVE_GROUP:
                name = self.string(group.value & 0xFFFFFFFF)
                found.add(Group(name, group.value >> 32, args.detail, group.detail))
        return found

    def window(self) -> List[Record]:
        """What all threads wrote into the pages of the window."""
        found = []
        for number, lane in enumerate(self.raw.lanes):
            at = WINDOW_AT + number * WINDOW_RECORDS * d.RECORD.size
            found += self._ring(at, WINDOW_RECORDS, lane.window_head, lane.tid)
        return found

    def operators(self) -> Dict[str, int]:
        counts: Dict[str, int] = {}
        for record in self.window():
            if record.kind == OPERATOR:
                name = self.string(record.extra)
                counts[name] = counts.get(name, 0) + 1
        return counts

    def window_heads(self) -> List[int]:
        return [lane.window_head for lane in self.raw.lanes]

    def absent(self) -> Dict[int, str]:
        return {n: s.why.decode() for n, s in enumerate(self.raw.sources) if s.state != 1}


def memory_bytes(worker: d.Worker) -> int:
    """What the kernel has allocated to the recorder; reading a hole would fill it."""
    return os.fstat(worker.fd).st_blocks * 512
