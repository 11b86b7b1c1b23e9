# SPDX-License-Identifier: Apache-2.0
"""The process that test_pystack.py has read: threads at known places, and the reader.

Arguments: the probe library, the case. Prints what the case measured; exits with 1
and a line that says what was wrong. Runs under every CPython from 3.8 on.
"""

import asyncio
import ctypes
import faulthandler
import functools
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

DEPTH, CAP = 1024, 64


class Stack(ctypes.Structure):
    _fields_ = [
        ("tid", ctypes.c_uint32),
        ("depth", ctypes.c_uint32),
        ("truncated", ctypes.c_uint32),
        ("leaf_instr", ctypes.c_uint32),
        ("codes", ctypes.c_size_t * DEPTH),
    ]


class Request(ctypes.Structure):
    _fields_ = [
        ("stacks", ctypes.POINTER(Stack)),
        ("cap", ctypes.c_size_t),
        ("depth", ctypes.c_size_t),
        ("cnt", ctypes.c_size_t),
        ("dropped", ctypes.c_size_t),
    ]


class Code(ctypes.Structure):
    _fields_ = [
        ("file", ctypes.c_char * 256),
        ("name", ctypes.c_char * 128),
        ("first_line", ctypes.c_uint32),
    ]


class Gil(ctypes.Structure):
    _fields_ = [
        ("holder", ctypes.c_uint32),
        ("begin", ctypes.c_size_t),
        ("end", ctypes.c_size_t),
    ]


class Child(ctypes.Structure):
    _fields_ = [
        ("pid", ctypes.c_uint32),
        ("error", ctypes.c_int32),
        ("process_pid", ctypes.c_uint32),
        ("interp", ctypes.c_size_t),
        ("code_type", ctypes.c_size_t),
        ("depth", ctypes.c_uint32),
        ("named", ctypes.c_uint32),
        ("codes", Code * 128),
    ]


class Stats(ctypes.Structure):
    COUNTS = "walks idle unreadable truncated frames named nameless stamps no_gil"
    _fields_ = [(name, ctypes.c_uint64) for name in COUNTS.split()]
    _fields_ += [
        ("root_cnt", ctypes.c_uint64 * 64),
        ("other_roots", ctypes.c_uint64),
        ("root", ctypes.c_size_t * 64),
    ]


probe = ctypes.CDLL(sys.argv[1])  # its functions are called without the GIL
probe_held = ctypes.PyDLL(sys.argv[1])  # with it
probe.probe_cost.restype = ctypes.c_uint64
probe.probe_stamps.restype = ctypes.c_size_t
probe.probe_fuzz.restype = ctypes.c_size_t
probe_held.probe_futex.restype = ctypes.c_size_t


def expect(truth, *what):
    if not truth:
        print("WRONG:", *what)
        sys.stdout.flush()
        os._exit(1)


def open_probe():
    why = ctypes.create_string_buffer(100)
    err = probe_held.probe_open(why, ctypes.c_size_t(100))
    expect(err == 0, "pystack_open", err, why.value)


def sample(depth=DEPTH, cap=CAP):
    """{tid: Stack}, read by a thread that is not Python's."""
    stacks = (Stack * CAP)()
    request = Request(stacks, cap, depth)
    expect(probe.probe_sample(ctypes.byref(request)) == 0, "no thread for the probe")
    return {stack.tid: stack for stack in stacks[: request.cnt]}, request.dropped


def name(code):
    """(file, name, first line) as the probe reads them; None if it can't."""
    read = Code()
    if probe.probe_code(ctypes.c_size_t(code), ctypes.byref(read)) < 0:
        return None
    return read.file.decode(), read.name.decode(), read.first_line


def codes_of(frame):
    codes = []
    while frame is not None:
        codes.append(frame.f_code)
        frame = frame.f_back
    return codes


# Places to park at. Each takes a function that blocks and calls it somewhere deep.


def recursion(block, depth=60):
    return recursion(block, depth - 1) if depth else block()


def deep(block):
    return recursion(block, 600)


def generators(block):
    def inner():
        yield 1
        block()
        yield 2

    def middle():
        yield from inner()

    return sum(x for x in (y for y in middle()))


def comprehension(block):
    return [[{z: block() for z in range(1)} for y in range(1)] for x in range(1)]


