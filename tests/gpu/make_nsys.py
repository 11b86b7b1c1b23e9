#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes databases in the documented schemas of Nsight Systems' SQLite export from Kineto files.

    tests/gpu/make_nsys.py [OPTION]... JOB OUT

JOB is a folder of `perftracker simulate --level events`; OUT gets one HOST.sqlite for each
host of the job, with all of its processes, as `nsys profile` on each host would. Operators
become ranges as torch's emit_nvtx() writes them, collectives ranges of NCCL with payload,
counters GPU metrics in the layout wished. Python functions have no place in the schema and
are left out. Nothing here was written by nsys: it is what its documentation describes.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import hashlib
import json
import pathlib
import sqlite3
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

Event = dict[str, Any]

VM = 1 << 48
NCCL_DOMAIN = 1
METRICS = {
    "sm_active": ("SMs Active [Throughput %]",),
    "dram": ("DRAM Read Bandwidth [Throughput %]", "DRAM Write Bandwidth [Throughput %]"),
    "nvlink_tx": (
        "NVLink TX Requests User Data [Throughput %]",
        "NVLink TX Responses User Data [Throughput %]",
    ),
    "pcie_tx": ("PCIe TX Throughput [Throughput %]",),
    "pcie_rx": ("PCIe RX Throughput [Throughput %]",),
}
CALLS = {"AllReduce": "ncclAllReduce", "AllGather": "ncclAllGather", "SendRecv": "ncclSend"}
CALLS |= {"ReduceScatter": "ncclReduceScatter", "Broadcast": "ncclBroadcast"}

WORK = "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
WORK += "contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, "
WORK += "globalPid INTEGER"
CALL = "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, "
CALL += "globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, "
CALL += "returnValue INTEGER NOT NULL"

TABLES = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "PROCESSES": "globalPid INTEGER, pid INTEGER, name TEXT",
    "ThreadNames": "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT",
    "TARGET_INFO_SYSTEM_ENV": "globalVid INTEGER, devStateName TEXT NOT NULL, "
    "name TEXT NOT NULL, nameEnum INTEGER NOT NULL, value TEXT NOT NULL",
    "TARGET_INFO_GPU": "vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, "
    "busLocation TEXT, pwGpuId INTEGER, cuDevice INTEGER",
    "TARGET_INFO_CUDA_DEVICE": "gpuId INTEGER, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL, "
    "uuid TEXT, numMultiprocessors INTEGER",
    "CUPTI_ACTIVITY_KIND_KERNEL": WORK + ", demangledName INTEGER NOT NULL, "
    "shortName INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, "
    "gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, "
    "blockZ INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_MEMCPY": WORK + ", bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, "
    "srcKind INTEGER, dstKind INTEGER",
    "CUPTI_ACTIVITY_KIND_RUNTIME": CALL + ", callchainId INTEGER",
    "NVTX_EVENTS": "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, "
    "rangeId INTEGER, category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, "
    "endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, jsonText TEXT, binaryData TEXT",
    "NVTX_PAYLOAD_SCHEMA_ENTRIES": "domainId INTEGER NOT NULL, schemaId INTEGER NOT NULL, "
    "idx INTEGER NOT NULL, flags INTEGER, type INTEGER, name TEXT, description TEXT, "
    "arrayOrUnionDetail INTEGER, offset INTEGER",
    "SCHED_EVENTS": "start INTEGER NOT NULL, cpu INTEGER NOT NULL, isSchedIn INTEGER NOT NULL, "
    "globalTid INTEGER, threadState INTEGER, threadBlock INTEGER",
    "TARGET_INFO_GPU_METRICS": "typeId INTEGER NOT NULL, sourceId INTEGER NOT NULL, "
    "typeName TEXT NOT NULL, metricId INTEGER NOT NULL, metricName TEXT NOT NULL",
    "GPU_METRICS": "rawTimestamp INTEGER NOT NULL, timestamp INTEGER NOT NULL, "
    "typeId INTEGER NOT NULL, metricId INTEGER NOT NULL, value INTEGER NOT NULL",
    "GENERIC_EVENTS": "rawTimestamp INTEGER NOT NULL, timestamp INTEGER, "
    "typeId INTEGER NOT NULL, data TEXT NOT NULL",
}

# What a schema lacks: as the reader must expect it of old ones.
ABSENT = {
    "2.9": {"TARGET_INFO_CUDA_DEVICE", "NVTX_PAYLOAD_SCHEMA_ENTRIES", "GPU_METRICS"},
    "3.13": set(),
    "3.25": set(),
}
ABSENT["2.9"].add("TARGET_INFO_GPU_METRICS")
EMPTY_PAYLOAD = (None, None)


