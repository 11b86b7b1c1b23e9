# SPDX-License-Identifier: Apache-2.0
"""Marks iterations from inside DataLoader and Optimizer and carries out orders.

Nothing is loaded, connected or said before the first mark: a launcher that
imports torch, a compiler process or a data-loading child never marks and so
never shows. A forked child is silent. After the first trouble the hook does
nothing more, and no exception of ours leaves this module.
"""

import atexit
import contextlib
import functools
import gc
import os
import sys
import threading
import time
import weakref
from typing import Any, Callable, ContextManager, Dict, List, Optional, Tuple

from perftracker import _agent, _rank
from perftracker._source import SourceError, TorchSource

GC_FLOOR_NS = 100_000
CONNECT_TRIES = 100
EXIT_WAIT_S = 60.0
IDS_MAX = 4096
NESTED_MAX = 16  # steps inside a step that never ended: its exception left the optimizer

FRESH, ACTIVE, DISABLED = "fresh", "active", "disabled"


class _Hook:
    """One per process. Touched by the training thread, except where a line says otherwise."""

    def __init__(self) -> None:
        self.state = FRESH
        self.reason = ""
        self.socket = ""
        self.directory = ""
        self.pid = 0
        self.agent: Any = None
        self.tries = 0
        self.thread = 0  # ident of the training thread; 0 until the first mark
        self.thread_sure = False  # no other thread takes over
        self.loader_seen = False  # since the last step: the next one will come, too
        self.optimizers: List[int] = []  # ids of the steps under way, outermost first
        self.nested = 0
        self.ids: Dict[int, Tuple[Any, int]] = {}
        self.next_id = 0
        self.gc_begin_ns = 0
        self.source: Any = None  # not None: a window is open
        self.pending: Optional[Callable[[], None]] = None
        self.stall_ns = 0
        self.export: Optional[threading.Thread] = None


_hook = _Hook()
_attached = False
_lock = threading.Lock()


def _disable(reason: str) -> None:
    _hook.state = DISABLED
    _hook.reason = _hook.reason or reason


def _silent(function: Callable[..., None]) -> Callable[..., None]:
    """First trouble: disable, and let the job go on."""

    @functools.wraps(function)
    def guarded(*args: Any) -> None:
        if _hook.state is DISABLED:
            return
        try:
            function(*args)
        except Exception as error:
            _disable("%s: %r" % (function.__name__, error))
            _abandon()

    return guarded


def _abandon() -> None:
    """The hook is disabled: leave no profiler running behind it, and tell the daemon."""
    source, _hook.source, _hook.pending = _hook.source, None, None
    try:
        if source is not None:
            source.abort()
        if _hook.agent is not None:
            _hook.agent.disable(_hook.reason.encode("utf-8", "replace"))
    except Exception:  # nothing left to do
        pass


# Marks


def _begin() -> bool:
    """First mark of the process: connect. True once marks go through."""
    if _hook.state is ACTIVE:
        return True
    if _hook.state is DISABLED or _in_loader_process():
        _disable("a data-loading process")
        return False
    if _hook.agent is None:
        _hook.agent = _agent.Agent(_agent.library_path())
    rank, local_rank, world_size = _rank.identity()
    error = _hook.agent.start(os.fsencode(_hook.socket), rank, local_rank, world_size)
    if error == 0:
        _hook.state = ACTIVE
        _hook.pid = os.getpid()
        gc.callbacks.append(_on_gc)
        atexit.register(_on_exit)
        return True
    _hook.tries += 1
    if error != -11 or _hook.tries >= CONNECT_TRIES:  # -EAGAIN: its backlog is full
        _disable("no connection: %s" % os.strerror(-error))
    return False


def _in_loader_process() -> bool:
    data = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


def _is_training_thread(steps: bool) -> bool:
    """The main thread, if that is where the first mark comes from, and else the one that steps.

    A thread that fetches batches ahead gives way to the one with the optimizer.
    Steps in threads of autograd don't take over from a main thread that loads.
    """
    ident = threading.get_ident()
    if ident == _hook.thread:
        _hook.thread_sure = _hook.thread_sure or steps
        return True
    if _hook.thread == 0 or (steps and not _hook.thread_sure):
        _hook.thread = ident
        _hook.thread_sure = steps or ident == threading.main_thread().ident
        return True
    return False