def coroutine(block):
    async def leaf():
        await asyncio.sleep(0)
        block()

    async def trunk():
        await leaf()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(trunk())
    loop.close()


def by_lambda(block):
    return (lambda f: f())(block)


def by_exec(block):
    source = "def f\u00e4\u6f22():\n  block()\nclass C:\n  f\u00e4\u6f22()\n"
    exec(compile(source, "<ex\u00e9c \U0001f40d>", "exec"), {"block": block})


def by_c(block):
    def key(_):
        return functools.reduce(lambda a, b: block() or 1, [1, 2])

    return sorted([1], key=key)


def closure(block):
    cell = 1

    def inner(x=cell):
        nonlocal cell
        cell = x
        return block()

    return inner()


def sleeping(_):
    time.sleep(1e5)


def long_name(block):
    scope = {"block": block}
    file = "/" + "d\u00fc" * 300 + "/end.py"
    exec(compile("def %s(): block()" % ("n\u00f6" * 100), file, "exec"), scope)
    scope["n\u00f6" * 100]()


PLACES = [
    recursion, deep, generators, comprehension, coroutine, by_lambda, by_exec, by_c,
    closure, sleeping, long_name,
]  # fmt: skip


class Parked:
    """A daemon thread that waits at a place."""

    def __init__(self, place):
        self.there, self.gate = threading.Event(), threading.Lock()
        self.gate.acquire()
        self.thread = threading.Thread(target=place, args=(self.block,), daemon=True)
        if place is sleeping:
            self.there.set()
        self.thread.start()
        self.there.wait()

    def block(self):
        self.there.set()
        self.gate.acquire()

    def end(self):
        self.gate.release()
        self.thread.join()


def settle(threads):
    """Waits until all of them sleep in the kernel."""
    for thread in threads:
        while True:
            with open("/proc/self/task/%d/stat" % thread.native_id) as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "S":
                    break
            time.sleep(0.001)


def spin(stop):
    """No C function is called: the thread holds the GIL whenever it runs."""
    i = 0
    while not stop:
        i = i + 1 if i < 1000000 else 0


def dumped():
    """{ident: [(file, line, name)]} as faulthandler sees it."""
    with tempfile.TemporaryFile() as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        lines = file.read().decode("ascii").splitlines()
    stacks, stack = {}, []
    for line in lines:
        head = re.match(r"(?:Current thread|Thread) 0x([0-9a-f]+)", line)
        entry = re.match(r'  File "(.*)", line (\d+) in (.*)', line)
        if head:
            stack = stacks.setdefault(int(head.group(1), 16), [])
        elif entry:
            stack.append((entry.group(1), int(entry.group(2)), entry.group(3)))
    return stacks


def unescaped(text):
    """faulthandler writes what is not ASCII as escapes and cuts at 500 characters."""
    return text.encode("ascii").decode("unicode_escape") if "\\" in text else text


def shortened(text, size, keep_end):
    data = text.encode()
    data = data[max(len(data) - size, 0) :] if keep_end else data[:size]
    return data.decode("utf-8", "ignore")


def line_of(code, instr):
    """The line of a bytecode instruction."""
    import dis

    line = None
    for begin, number in dis.findlinestarts(code):
        if begin > instr:
            break
        line = number if number is not None else line
    return line


def compare(thread, stack, frames, dump):
    frame = frames[thread.ident]
    codes = codes_of(frame)
    where = thread._target.__name__
    expect(not stack.truncated, where, "truncated")
    expect([id(c) for c in codes] == stack.codes[: stack.depth], where, "frames",
           [name(c) for c in stack.codes[: stack.depth]], codes)  # fmt: skip
    expect(line_of(codes[0], stack.leaf_instr) == frame.f_lineno, where, "line of the leaf",
           stack.leaf_instr, frame.f_lasti, frame.f_lineno)  # fmt: skip
    for code in codes:
        wanted = (
            shortened(code.co_filename, 255, True),
            shortened(code.co_name, 127, False),
            code.co_firstlineno,
        )
        expect(name(id(code)) == wanted, where, "names", name(id(code)), wanted)
    for code, (_, _, dumped_name) in zip(codes, dump):  # noqa: B905 - 3.8 has no strict
        if "..." not in dumped_name:
            expect(unescaped(dumped_name) == code.co_name, where, "faulthandler", dumped_name, code)
    expect(len(dump) == min(len(codes), 100), where, "depth of faulthandler", len(dump))