class Options(NamedTuple):
    schema: str
    layout: str
    payload: str
    steps: str


class Export:
    """One database while it is written."""

    def __init__(self, path: pathlib.Path, options: Options) -> None:
        path.unlink(missing_ok=True)
        self.options = options
        self.db = sqlite3.connect(path)
        self.strings: dict[str, int] = {}
        self.communicators: set[tuple[int, int]] = set()
        meta = "EXPORT_META_DATA" if options.schema.startswith("2.") else "META_DATA_EXPORT"
        self.db.execute(f"CREATE TABLE {meta} (name TEXT NOT NULL, value TEXT)")
        self.db.execute(
            f"INSERT INTO {meta} VALUES ('EXPORT_SCHEMA_VERSION', ?)", [options.schema + ".0"]
        )
        for name, columns in TABLES.items():
            if name not in ABSENT[options.schema]:
                self.db.execute(f"CREATE TABLE {name} ({columns})")

    def add(self, table: str, rows: list[tuple]) -> None:
        if rows and table not in ABSENT[self.options.schema]:
            marks = ", ".join("?" * len(rows[0]))
            self.db.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)

    def string(self, text: str) -> int:
        if text not in self.strings:
            self.strings[text] = len(self.strings)
            self.add("StringIds", [(self.strings[text], text)])
        return self.strings[text]

    def drop_empty(self) -> None:
        """Tables are made when their first row is: an export has no empty ones."""
        for table in TABLES:
            with contextlib.suppress(sqlite3.OperationalError):
                if not self.db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]:
                    self.db.execute(f"DROP TABLE {table}")


class Rank:
    """One rank's trace, in the times of its host's session."""

    def __init__(self, path: pathlib.Path) -> None:
        opened = gzip.open(path, "rt") if path.suffix == ".gz" else path.open()
        with opened as file:
            self.trace = json.load(file)
        self.base_ns = int(self.trace.get("baseTimeNanoseconds", 0))
        self.host = self.trace.get("host_name", "host")
        self.rank = self.trace["distributedInfo"]["rank"]
        self.size = self.trace["distributedInfo"]["world_size"]
        self.events: list[Event] = self.trace["traceEvents"]
        self.pid = next(e["pid"] for e in self.events if e.get("cat") == "cuda_runtime")

    def of(self, *categories: str) -> Iterator[Event]:
        return (e for e in self.events if e["ph"] == "X" and e.get("cat") in categories)

    def counters(self) -> Iterator[Event]:
        return (e for e in self.events if e["ph"] == "C")


def begin_ns(event: Event) -> int:
    return round(event["ts"] * 1000)


def end_ns(event: Event) -> int:
    return round((event["ts"] + event["dur"]) * 1000)


