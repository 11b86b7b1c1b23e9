# SPDX-License-Identifier: Apache-2.0
"""The process that test_pytrace.py traces. Arguments: the probe library, the case.

Exits with 1 and a line that says what was wrong. Runs under every CPython from 3.8 on.
"""

from __future__ import annotations

import asyncio
import collections
import cProfile
import ctypes
import faulthandler
import gc
import io
import os
import pickle
import pstats
import queue
import socket
import subprocess
import sys
import threading
import time
import warnings
import zlib

PYTHON, C_CALL = 42, 43  # enum flight_kind
WHY_SIZE, CAP = 200, 1 << 20
MONITORING = sys.version_info >= (3, 12)
HERE = os.path.abspath(__file__)


class Call(ctypes.Structure):
    """struct probe_call"""

    _fields_ = [
        ("tid", ctypes.c_uint32),
        ("kind", ctypes.c_uint32),
        ("start_ns", ctypes.c_int64),
        ("duration_ns", ctypes.c_int64),
        ("name", ctypes.c_uint32),
    ]


class Probe:
    """The library, called with the interpreter lock held."""

    def __init__(self, path):
        self.lib = ctypes.PyDLL(path)
        self.lib.probe_take.restype = ctypes.c_size_t
        self.lib.probe_string.restype = ctypes.c_size_t
        self.lib.probe_drops.restype = ctypes.c_uint64
        self.lib.probe_short.restype = ctypes.c_uint64
        self.why = ctypes.create_string_buffer(WHY_SIZE)
        self.calls = (Call * CAP)()
        self.names = {}
        err = self.lib.probe_open(self.why, WHY_SIZE)
        check(err == 0, "open: %d %r" % (err, self.why.value))

    def start(self, calls=True):
        """0 or -errno; self.why has the reason."""
        return self.lib.probe_start(int(calls), self.why, WHY_SIZE)

    def begin(self, calls=True):
        """Starts, or the case fails."""
        err = self.start(calls)
        check(err == 0, "start: %d %r" % (err, self.why.value))

    def stop(self):
        """Ends the window."""
        self.lib.probe_stop()

    def take(self):
        """The calls recorded since the last time."""
        overrun = ctypes.c_uint64()
        cnt = self.lib.probe_take(self.calls, CAP, ctypes.byref(overrun))
        return self.calls[:cnt], overrun.value

    def text(self, string):
        """A string of the recorder."""
        text = ctypes.create_string_buffer(512)
        size = self.lib.probe_string(string, text, 512)
        return text.raw[:size].decode()

    def name(self, call):
        """Text of a C function; (file, name, line) of a Python function."""
        key = (call.kind, call.name)
        if key not in self.names:
            if call.kind == C_CALL:
                self.names[key] = self.text(call.name)
            else:
                frame = (ctypes.c_uint32 * 3)()
                self.lib.probe_frame(call.name, frame)
                self.names[key] = (self.text(frame[0]), self.text(frame[1]), frame[2])
        return self.names[key]

    def names_of(self, calls):
        """How often each Python function is among (kind, number of the frame)."""
        names = collections.Counter()
        for (kind, number), cnt in collections.Counter(calls).items():
            if kind == PYTHON:
                names[self.name(Call(kind=kind, name=number))[1]] += cnt
        return names

    def drops(self):
        """(calls of threads without a lane, calls nested too deep)."""
        nested = ctypes.c_uint64()
        return self.lib.probe_drops(ctypes.byref(nested)), nested.value


def check(holds, what):
    """Ends the process unless it holds."""
    if not holds:
        print(what)
        sys.stdout.flush()
        os._exit(1)


def check_nesting(calls, begin_ns=0, end_ns=1 << 62):
    """Two calls of a thread lie one in the other or apart, and all in the window."""
    threads = collections.defaultdict(list)
    for call in calls:
        check(call.duration_ns >= 0, "a call ends before it begins")
        check(begin_ns <= call.start_ns, "a call begins before the window")
        check(call.start_ns + call.duration_ns <= end_ns, "a call ends after the window")
        threads[call.tid].append(call)
    for mine in threads.values():
        ends = []
        for call in sorted(mine, key=lambda c: (c.start_ns, -c.duration_ns)):
            end = call.start_ns + call.duration_ns
            while ends and ends[-1] <= call.start_ns:
                ends.pop()
            check(not ends or end <= ends[-1], "two calls overlap")
            ends.append(end)


