# SPDX-License-Identifier: Apache-2.0
"""Training processes with the hook into torch. Argument: which; prints what was recorded, as JSON.

PERFTRACKER_PROBE is the library made of tests/agent/torchops_probe.c.
"""

import collections
import ctypes
import json
import os
import sys
import threading
import time
import warnings
from typing import Any, Callable, Dict, List, NamedTuple

warnings.simplefilter("ignore")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

LANES = 32
OPERATOR, ANNOTATION, COLLECTIVE, COLLECTIVE_ARGS, COLLECTIVE_GROUP = range(37, 42)


class RawRecord(ctypes.Structure):
    _fields_ = [
        ("time_ns", ctypes.c_int64),
        ("value", ctypes.c_int64),
        ("seq", ctypes.c_uint32),
        ("kind", ctypes.c_uint16),
        ("detail", ctypes.c_uint16),
        ("extra", ctypes.c_uint64),
    ]


class Op(NamedTuple):
    tid: int
    kind: int
    name: str
    start: int
    end: int
    elements: int  # -1: unknown


class Collective(NamedTuple):
    tid: int
    name: str
    start: int
    end: int
    bytes: int
    seq: int
    size: int
    group: str
    collective: str
    first_rank: int
    rank_stride: int


def elements(code: int) -> int:
    """As model/elements.h has them."""
    bits = code - 1
    return bits if bits < 1024 else (1024 + bits % 1024) << (bits // 1024 - 1)


class Probe:
    def __init__(self) -> None:
        self.lib = ctypes.CDLL(os.environ["PERFTRACKER_PROBE"])
        self.lib.probe_records.restype = ctypes.c_size_t
        self.lib.probe_string.restype = ctypes.c_size_t
        self.lib.probe_nested.restype = ctypes.c_uint64
        self.lib.probe_now_ns.restype = ctypes.c_int64
        self.buffer = (RawRecord * 32768)()

    def open(self, version: str = torch.__version__) -> str:
        why = ctypes.create_string_buffer(124)
        error = self.lib.probe_open(version.encode(), why, ctypes.c_size_t(len(why)))
        return "%d %s" % (error, why.value.decode()) if error else ""

    def check(self, call: Callable[[], Any]) -> str:
        why = ctypes.create_string_buffer(124)
        assert self.lib.probe_check_begin() == 0
        call()
        error = self.lib.probe_check_end(why, ctypes.c_size_t(len(why)))
        return "%d %s" % (error, why.value.decode()) if error else ""

    def watch(self, on: bool) -> None:
        self.lib.probe_window(on)
        assert self.lib.probe_operators(on) == 0

    def string(self, number: int) -> str:
        text = ctypes.create_string_buffer(512)
        size = self.lib.probe_string(number, text, ctypes.c_size_t(len(text)))
        return text.raw[:size].decode()

    def raw(self, lane: int, window: bool) -> List[RawRecord]:
        count = self.lib.probe_records(
            lane, window, ctypes.byref(self.buffer), ctypes.c_size_t(len(self.buffer))
        )
        return list(self.buffer[:count])

    def ops(self) -> List[Op]:
        found = []
        for lane in range(LANES):
            tid = self.lib.probe_lane_tid(lane)
            for r in self.raw(lane, True) if tid else []:
                end, code = r.time_ns + r.value, elements(r.detail)
                found.append(Op(tid, r.kind, self.string(r.extra), r.time_ns, end, code))
        return sorted(found, key=lambda op: (op.tid, op.start, -op.end))

    def collectives(self) -> List[Collective]:
        found = []
        for lane in range(LANES):
            tid = self.lib.probe_lane_tid(lane)
            records = self.raw(lane, False) if tid else []
            assert len(records) % 3 == 0
            for at in range(0, len(records), 3):
                c, args, group = records[at : at + 3]
                assert (c.kind, args.kind, group.kind) == (
                    COLLECTIVE,
                    COLLECTIVE_ARGS,
                    COLLECTIVE_GROUP,
                )
                found.append(
                    Collective(
                        tid,
                        self.string(c.extra),
                        c.time_ns,
                        c.time_ns + c.value,
                        args.value,
                        ctypes.c_int64(args.extra).value,
                        group.value >> 32,
                        self.string(group.value & 0xFFFFFFFF),
                        self.string(group.extra),
                        args.detail,
                        group.detail,
                    )
                )
        return sorted(found, key=lambda c: c.start)


def paths(ops: Any) -> Dict[str, int]:
    """How often each chain of operators was seen, such as "aten::linear/aten::addmm".

    ops: tuples of thread, name, start and end, sorted by thread and start, outer ones first.
    """
    counts: Dict[str, int] = collections.Counter()
    stack: List[Any] = []
    for thread, name, start, end in ops:
        while stack and (stack[-1][0] != thread or stack[-1][2] < end or stack[-1][2] <= start):
            stack.pop()
        stack.append((thread, name, end))
        counts["/".join(entry[1] for entry in stack)] += 1
    return counts


def mlp() -> Callable[[], None]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 8)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = torch.randn(16, 32)

    def step() -> None:
        with torch.autograd.profiler.record_function("forward"):
            loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(3):
        step()
    return step