def stacks():
    parked = [Parked(place) for place in PLACES]
    threads = [p.thread for p in parked]
    settle(threads)
    frames, dump = sys._current_frames(), dumped()
    found, dropped = sample()
    expect(dropped == 0, "dropped", dropped)
    own = threading.current_thread()
    expect(set(found) == {t.native_id for t in [*threads, own]}, "threads", sorted(found))
    for thread in threads:
        compare(thread, found[thread.native_id], frames, dump[thread.ident])
    # The main thread waits in ctypes, some frames above this one.
    mine = [id(c) for c in codes_of(sys._getframe())]
    stack = found[own.native_id]
    expect(stack.codes[: stack.depth][-len(mine) :] == mine, "the main thread")
    limits(found)
    checks()
    stale(found)
    for one in parked:
        if one.thread._target is not sleeping:
            one.end()
    left, _ = sample()
    expect(len(left) == 2, "threads that ended are still there", len(left))


def limits(found):
    """Less room: the innermost frames, and the threads that fit."""
    some, dropped = sample(128, 3)
    expect(len(some) == 3 and dropped == len(found) - 3, "cap of threads", len(some), dropped)
    short, _ = sample(128)
    for tid, stack in short.items():
        full = found[tid]
        expect(stack.truncated == (full.depth > 128), "truncated", stack.truncated, full.depth)
        if tid != threading.get_native_id():
            expect(stack.codes[: stack.depth] == full.codes[: min(full.depth, 128)], "cut")


def checks():
    codes = [id(c) for c in codes_of(sys._getframe())]
    array = (ctypes.c_size_t * len(codes))(*codes)
    expect(probe_held.probe_check(array, ctypes.c_size_t(len(codes))) == 0, "pystack_check")
    array[0] += 16
    expect(probe_held.probe_check(array, ctypes.c_size_t(len(codes))) < 0, "pystack_check is blind")
    expect(probe_held.probe_check(array, ctypes.c_size_t(len(codes) - 1)) < 0, "check of the depth")

    def deep_check(depth):
        if depth:
            return deep_check(depth - 1)
        codes = [id(c) for c in codes_of(sys._getframe())]
        array = (ctypes.c_size_t * len(codes))(*codes)
        return probe_held.probe_check(array, ctypes.c_size_t(len(codes)))

    expect(deep_check(300) == 0, "pystack_check of a deep stack")


def stamps_of(codes):
    array, stamps = (ctypes.c_size_t * len(codes))(*codes), (ctypes.c_uint64 * len(codes))()
    count = probe.probe_stamps(array, ctypes.c_size_t(len(codes)), stamps)
    expect(count == sum(stamp != 0 for stamp in stamps), "count of stamps", count)
    return list(stamps)


def stale(found):
    """Stamps distinguish code objects; other addresses have no stamp."""
    codes = sorted({c for s in found.values() for c in s.codes[: s.depth]})
    stamps = stamps_of(codes)
    # Two comprehensions on one line have one name, and one stamp.
    expect(0 not in stamps, "no stamp", stamps)
    expect(len(set(stamps)) == len({name(c) for c in codes}), "stamps", len(set(stamps)))
    expect(stamps == stamps_of(codes), "stamps change")
    text = "no code"
    junk = [8, id(text), 2**47 - 8, 2**63, 0, codes[0], id(text) + 4]
    expect(stamps_of(junk * 30) == [0, 0, 0, 0, 0, stamps[0], 0] * 30, "stamps of junk")
    expect([name(j) is None for j in junk] == [j != codes[0] for j in junk], "names of junk")