# The program that is traced.


def fib(n):
    """Recursion."""
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def produce(n):
    """A generator that sees exceptions thrown into it."""
    got = 0
    for i in range(n):
        try:
            yield i + got
        except KeyError:
            got += 100
    return got


def delegate(n):
    """yield from."""
    result = yield from produce(n)
    yield result


def generators():
    """Generators that end, that are left, closed and thrown at."""
    total = sum(produce(10)) + sum(delegate(5)) + sum(i * i for i in range(4))
    left = produce(5)
    total += next(left)
    left.close()
    thrown = produce(3)
    total += next(thrown) + thrown.throw(KeyError())
    thrown_at = delegate(2)
    total += next(thrown_at)
    try:
        thrown_at.throw(ValueError())
    except ValueError:
        total += 1
    early = produce(2)
    try:
        early.throw(ValueError())
    except ValueError:
        total += 1
    return total


def fail(depth):
    """An exception through several frames."""
    if depth == 0:
        raise ValueError("depth")
    try:
        fail(depth - 1)
    finally:
        fib(2)


def exceptions():
    """Raised, caught in the middle, raised again."""
    seen = 0
    for depth in range(5):
        try:
            fail(depth)
        except ValueError as error:
            seen += len(str(error))
    try:
        {}["no"]
    except KeyError:
        seen += 1
    return seen


class Box:
    """Methods that Python calls from C."""

    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        return self.value < other.value

    @property
    def twice(self):
        """A property."""
        return 2 * self.value

    def __del__(self):
        fib(1)


def from_c():
    """Python functions that C functions call."""
    boxes = sorted(Box(i % 3) for i in range(6))
    return [box.twice for box in boxes] + sorted([3, 1, 2], key=lambda i: -i)


async def waiter(n):
    """A coroutine that is suspended."""
    for _ in range(n):
        await asyncio.sleep(0)
    return n


async def gather():
    """Several coroutines."""
    return await asyncio.gather(*(waiter(i) for i in range(4)))