def _mark(mark: int, value: int = 0, detail: int = 0) -> None:
    action = _hook.agent.mark(mark, value, detail)
    if action != _agent.NONE:
        _act(action, mark)


def _small_id(thing: Any) -> int:
    """1, 2, ... in order of appearance; a thing that died gives its address to another."""
    known = _hook.ids.get(id(thing))
    if known is not None and known[0]() is thing:
        return known[1]
    if len(_hook.ids) >= IDS_MAX:
        _hook.ids.clear()
    _hook.next_id = _hook.next_id % 0xFFFF + 1
    try:
        _hook.ids[id(thing)] = (weakref.ref(thing), _hook.next_id)
    except TypeError:  # no weak references to it
        return 0
    return _hook.next_id


@_silent
def _loader_begins(loader_iter: Any) -> None:
    if not _is_training_thread(False) or not _begin():
        return
    _hook.optimizers.clear()
    if _hook.pending is not None:
        _run_pending()
    _hook.loader_seen = True
    _mark(_agent.MARK_DATALOADER, 0, _small_id(getattr(loader_iter, "_dataset", loader_iter)))


@_silent
def _loader_ends(loader_iter: Any, took_ns: int) -> None:
    if _hook.state is ACTIVE and threading.get_ident() == _hook.thread:
        detail = _small_id(getattr(loader_iter, "_dataset", loader_iter))
        _mark(_agent.MARK_DATALOADER_END, took_ns, detail)


@_silent
def _optimizer_begins(optimizer: Any) -> None:
    if not _is_training_thread(True) or not _begin():
        return
    if id(optimizer) in _hook.optimizers:  # its last step was left by an exception
        _hook.optimizers.clear()
    _hook.optimizers.append(id(optimizer))
    if len(_hook.optimizers) == 1:
        _mark(_agent.MARK_OPTIMIZER_BEGIN, 0, _small_id(optimizer))


@_silent
def _optimizer_ends(optimizer: Any) -> None:
    if _hook.state is not ACTIVE or threading.get_ident() != _hook.thread:
        return
    stack = _hook.optimizers
    if id(optimizer) not in stack:
        return
    del stack[stack.index(id(optimizer)) :]
    if stack:  # inside the step of another one, such as a sharding wrapper
        _hook.nested += 1
        if _hook.nested < NESTED_MAX:
            return
        stack.clear()
    _hook.nested = 0
    _mark(_agent.MARK_OPTIMIZER, 0, _small_id(optimizer))
    _hook.loader_seen = False


@_silent
def iteration() -> None:
    if _attached and _is_training_thread(True) and _begin():
        _mark(_agent.MARK_ITERATION)


def _on_gc(phase: str, info: Dict[str, int]) -> None:
    """Runs on whichever thread allocated; the agent drops a mark that collides."""
    try:
        now_ns = time.monotonic_ns()
        if phase == "start":
            _hook.gc_begin_ns = now_ns
        elif _hook.state is ACTIVE and now_ns - _hook.gc_begin_ns >= GC_FLOOR_NS:
            _hook.agent.mark(_agent.MARK_GC, now_ns - _hook.gc_begin_ns, info["generation"])
    except Exception:  # an interpreter that is going down
        pass


# Windows


def _act(action: int, mark: int) -> None:
    """Begin, end and bounds fall where the iteration begins.

    A step's hook runs inside the optimizer's own range, so ours would cross it.
    When the loader is asked next, on this thread, that is the place; a loop
    without a loader has to do it here.
    """
    work = {_agent.BEGIN: _open, _agent.END: _close, _agent.BOUND: _bound}[action]
    if mark == _agent.MARK_OPTIMIZER and _hook.loader_seen:
        _run_pending()
        _hook.pending = work
    else:
        work()


def _run_pending() -> None:
    work, _hook.pending = _hook.pending, None
    if work is not None:
        work()