class Writer:
    """Adds one rank to an export. shift_ns: from the rank's base to the session."""

    def __init__(self, export: Export, rank: Rank, shift_ns: int) -> None:
        self.export, self.rank, self.shift_ns = export, rank, shift_ns
        self.pid = VM | rank.pid << 24

    def times(self, event: Event) -> tuple[int, int]:
        return begin_ns(event) + self.shift_ns, end_ns(event) + self.shift_ns

    def thread(self, event: Event) -> int:
        return VM | event["pid"] << 24 | event["tid"]

    def work(self, event: Event) -> tuple:
        args = event["args"]
        return (*self.times(event), event["pid"], 1, event["tid"], args["correlation"], self.pid)

    def kernels(self) -> None:
        rows = []
        for event in self.rank.of("kernel"):
            args, name = event["args"], event["name"]
            grid, block = args.get("grid", [1, 1, 1]), args.get("block", [1, 1, 1])
            short = name.split("<")[0].split("(")[0].split()[-1]
            ids = self.export.string(name), self.export.string(short)
            rows.append((*self.work(event), *ids, *grid, *block))
        self.export.add("CUPTI_ACTIVITY_KIND_KERNEL", rows)

    def copies(self) -> None:
        kinds = {"HtoD": (1, 1, 2), "DtoH": (2, 2, 1), "DtoD": (8, 2, 2)}
        rows = []
        for event in self.rank.of("gpu_memcpy"):
            kind = next(kind for word, kind in kinds.items() if word in event["name"])
            rows.append((*self.work(event), event["args"]["bytes"], *kind))
        self.export.add("CUPTI_ACTIVITY_KIND_MEMCPY", rows)

    def calls(self) -> None:
        rows = []
        for event in self.rank.of("cuda_runtime", "cuda_driver"):
            name = self.export.string(event["name"] + "_v7000")
            args = event.get("args", {})
            rows.append(
                (
                    *self.times(event),
                    0,
                    self.thread(event),
                    args.get("correlation", 0),
                    name,
                    0,
                    None,
                )
            )
        self.export.add("CUPTI_ACTIVITY_KIND_RUNTIME", rows)

    def range(self, times: tuple, text: str, thread: int, domain: int, payload: tuple) -> tuple:
        json_text, binary = payload
        # Some texts are registered, others are not.
        own, registered = (text, None) if domain == 0 else (None, self.export.string(text))
        fixed = (None, None, None, own, thread, None, registered, domain, json_text, binary)
        return (*times, 59, *fixed)

    def ranges(self) -> None:
        rows = []
        for i, event in enumerate(self.rank.of("cpu_op", "user_annotation")):
            name = event["name"]
            text = f"{name}, op_id = {i + 7}"
            if event["cat"] == "cpu_op" and "::" in name:
                text = f"{name}, seq = {i}, op_id = {i + 7}"
            if name.startswith("ProfilerStep#"):
                text = {"profiler": name, "iteration": "iteration " + name[13:], "none": ""}[
                    self.export.options.steps
                ]
            if text:
                rows.append(
                    self.range(self.times(event), text, self.thread(event), 0, (None, None))
                )
        self.export.add("NVTX_EVENTS", rows)

    def payload(self, schema: int, fields: dict[str, tuple[str, int]]) -> tuple:
        if self.export.options.payload == "none" or self.export.options.schema == "2.9":
            return EMPTY_PAYLOAD
        if self.export.options.payload == "json":
            return json.dumps({name: value for name, (_, value) in fields.items()}), None
        body = struct.pack(
            "<" + "".join(c for c, _ in fields.values()), *(value for _, value in fields.values())
        )
        header = struct.pack("<IIIIQQ", 1, 0, schema, 0, len(body), 32 + len(body))
        return None, header + body

    def communicator(self, members: str, size: int) -> int:
        return int.from_bytes(hashlib.sha256(f"{members} {size}".encode()).digest()[:8], "little")

    def init_range(self, communicator: int, rank: int, size: int, thread: int) -> tuple:
        fields = {
            "NCCL communicator ID": ("Q", communicator),
            "No. of ranks": ("i", size),
            "Rank": ("i", rank),
            "CUDA device": ("i", 0),
        }
        payload = self.payload(16777218, fields)
        return self.range((1, 2), "ncclCommInitRank", thread, NCCL_DOMAIN, payload)

    def nccl(self) -> None:
        launches = {
            e["args"]["correlation"]: e for e in self.rank.of("cuda_runtime") if e.get("args")
        }
        rows, known = [], {"": (self.communicator("world", self.rank.size), self.rank.size)}
        thread = VM | self.rank.pid << 24 | self.rank.pid
        rows.append(
            (
                0,
                None,
                75,
                *[None] * 3,
                None,
                thread,
                None,
                self.export.string("NCCL"),
                NCCL_DOMAIN,
                None,
                None,
            )
        )
        rows.append(self.init_range(known[""][0], self.rank.rank, self.rank.size, thread))
        for event in self.rank.of("kernel"):
            if not event["name"].startswith("nccl"):
                continue
            launch, args = launches[event["args"]["correlation"]], event["args"]
            members = args.get("Process Group Ranks", "")
            size = args.get("Group size", self.rank.size)
            word = next((w for w in CALLS if w in event["name"]), "AllReduce")
            fields = {
                "NCCL communicator ID": ("Q", self.communicator(members or "world", size)),
                "Message size [bytes]": ("Q", self.message(args)),
            }
            begin, end = self.times(launch)
            times = (begin - 500, end + 500)
            payload = self.payload(16777220, fields)
            rows.append(self.range(times, CALLS[word], self.thread(launch), NCCL_DOMAIN, payload))
        self.export.add("NVTX_EVENTS", rows)

    @staticmethod
    def message(args: dict[str, Any]) -> int:
        sizes = {"Float": 4, "BFloat16": 2, "Half": 2, "Long": 8}
        elements = max(args.get("In msg nelems", 0), args.get("Out msg nelems", 0))
        return elements * sizes.get(args.get("dtype", ""), 4)

    def type_id(self, device: int) -> int:
        return 0x1000100000000 | device

    def parts(self, event: Event) -> Iterator[tuple[str, int]]:
        """Percents of the metrics that make up a counter."""
        names = METRICS[event["name"]]
        rest = round(event["args"][event["name"]] * 100)
        for i, name in enumerate(names):
            value = rest if i == len(names) - 1 else rest // 2
            rest -= value
            yield name, value

    def metrics(self) -> None:
        layout = self.export.options.layout
        moments: dict[tuple[int, int], dict[str, int]] = {}
        for event in self.rank.counters():
            if event["name"] in METRICS:
                device = int(event["pid"].split()[1])
                at = begin_ns(event) + self.shift_ns, self.type_id(device)
                moments.setdefault(at, {}).update(self.parts(event))
        if layout == "generic" or self.export.options.schema == "2.9":
            rows = [(at, at, kind, json.dumps(values)) for (at, kind), values in moments.items()]
            self.export.add("GENERIC_EVENTS", rows)
            return
        ids = {name: i for i, name in enumerate(n for names in METRICS.values() for n in names)}
        kinds = {kind for _, kind in moments}
        self.export.add(
            "TARGET_INFO_GPU_METRICS",
            [(kind, 0, "GPU Metrics", i, name) for kind in kinds for name, i in ids.items()],
        )
        self.export.add(
            "GPU_METRICS",
            [
                (at, at, kind, ids[name], value)
                for (at, kind), values in moments.items()
                for name, value in values.items()
            ],
        )

    def cpu_time(self) -> None:
        """Each sample becomes a time on the CPU and one off it."""
        rows, before = [], {}
        for event in self.rank.counters():
            if event["name"] != "cpu_thread":
                continue
            thread, at = self.thread(event), begin_ns(event) + self.shift_ns
            begin = before.get(thread)
            before[thread] = at
            if begin is not None:
                busy = round((at - begin) * event["args"]["cpu_thread"])
                rows += [
                    (begin, 0, 1, thread, None, None),
                    (begin + busy, 0, 0, thread, None, None),
                ]
        self.export.add("SCHED_EVENTS", rows)

    def target(self) -> None:
        devices = sorted({event["pid"] for event in self.rank.of("kernel")})
        name = self.rank.trace["deviceProperties"][0]["name"]
        for device in devices:
            self.export.add("TARGET_INFO_GPU", [(VM, device, name, "", device, device)])
            self.export.add("TARGET_INFO_CUDA_DEVICE", [(device, device, self.rank.pid, "", 132)])
        self.export.add("PROCESSES", [(self.pid, self.rank.pid, "python3")])
        main = VM | self.rank.pid << 24 | self.rank.pid
        self.export.add("ThreadNames", [(self.export.string("python3"), 20, main)])

    def write(self) -> None:
        for part in (self.kernels, self.copies, self.calls, self.ranges, self.nccl):
            part()
        for part in (self.metrics, self.cpu_time, self.target):
            part()