def hammered():
    """Everything that moves, for as long as HAMMER_S says."""
    # What a stack may end in: code where threads begin. Anything else was torn.
    roots = {id(threading.Thread._bootstrap.__code__): "thread"}
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
    roots[id(frame.f_code)] = "main"
    kept = []
    until = time.monotonic() + float(os.environ.get("HAMMER_S", "1"))
    stop = []

    def grow():
        while not stop:
            recursion(lambda: None, 5)
            recursion(lambda: generators(lambda: None), 90)
            recursion(lambda: None, 300)

    def codes():
        i = 0
        while not stop:
            scope = {}
            exec("def f%d(g): return [g() for x in range(9)]" % i, scope)
            scope["f%d" % i](lambda: sorted([2, 1], key=lambda x: x))
            kept.append(scope) if i % 7 == 0 else None
            del kept[: len(kept) - 50]
            i += 1

    def brief():
        recursion(lambda: None, 3)

    def raising():
        def fail(depth):
            if depth == 0:
                raise ValueError
            fail(depth - 1)

        while not stop:
            try:
                fail(20)
            except ValueError:
                pass

    def births():
        while not stop:
            some = [threading.Thread(target=brief) for _ in range(8)]
            [t.start() for t in some]
            [t.join() for t in some]

    def coroutines():
        while not stop:
            coroutine(lambda: None)

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    threads = [
        threading.Thread(target=t) for t in (grow, codes, births, raising, coroutines, brief)
    ]
    expect(probe.probe_hammer(0) == 0, "no hammer")
    [t.start() for t in threads]
    while time.monotonic() < until:
        comprehension(lambda: time.sleep(0.001))
    stop.append(1)
    [t.join() for t in threads]
    sys.setswitchinterval(switch)
    stats = Stats()
    probe.probe_hammer_end(ctypes.byref(stats))
    strange = stats.other_roots
    for code, count in zip(stats.root, stats.root_cnt):  # noqa: B905
        if code and code not in roots:
            strange += count
    full = stats.walks - stats.idle - stats.unreadable
    print(
        "%d walks, mean depth %.0f, truncated %d, idle %d, unreadable %d, torn root %d, nameless %d"
        % (
            stats.walks,
            stats.frames / max(full, 1),
            stats.truncated,
            stats.idle,
            stats.unreadable,
            strange,
            stats.nameless,
        )
    )
    expect(full > stats.walks / 2, "too few were readable")
    expect(strange <= full / 1000, "roots that are none")
    expect(stats.nameless <= full / 20, "code objects without a name")
    expect(stats.stamps > stats.frames * 0.95, "code objects that are none", stats.stamps)


def hammer():
    hammered()


def shutdown():
    """The reader goes on until after the interpreter is gone."""
    for place in (recursion, generators, by_c):
        Parked(place)
    expect(probe.probe_hammer(0) == 0, "no hammer")
    for _ in range(20):
        brief = threading.Thread(target=recursion, args=(lambda: None, 10))
        brief.start()
        brief.join()


def read_gil(library, later_us):
    state = Gil()
    expect(library.probe_gil(ctypes.byref(state), later_us) == 0, "pystack_gil")
    return state


def waits_for_gil(state, thread, tries):
    """Whether the thread waits for the GIL, which a C function of this thread keeps."""
    for _ in range(tries):
        futex = probe_held.probe_futex(thread.native_id, 5000)
        if state.begin <= futex < state.end:
            return True
    return False


def gil():
    stop = []
    spinners = [threading.Thread(target=spin, args=(stop,)) for _ in range(2)]
    parked = Parked(recursion)
    [spinner.start() for spinner in spinners]
    settle([parked.thread])
    tids = {spinner.native_id for spinner in spinners}
    holders = [read_gil(probe, 2000).holder for _ in range(100)]
    expect(set(holders) <= {0, *tids}, "holders", holders)
    expect(sum(holder in tids for holder in holders) > 50, "no thread held the GIL", holders)
    state = read_gil(probe_held, 0)
    expect(state.holder == threading.get_native_id(), "own GIL", state.holder)
    for spinner in spinners:
        # On a busy machine it may need a while to get there.
        expect(waits_for_gil(state, spinner, 1000), "does not wait for the GIL")
    expect(not waits_for_gil(state, parked.thread, 5), "another lock taken for the GIL")
    stop.append(1)
    [spinner.join() for spinner in spinners]
    parked.end()


def forked():
    """A child reads nothing, above all not its parent; opened anew it reads itself."""
    parked = Parked(recursion)
    settle([parked.thread])
    child = os.fork()
    if child == 0:
        expect(sample() == ({}, 0), "the child reads")
        expect(name(id(forked.__code__)) is None, "the child names")
        expect(probe.probe_gil(ctypes.byref(Gil()), 0) < 0, "the child sees a GIL")
        open_probe()
        found, _ = sample()
        expect(list(found) == [threading.get_native_id()], "the child's threads", found)
        checks()
        os._exit(0)
    expect(os.waitpid(child, 0)[1] == 0, "the child failed")
    parked.end()