def _trace_path(agent: Any) -> str:
    rank = _rank.identity()[0]
    name = str(rank) if rank >= 0 else "p%d" % _hook.pid
    return os.path.join(_hook.directory, "%s-%d.json" % (name, agent.order()))


def _open() -> None:
    agent = _hook.agent
    begin_ns = time.monotonic_ns()
    if _hook.export is not None and _hook.export.is_alive():
        agent.missed(b"the trace of the window before is still being saved")
        return
    if not _hook.directory:
        agent.missed(b"PERFTRACKER_DIR is not set")
        return
    if agent.begun() != 0:  # nobody would read it
        return
    source = TorchSource()
    try:
        source.start(_trace_path(agent), _stolen)
    except SourceError as error:
        agent.missed(str(error).encode("utf-8", "replace"))
        return
    _hook.source = source
    source.bound(agent.step())
    _hook.stall_ns = time.monotonic_ns() - begin_ns


def _bound() -> None:
    if _hook.source is not None:
        _hook.source.bound(_hook.agent.step())


def _close(exiting: bool = False) -> None:
    source, _hook.source = _hook.source, None
    if source is None:
        return
    begin_ns = time.monotonic_ns()
    finish = source.stop(exiting)
    path = source._path
    _hook.stall_ns += time.monotonic_ns() - begin_ns
    if exiting:
        _export(finish, path, _hook.stall_ns)
        return
    _hook.export = threading.Thread(
        target=_export, args=(finish, path, _hook.stall_ns), name="perftracker-export", daemon=True
    )
    _hook.export.start()


def _export(finish: Callable[[], int], path: str, stall_ns: int) -> None:
    """On the helper thread; the agent's rare calls are one at a time."""
    try:
        stall_ns += finish()
        _tell(lambda: _hook.agent.done(os.fsencode(path), stall_ns))
    except Exception as error:
        text = ("%s" % error).encode("utf-8", "replace")
        _tell(lambda: _hook.agent.missed(text))


def _tell(send: Callable[[], int]) -> None:
    """The socket may be full for a moment: this thread can wait, the job can't."""
    for _ in range(100):
        if send() != -11:
            return
        time.sleep(0.05)


def _stolen() -> None:
    source, _hook.source = _hook.source, None
    if source is None:
        return
    source.abort()
    _hook.agent.missed(b"the user started a profiler")


def _on_exit() -> None:
    """A window that is open is closed: a short one is better than none."""
    if _hook.state is not ACTIVE or os.getpid() != _hook.pid:
        return
    try:
        _hook.pending = None
        _close(exiting=True)
        if _hook.export is not None:
            _hook.export.join(EXIT_WAIT_S)
        _hook.agent.bye()
    except Exception:  # the exit status is the job's
        pass
    _disable("the interpreter ends")


def _forked_child() -> None:
    _disable("a forked child")
    _hook.source = _hook.pending = None


# Attaching


def attach() -> None:
    """Wraps DataLoader and Optimizer once, when torch is there and a daemon is named."""
    global _attached
    try:
        with _lock:
            socket = os.environ.get("PERFTRACKER_SOCKET")
            if not socket:
                return
            if not _attached:
                _attached = True
                _hook.socket = socket
                _hook.directory = os.environ.get("PERFTRACKER_DIR", "")
                os.register_at_fork(after_in_child=_forked_child)
            _wrap_torch()
    except Exception as error:
        _disable("attach: %r" % error)


def _wrap_torch() -> None:
    if "torch" not in sys.modules:
        return
    from perftracker import _torch

    _torch.wrap(_loader_begins, _loader_ends, _optimizer_begins, _optimizer_ends)


def region(name: str) -> "ContextManager[Any]":
    source = _hook.source
    try:
        if source is not None:
            return source.region(name)
    except Exception as error:
        _disable("region: %r" % error)
    return contextlib.nullcontext()


def status() -> Dict[str, Any]:
    agent = _hook.agent
    return {
        "state": _hook.state if _attached else "inert",
        "reason": _hook.reason,
        "step": agent.step() if agent is not None else 0,
        "order": agent.order() if agent is not None else 0,
        "profiling": _hook.source is not None,
    }