ENTRIES = {
    16777218: [
        (18, "NCCL communicator ID", None),
        (5, "No. of ranks", 8),
        (5, "Rank", 12),
        (5, "CUDA device", 16),
    ],
    16777220: [(18, "NCCL communicator ID", None), (22, "Message size [bytes]", 8)],
}


def write_host(path: pathlib.Path, ranks: list[Rank], options: Options) -> None:
    export = Export(path, options)
    session_ns = min(r.base_ns + min(begin_ns(e) for e in r.events if "ts" in e) for r in ranks)
    session_ns -= 60_000_000_000  # a window is never the beginning of the session
    export.add("TARGET_INFO_SESSION_START_TIME", [(session_ns, "", "")])
    export.add("TARGET_INFO_SYSTEM_ENV", [(VM, "Local (CLI)", "Hostname", 619, ranks[0].host)])
    for schema, entries in ENTRIES.items():
        rows = [
            (NCCL_DOMAIN, schema, i, None, kind, name, None, None, offset)
            for i, (kind, name, offset) in enumerate(entries)
        ]
        export.add("NVTX_PAYLOAD_SCHEMA_ENTRIES", rows)
    for rank in ranks:
        Writer(export, rank, rank.base_ns - session_ns).write()
    export.drop_empty()
    export.db.commit()
    export.db.close()


def convert(job: pathlib.Path, out: pathlib.Path, options: Options) -> list[pathlib.Path]:
    """Writes one database for each host of a job; returns their paths."""
    hosts: dict[str, list[Rank]] = {}
    for path in sorted(job.glob("*.json*")):
        if path.suffixes[-1] != ".sidecar" and path.name != "truth.json":
            rank = Rank(path)
            hosts.setdefault(rank.host, []).append(rank)
    out.mkdir(parents=True, exist_ok=True)
    for host, ranks in hosts.items():
        write_host(out / f"{host}.sqlite", ranks, options)
    return [out / f"{host}.sqlite" for host in hosts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("job", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--schema", choices=sorted(ABSENT), default="3.25")
    parser.add_argument("--layout", choices=("table", "generic"), default="table")
    parser.add_argument("--payload", choices=("binary", "json", "none"), default="binary")
    parser.add_argument("--steps", choices=("profiler", "iteration", "none"), default="iteration")
    given = parser.parse_args()
    options = Options(given.schema, given.layout, given.payload, given.steps)
    for path in convert(given.job, given.out, options):
        print(path)


if __name__ == "__main__":
    main()