def profiled(step: Callable[[], None]) -> Dict[str, int]:
    """The same paths from torch's own profiler, with the events that it would merge."""
    torch.autograd.profiler_util.EventList._remove_dup_nodes = lambda self: None
    with torch.autograd.profiler.profile(use_kineto=False) as profile:
        step()
    counts: Dict[str, int] = collections.Counter()
    for event in profile.function_events:
        names = []
        while event is not None:
            names.append(event.name)
            event = event.cpu_parent
        counts["/".join(reversed(names))] += 1
    return counts


def job_step(probe: Probe) -> Any:
    """One step, as the hook sees it and as torch's own profiler does."""
    step = mlp()
    probe.watch(True)
    step()
    probe.watch(False)
    step()  # not seen
    ops = probe.ops()
    return {
        "ours": paths((op.tid, op.name, op.start, op.end) for op in ops),
        "torch": profiled(step),
        "kinds": {op.name: op.kind for op in ops},
        "threads": len({op.tid for op in ops}),
        "shortest": min(op.end - op.start for op in ops),
        "nested": probe.lib.probe_nested(),
    }


def job_elements(probe: Probe) -> Any:
    """Operators whose arguments are known, first read through the kernel, then by plain loads."""
    a, b, bias = torch.zeros(10, 20), torch.zeros(20, 30), torch.zeros(30)
    image, filters = torch.zeros(2, 3, 8, 8), torch.zeros(5, 3, 3, 3)
    rounds = []
    with torch.no_grad():
        for _ in range(20):
            probe.watch(True)
            torch.mm(a, b)
            torch.addmm(bias, a, b)
            torch.nn.functional.conv2d(image, filters)  # no bias: an undefined tensor inside
            torch.cat([a, a])
            torch.zeros(7)
            a.to_sparse().to_dense()
            torch.mm(a, b)
            probe.watch(False)
        rounds = [(op.name, op.elements) for op in probe.ops() if op.kind == OPERATOR]
    size = len(rounds) // 20
    return {"first": rounds[:size], "last": rounds[-size:]}


def job_threads(probe: Probe) -> Any:
    """A backward pass on a thread of the program."""
    step = mlp()
    tids: List[int] = []

    def run() -> None:
        tids.append(threading.get_native_id())
        step()

    thread = threading.Thread(target=run)
    probe.watch(True)
    thread.start()
    thread.join()
    probe.watch(False)
    ops = probe.ops()
    here = [op for op in ops if op.tid == tids[0]]
    return {
        "elsewhere": len(ops) - len(here),
        "ours": paths((op.tid, op.name, op.start, op.end) for op in here),
        "torch": profiled(step),
    }