def read_child(child):
    """Names of the functions of a child's main thread, the outermost first; [] if unreadable."""
    expect(probe.probe_child(ctypes.byref(child)) == 0, "no thread for the probe")
    if child.error != 0 or child.named != child.depth:
        return []
    return [code.name.decode() for code in child.codes[: child.depth]]


def await_child(pid, wanted):
    """The child, once its main thread is in that function."""
    child, deadline = Child(pid), time.monotonic() + 60
    while time.monotonic() < deadline:
        names = read_child(child)
        if names and names[-1].rsplit(".", 1)[-1] == wanted:
            return child, names
        time.sleep(0.01)
    return expect(False, "child", pid, child.error, child.depth, child.named, names)


def sleeps_in_child(seconds=1e5):
    time.sleep(seconds)


def children():
    """Main threads of children are read, however multiprocessing starts them."""
    own = {}
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        processes = [context.Process(target=sleeps_in_child, daemon=True) for _ in range(2)]
        [process.start() for process in processes]
        for process in processes:
            child, names = await_child(process.pid, "sleeps_in_child")
            expect([n.rsplit(".", 1)[-1] for n in names[-3:-1]] == ["_bootstrap", "run"], names)
            begun = [n for n in names if n in ("spawn_main", "<module>")]
            expect(("spawn_main" in begun) == (method == "spawn"), method, names)
            own[process.pid] = child.interp, child.code_type
            # What is known of one process is not taken for another one's.
            expect(name(id(sleeps_in_child.__code__))[1] == "sleeps_in_child", "own name")
        checks()
        [process.terminate() for process in processes]
        [process.join() for process in processes]
        expect(probe.probe_child(ctypes.byref(child)) == 0 and child.error < 0, "ended", method)
    places = list(own.values())
    expect(places[0] == places[1], "forked children differ", places)
    moved = [place[1] != places[0][1] for place in places[2:]]
    print("code at other addresses in %d of 4 fresh children" % sum(moved))


def strangers():
    """A child that runs no Python, and one of another interpreter, have no stack."""
    echo = "import sys; sys.stdout.write('1'); sys.stdout.flush(); sys.stdin.read()"
    for command in (["cat"], [os.environ["OTHER_PYTHON"], "-c", echo]):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdin.write(b"1")
        process.stdin.flush()
        process.stdout.read(1)
        for _ in range(10):
            expect(read_child(Child(process.pid)) == [], "a stranger has a stack", command)
        process.kill()
        process.wait()


def forbidden():
    """Where process_vm_readv is refused /proc/self/mem serves."""
    expect(probe.probe_forbid() == 0, "no seccomp")
    open_probe()
    stacks()


def fuzz():
    """Garbage where a thread should be gives no stack, or one of real code, but no crash."""
    parked = Parked(by_exec)
    settle([parked.thread])
    rounds = 5000
    found = probe.probe_fuzz(parked.thread.native_id, ctypes.c_size_t(rounds))
    print("%d of %d spoilt threads still had a stack" % (found, rounds))
    expect(0 < found <= rounds, "all or none")
    parked.end()


def cost():
    # 33 frames below the one of the lock: _bootstrap, _bootstrap_inner, run, 30 of this file.
    def place(block):
        recursion(lambda: block(), 26)

    parked = Parked(place)
    settle([parked.thread])
    tid = parked.thread.native_id
    found, _ = sample()
    ns = [probe.probe_cost(tid, ctypes.c_size_t(50), ctypes.c_bool(s)) for s in (False, True)]
    print("%d frames: walk %.1f us, with stamps %.1f us" % (
        found[tid].depth, ns[0] / 1000, ns[1] / 1000))  # fmt: skip
    parked.end()


CASES = [stacks, hammer, shutdown, gil, forked, children, strangers, forbidden, fuzz, cost]


def main():
    case = {c.__name__: c for c in CASES}[sys.argv[2]]
    if case is not forbidden:
        open_probe()
    case()
    print("ok")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