def in_threads():
    """Threads that start in the window."""
    results = []
    threads = [threading.Thread(target=lambda: results.append(fib(8))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def program():
    """All of it."""
    loop = asyncio.new_event_loop()
    try:
        awaited = loop.run_until_complete(gather())
    finally:
        loop.close()
    arguments = fib(*(10,)), fib(**{"n": 5})
    return fib(10), arguments, generators(), exceptions(), from_c(), awaited, in_threads()


def listed_calls():
    """C functions of the list, once in a loop and from several places."""
    lock = threading.Lock()
    packed = zlib.compress(b"x" * 100)
    for _ in range(5):
        lock.acquire()
        lock.release()
        time.sleep(0)
    for _ in range(3):
        check(len(zlib.decompress(packed)) == 100, "zlib")
    check(pickle.loads(pickle.dumps([1])) == [1], "pickle")
    gc.collect()
    wait = time.sleep
    wait(0)
    simple = queue.SimpleQueue()
    simple.put(1)
    simple.get()
    try:
        zlib.decompress(b"no")
    except zlib.error:
        pass
    a, b = socket.socketpair()
    with a, b:
        a.sendall(b"abc")
        check(b.recv_into(bytearray(3)) == 3, "recv_into")
    file = io.open(HERE, "rb", buffering=0)
    with file:
        file.read(1)


LISTED = {
    "<built-in method acquire of _thread.lock object>": 5,
    "<built-in function sleep>": 6,
    "<built-in function compress>": 1,
    "<built-in function decompress>": 4,
    "<built-in function loads>": 1,
    "<built-in function dumps>": 1,
    "<built-in function collect>": 1,
    "<built-in method get of _queue.SimpleQueue object>": 1,
    "<built-in method sendall of socket object>": 1,
    "<built-in method recv_into of socket object>": 1,
    "<built-in function open>": 1,
    "<built-in method read of _io.FileIO object>": 1,
}


def brute_force():
    """Calls of functions of this file, as a profile function in Python counts them."""
    counts = collections.Counter()

    def count(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename == __file__:
            counts[(code.co_filename, code.co_name, code.co_firstlineno)] += 1

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        result = program()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return counts, result


def case_counts(probe):
    """As many calls as a profile function counts, properly nested."""
    expected, expected_result = brute_force()
    for _ in range(3):
        begin_ns = time.monotonic_ns()
        probe.begin()
        result = program()
        probe.stop()
        calls, overrun = probe.take()
        check(overrun == 0, "the ring is too small for this test")
        check(result == expected_result, "the program's result: %r" % (result,))
        check_nesting(calls, begin_ns, time.monotonic_ns())
        names = [probe.name(call) for call in calls if call.kind == PYTHON]
        counts = collections.Counter(name for name in names if name[0] == __file__)
        for own in (check, Probe.stop):  # of begin() and of the end
            del counts[(__file__, own.__name__, own.__code__.co_firstlineno)]
        check(
            counts == expected,
            "too many: %r, too few: %r" % (counts - expected, expected - counts),
        )
    print("%d calls" % sum(expected.values()))


def case_listed(probe):
    """Listed C functions, with and without Python functions, in each window anew."""
    for round_nr in range(6):
        probe.begin(calls=round_nr % 2 == 0)
        listed_calls()
        probe.stop()
        calls, _ = probe.take()
        check_nesting(calls)
        counts = collections.Counter(probe.name(call) for call in calls if call.kind == C_CALL)
        check(
            {name: counts[name] for name in LISTED} == LISTED,
            "round %d: %r" % (round_nr, counts),
        )
        check(
            any(call.kind == PYTHON for call in calls) == (round_nr % 2 == 0),
            "round %d: Python functions" % round_nr,
        )


def either(function, argument):
    """A place that calls several functions."""
    return function(argument)


def case_shared(probe):
    """A place that first calls a function that is not listed is silent in that window only."""
    for first in (abs, time.sleep, fib, time.sleep):
        probe.begin(calls=False)
        either(first, 0)
        either(time.sleep, 0)
        probe.stop()
        cnt = len(probe.take()[0])
        if first is time.sleep:
            check(cnt == 2, "%d calls after %r" % (cnt, first))
        else:
            check(cnt == (0 if MONITORING else 1), "%d calls after %r" % (cnt, first))


def case_blocking(probe):
    """recv_into that waits for 50 ms."""
    a, b = socket.socketpair()
    ready = threading.Event()
    sent_ns = []

    def send():
        ready.wait()
        time.sleep(0.05)
        sent_ns.append(time.monotonic_ns())
        a.send(b"x")

    thread = threading.Thread(target=send)
    thread.start()
    probe.begin(calls=False)
    ready_ns = time.monotonic_ns()
    ready.set()
    b.recv_into(bytearray(1))
    end_ns = time.monotonic_ns()
    thread.join()
    probe.stop()
    calls = [c for c in probe.take()[0] if "recv_into" in str(probe.name(c))]
    check(len(calls) == 1, "%d calls of recv_into" % len(calls))
    call_end_ns = calls[0].start_ns + calls[0].duration_ns
    check(ready_ns <= calls[0].start_ns <= call_end_ns <= end_ns, "recv_into's place")
    check(call_end_ns >= sent_ns[0] >= ready_ns + 50000000, "recv_into ends before its data come")
    print("recv_into %.1f ms" % (calls[0].duration_ns / 1e6))


def case_windows(probe):
    """80 windows while threads run that were there before."""
    end = threading.Event()
    sums = [0] * 4

    def work(nr):
        while not end.is_set():
            sums[nr] += fib(7) - 13 + generators() - expected

    expected = generators()
    sys.setswitchinterval(0.0005)
    threads = [threading.Thread(target=work, args=(nr,)) for nr in range(4)]
    for thread in threads:
        thread.start()
    seen = collections.Counter()
    for nr in range(80):
        probe.begin(calls=nr % 8 != 7)
        check(fib(5) == 5, "fib")
        time.sleep(0.002)
        probe.stop()
        if nr % 4 == 0:
            calls, _ = probe.take()
            check_nesting(calls)
            seen.update(call.tid for call in calls)
        probe.lib.probe_clear()
    end.set()
    for thread in threads:
        thread.join()
    check(sums == [0] * 4, "results of threads: %r" % sums)
    check(len(seen) == 5, "threads seen: %r" % seen)
    check_clean()
    print("%d calls of %d threads" % (sum(seen.values()), len(seen)))


def case_churn(probe):
    """1000 windows while threads begin and end, of threading and of the C library."""
    end = threading.Event()
    # Several threads count: `+= 1` would lose some, append() does not.
    done = {"libc": [], "threading": [], "both": []}
    libc = ctypes.CDLL(None)

    def work(what):
        check(fib(6) == 8, "fib")
        done[what].append(None)

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    def from_libc(_):
        work("libc")

    def spawn():
        while not end.is_set():
            handle = ctypes.c_ulong()
            check(libc.pthread_create(ctypes.byref(handle), None, from_libc, None) == 0, "thread")
            thread = threading.Thread(target=work, args=("threading",))
            thread.start()
            libc.pthread_join(handle, None)
            thread.join()
            done["both"].append(None)

    spawners = [threading.Thread(target=spawn) for _ in range(3)]
    for spawner in spawners:
        spawner.start()
    for nr in range(1000):
        probe.begin(calls=nr % 8 != 7)
        fib(5)
        time.sleep(0.0002)
        probe.stop()
        if nr % 100 == 0:
            check_nesting(probe.take()[0])
        probe.lib.probe_clear()
    end.set()
    for spawner in spawners:
        spawner.join()
    counts = {what: len(runs) for what, runs in done.items()}
    check(len(set(counts.values())) == 1, "threads: %r" % counts)
    check(counts["both"] > 100, "threads: %r" % counts)
    check_clean()


def check_clean():
    """The tracer has left no function, hook or tool id."""
    check(sys.getprofile() is None and sys.gettrace() is None, "sys has a profile function")
    check(threading._profile_hook is None, "threading has a profile function")
    if MONITORING:
        taken = [i for i in (3, 4) if sys.monitoring.get_tool(i) == "perftracker"]
        check(taken == [], "tool id taken: %r" % taken)


def profile_of(profiler):
    """Calls that cProfile counted."""
    stats = pstats.Stats(profiler, stream=io.StringIO()).stats
    return {key: value[:2] for key, value in stats.items() if key[0] == __file__}


def case_rivals(probe):
    """Other tracers stay in place, and the reason is reported."""

    def refused(what):
        err = probe.start()
        check(err == -16, "%s: start said %d" % (what, err))
        check(len(probe.why.value) > 20, "%s: no reason" % what)
        probe.stop()

    plain, disturbed = cProfile.Profile(), cProfile.Profile()
    plain.enable()
    exceptions()
    plain.disable()
    disturbed.enable()
    refused("cProfile")
    exceptions()
    disturbed.disable()
    expected, found = profile_of(plain), profile_of(disturbed)
    found = {key: value for key, value in found.items() if key in expected}
    check(len(expected) > 2 and found == expected, "cProfile: %r, not %r" % (found, expected))

    def look(*_):
        return None

    for setter, getter in ((sys.setprofile, sys.getprofile), (sys.settrace, sys.gettrace)):
        setter(look)
        refused(setter.__name__)
        check(getter() is look, "%s: taken away" % setter.__name__)
        setter(None)
    threading.setprofile(look)
    refused("threading.setprofile")
    check(threading._profile_hook is look, "threading.setprofile: taken away")
    threading.setprofile(None)
    if not MONITORING:
        rival_in_thread(refused, look)
    else:
        rival_tools(probe, refused)
    probe.begin()
    probe.stop()
    check_clean()


def rival_in_thread(refused, look):
    """A profile function of another thread."""
    ready, end = threading.Event(), threading.Event()
    kept = []

    def profiled():
        sys.setprofile(look)
        ready.set()
        end.wait()
        kept.append(sys.getprofile())
        sys.setprofile(None)

    thread = threading.Thread(target=profiled)
    thread.start()
    ready.wait()
    refused("another thread")
    end.set()
    thread.join()
    check(kept == [look], "another thread: its function is gone")


def rival_tools(probe, refused):
    """Other users of sys.monitoring."""
    monitoring = sys.monitoring
    for tool in (0, 1, 2):
        monitoring.use_tool_id(tool, "rival")
        refused("tool %d" % tool)
        monitoring.free_tool_id(tool)
    monitoring.use_tool_id(3, "neighbor")
    lines = []
    monitoring.register_callback(3, monitoring.events.PY_START, lambda c, _: lines.append(c))
    monitoring.set_events(3, monitoring.events.PY_START)
    probe.begin()
    exceptions()
    probe.stop()
    seen = len(lines)
    exceptions()
    check(len(lines) - seen >= 20 and lines.count(exceptions.__code__) == 2, "the neighbor's calls")
    check(monitoring.get_tool(3) == "neighbor", "the neighbor's id")
    monitoring.set_events(3, 0)
    monitoring.use_tool_id(4, "second")
    refused("two neighbors")
    monitoring.free_tool_id(3)
    monitoring.free_tool_id(4)


def case_replaced(probe):
    """Profile and trace functions that the program sets in the window stay."""
    events = collections.Counter()

    def profile(frame, event, arg):
        events["profile"] += 1

    def trace(frame, event, arg):
        events["trace"] += 1
        return trace

    probe.begin()
    sys.setprofile(profile)
    sys.settrace(trace)
    fib(3)
    probe.stop()
    before = events.copy()
    fib(3)
    check(sys.getprofile() is profile and sys.gettrace() is trace, "functions of the program")
    sys.settrace(None)
    sys.setprofile(None)
    check(all(events[what] > before[what] for what in ("profile", "trace")), "they see nothing")
    probe.begin()
    sys.setprofile(None)
    fib(3)
    probe.stop()
    check_clean()


def case_references(probe):
    """References to code objects, callbacks and None are given back."""
    code = fib.__code__
    for _ in range(3):
        probe.begin()
        fib(3)
        probe.stop()
    counts = sys.getrefcount(code)
    probe.begin()
    fib(3)
    check(sys.getrefcount(code) > counts, "the code object of a traced call is not held")
    probe.stop()
    check(sys.getrefcount(code) == counts, "code object: %d" % (sys.getrefcount(code) - counts))
    rounds, nones = 100, []
    for _ in range(4):  # Python's own caches let go of some at first
        gc.collect()
        nones.append(sys.getrefcount(None))
        for _ in range(rounds):
            probe.begin()
            program()
            probe.stop()
    drift = nones[-1] - nones[-2]
    check(abs(drift) < rounds, "None: %+d in %d windows" % (drift, rounds))


def deep(n):
    """Deeper than is remembered."""
    time.sleep(0)
    return 0 if n == 0 else 1 + deep(n - 1)


def case_limits(probe):
    """Beyond the depth and the number of threads calls are counted, the others stay right."""
    probe.begin()
    deep(600)
    fib(6)
    probe.stop()
    calls, _ = probe.take()
    check_nesting(calls)
    names = collections.Counter(probe.name(call)[1] for call in calls if call.kind == PYTHON)
    check(names["fib"] == 25, "fib: %d" % names["fib"])
    check(names["deep"] == 256, "deep: %d" % names["deep"])
    sleeps = sum(call.kind == C_CALL for call in calls)
    check(sleeps == 255 and probe.drops()[1] == 2 * 601 - 256 - 255, "drops: %d" % probe.drops()[1])
    gate = threading.Barrier(40)
    threads = [threading.Thread(target=lambda: gate.wait() + fib(3)) for _ in range(40)]
    probe.begin()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    probe.stop()
    calls, _ = probe.take()
    check(len({call.tid for call in calls}) <= 32 and probe.drops()[0] > 0, "threads")


def run_outer(n):
    """Calls in calls that take longer than the short ones alone."""
    for _ in range(n):
        run_calls(1000)


def case_many(probe):
    """More calls than the ring holds: the long ones are there, the others are counted."""
    calls = []
    probe.begin()
    for _ in range(10):  # 20000 at a time: the ring holds them
        run_outer(20)
        taken, overrun = probe.take()
        calls += [(call.kind, call.name) for call in taken]
        check(overrun == 0, "%d calls were overwritten" % overrun)
    probe.stop()
    names = probe.names_of(calls)
    check((names["run_outer"], names["run_calls"]) == (10, 200), "the long ones: %r" % names)
    short = probe.lib.probe_short()
    check(short > 0, "no call was left out")
    total = names["empty"] + short
    check(200000 <= total <= 201000, "%d and %d calls" % (names["empty"], short))
    print("%d of 200000 short calls left out" % short)


def case_fork(probe):
    """A child that is forked in a window runs, and is not traced."""
    # Of threads that were joined but that the kernel still counts.
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    probe.begin()
    expected = program()
    pid = os.fork()
    if pid == 0:
        probe.lib.probe_forked()
        same = program() == expected
        if not MONITORING:
            same = same and sys.getprofile() is None
        os._exit(0 if same else 5)
    status = os.waitpid(pid, 0)[1]
    probe.stop()
    check(status == 0, "the child ended with %d" % status)
    check(len(probe.take()[0]) > 100, "the parent's calls")
    run = subprocess.run([sys.executable, "-c", "print(1)"], stdout=subprocess.PIPE, check=True)
    check(run.stdout == b"1\n", "subprocess")


def case_shutdown(probe):
    """The program ends inside the window, with a thread that goes on."""

    def forever():
        while True:
            generators()

    threading.Thread(target=forever, daemon=True).start()
    probe.begin()
    probe.take()
    fib(8)
    keep.append(Box(1))
    print("ok")
    sys.exit(7)


keep = []


def run_calls(n):
    """Calls of an empty Python function."""
    for _ in range(n):
        empty()


def empty():
    """Nothing."""


def run_c_calls(n):
    """Calls of a C function that is not listed."""
    a = abs
    for _ in range(n):
        a(1)


def run_listed(n):
    """Calls of a listed function: no other thread holds the lock."""
    lock = threading.RLock()
    acquire = lock.acquire
    for _ in range(n):
        acquire()


def run_nothing(n):
    """The loop."""
    for _ in range(n):
        pass


def run_encode(n):
    """Generators and small calls: json in Python."""
    from json import encoder

    make = encoder._make_iterencode
    data = [{"a": [i, "x", {"b": None}]} for i in range(n // 100)]
    iterate = make(
        None, lambda o: o, encoder.encode_basestring, None, repr, ":", ",", False, False, False
    )
    collections.deque(iterate(data, 0), maxlen=0)


def case_cost(probe):
    """ns a call: without, with listed C functions only, with all."""
    runs = (run_nothing, run_calls, run_c_calls, run_listed, run_encode)
    modes = (None, False, True)
    n = 20000
    best = {}
    for _ in range(7):
        for mode in modes:
            for run in runs:
                if mode is not None:
                    probe.begin(calls=mode)
                    run(10)
                begin_ns = time.perf_counter_ns()
                run(n)
                took_ns = (time.perf_counter_ns() - begin_ns) / n
                probe.stop()
                key = (run.__name__, mode)
                best[key] = min(took_ns, best.get(key, took_ns))
    parts = []
    for run in runs[1:]:
        off, listed, all_calls = (best[(run.__name__, mode)] for mode in modes)
        parts.append("%s %.0f %+.0f %+.0f" % (run.__name__[4:], off, listed - off, all_calls - off))
    print("ns off, C only, all: " + ", ".join(parts))


def main():
    """One case."""
    faulthandler.enable()
    probe = Probe(sys.argv[1])
    globals()["case_" + sys.argv[2]](probe)
    print("ok")


if __name__ == "__main__":
    main()