def job_names(probe: Probe) -> Any:
    """Scopes whose names are gone when they end; the loop reuses their memory."""
    probe.watch(True)
    for i in range(200):
        with torch.autograd.profiler.record_function("scope %d %s" % (i, "x" * (i % 50))):
            bytes(64)
    probe.watch(False)
    return [op.name for op in probe.ops() if op.kind == ANNOTATION]


def job_nothing_without_window(probe: Probe) -> Any:
    """Only collectives are watched: neither operators nor scopes of the user are written."""
    probe.lib.probe_collectives(True)
    step = mlp()
    step()
    return {"ops": len(probe.ops()), "collectives": len(probe.collectives())}


def job_hooks(probe: Probe) -> Any:
    """Whether torch itself has a callback: before, while and after each thing is watched."""
    # A library of torch's: symbols are looked up in all that it needs.
    has = ctypes.CDLL(torch._C.__file__)["_ZN2at18hasGlobalCallbacksEv"]
    has.restype = ctypes.c_bool
    seen = [has()]
    for switch in (probe.lib.probe_collectives, probe.lib.probe_operators):
        for on in (True, False):
            assert switch(on) == 0
            seen.append(has())
    probe.check(lambda: torch.empty(0))
    seen.append(has())
    return seen


def job_exceptions(probe: Probe) -> Any:
    """Operators that throw, and what follows them."""
    a, b = torch.zeros(2, 3), torch.zeros(2, 3)
    failed = 0
    probe.watch(True)
    for _ in range(100):
        try:
            with torch.autograd.profiler.record_function("throws"):
                torch.mm(a, b)
        except RuntimeError:
            failed += 1
        torch.add(a, b)
    probe.watch(False)
    ops = probe.ops()
    return {"failed": failed, "paths": paths((o.tid, o.name, o.start, o.end) for o in ops)}


def job_on_off(probe: Probe) -> Any:
    """The hook set and removed while another thread is inside operators."""
    done = threading.Event()
    rounds = [0]

    def run() -> None:
        x = torch.ones(8)
        while not done.is_set():
            with torch.autograd.profiler.record_function("round"):
                (x + x).sum()
            rounds[0] += 1

    thread = threading.Thread(target=run)
    thread.start()
    for i in range(1000):
        probe.lib.probe_collectives(i % 3 == 0)
        probe.watch(i % 2 == 0)
        if i % 50 == 0:
            seen = rounds[0]
            while rounds[0] == seen:
                time.sleep(0)
    done.set()
    thread.join()
    probe.watch(False)
    # Is it whole?
    probe.watch(True)
    torch.zeros(3).add(1)
    probe.watch(False)
    last = [op.name for op in probe.ops() if op.tid == threading.get_native_id()]
    names = {op.name for op in probe.ops()}
    return {"rounds": rounds[0], "names": sorted(names), "last": last[-3:]}


def job_fork(probe: Probe) -> Any:
    """A child in the middle of a scope runs operators; nothing of it is written."""
    probe.lib.probe_collectives(True)
    probe.watch(True)
    with torch.autograd.profiler.record_function("parent"):
        torch.zeros(3).add(1)
        pid = os.fork()
        if pid == 0:
            with torch.autograd.profiler.record_function("gloo:child"):
                torch.zeros(3).mul(2)
            os._exit(0)
    status = os.waitpid(pid, 0)[1]
    probe.watch(False)
    return {
        "status": status,
        "names": [op.name for op in probe.ops()],
        "collectives": [c.name for c in probe.collectives()],
    }


def job_nesting(probe: Probe) -> Any:
    """100 scopes in one another: 64 are remembered."""

    def nest(depth: int) -> None:
        if depth > 0:
            with torch.autograd.profiler.record_function("depth"):
                nest(depth - 1)

    probe.watch(True)
    nest(100)
    nest(1)
    probe.watch(False)
    scopes = [op for op in probe.ops() if op.kind == ANNOTATION]
    return {"scopes": len(scopes), "nested": probe.lib.probe_nested()}


def job_check(probe: Probe) -> Any:
    return {
        "right": probe.check(lambda: torch.empty(0)),
        "again": probe.check(lambda: torch.empty(0)),
        "nothing": probe.check(lambda: None),
        "other": probe.check(lambda: torch.zeros(1)),
        "twice": probe.check(lambda: (torch.empty(0), torch.empty(0))),
    }


def job_versions(probe: Probe) -> Any:
    answers = {}
    for version in ("2.16.0+cu130", "3", "", "x.y", "2.13.0+cpu"):
        answers[version] = probe.open(version)
    os.environ["PERFTRACKER_OPERATORS"] = "force"
    ctypes.CDLL(None).setenv(b"PERFTRACKER_OPERATORS", b"force", 1)
    answers["forced"] = probe.open("2.16.0+cu130")
    return answers


def job_ddp(probe: Probe) -> Any:
    """One rank of two."""
    probe.lib.probe_collectives(True)
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1000, 10))
    for _ in range(10):
        model(torch.randn(4, 1000)).sum().backward()
    before = len(probe.collectives())
    handle = dist.all_reduce(torch.zeros(7, dtype=torch.float64), async_op=True)
    handle.wait()
    dist.barrier()
    dist.destroy_process_group()
    found = probe.collectives()
    return {
        "collectives": found,
        "before": before,
        "now": probe.lib.probe_now_ns(),
        "nested": probe.lib.probe_nested(),
    }


def comms_library() -> Any:
    """A back end that describes its collectives: tests/agent/jobs/param_comms.cc."""
    return ctypes.CDLL(os.environ["PERFTRACKER_PARAM_COMMS"])


def job_comms(probe: Probe) -> Any:
    """Collectives with a description, at the right offsets and at wrong ones."""
    library = comms_library()
    assert probe.lib.probe_collectives(True) == 0
    libtorch = next(
        line.split()[-1] for line in open("/proc/self/maps") if "/libtorch_cpu.so" in line
    )
    library.collective(b"default_pg", 1000, False)
    library.collective(b"a group with quite a long name", 5, True)
    wrong = [*range(-8, 0), *range(1, 64)]
    for by in wrong:
        probe.lib.probe_shift_layout(torch.__version__.encode(), libtorch.encode(), by)
        library.collective(b"default_pg", 1000, False)
    found = probe.collectives()
    return {"right": found[:2], "shifts": wrong, "wrong": found[2:]}


def interleaved(variants: Dict[str, Callable[[bool], None]], ops: int, body: Callable[[], None]):
    times: Dict[str, List[float]] = collections.defaultdict(list)
    for _ in range(31):
        for name, switch in variants.items():
            switch(True)
            body()
            start = time.perf_counter_ns()
            body()
            times[name].append((time.perf_counter_ns() - start) / ops)
            switch(False)
    return {name: round(sorted(values)[len(values) // 2], 1) for name, values in times.items()}


def job_cost(probe: Probe) -> Any:
    """ns per operator: medians of interleaved runs."""
    a = torch.zeros(1)

    def operators() -> None:
        for _ in range(10000):
            a.add_(a)  # one operator, without any in it

    def scopes() -> None:
        for _ in range(2000):
            with torch.autograd.profiler.record_function("user"):
                pass

    step = mlp()
    variants = {
        "off": lambda on: None,
        "collectives": lambda on: probe.lib.probe_collectives(on),
        "operators": probe.watch,
    }
    found = {"step": interleaved(variants, 1, step)}
    with torch.no_grad():
        found["operator"] = interleaved(variants, 10000, operators)
        found["scope"] = interleaved(variants, 2000, scopes)
    return found


def main() -> None:
    torch.set_num_threads(1)
    probe = Probe()
    name = sys.argv[1]
    if name != "versions":
        why = probe.open()
        assert not why, why
    json.dump(globals()["job_" + name](probe), sys.stdout)
    sys.stdout.flush()
    if name == "ddp":
        # A thread of gloo that drops a Python tensor waits for the interpreter's lock; when
        # Python comes to its end meanwhile, torch aborts the process.
        os._exit(0)


if __name__ == "__main__":
    main()
