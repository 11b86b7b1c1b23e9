# SPDX-License-Identifier: Apache-2.0
"""Attaches the agent to DataLoader, Optimizer, backward and jax.jit, and carries out orders.

Nothing is loaded, connected or sent before the first mark: a launcher that
imports torch, a compiler process or a data-loading child never marks and so
never appears. From the first mark on, marks are C functions of the agent library
(src/agent/core/hook.h); this module is called again only when a window
begins or ends. A child forked from a process that marks is disabled; one forked
before the first mark, as a rank may be, is a worker of its own. After the first
error the hook is disabled, and no exception of the hook's leaves this module.
"""

import atexit
import contextlib
import functools
import gc
import os
import sys
import threading
import time
from typing import Any, Callable, ContextManager, Dict, List, Optional

from perftracker import _agent, _fleet, _rank, _signals
from perftracker._source import (
    AgentSource,
    SourceError,
    TorchSource,
    YieldError,
    has_device,
    profiles,
)

CONNECT_TRIES = 100
DISPATCHES_MIN = 4  # calls of compiled functions, of which a script that trains nothing has few
CHILDREN_MAX = 64  # of loaders, started before the first mark: the newest are kept
GROUPS_MAX = 256  # as many as the agent knows
EXIT_WAIT_S = 60.0

FRESH, ACTIVE, DISABLED = "fresh", "active", "disabled"


class _Hook:
    """One per process. Used by the training thread, except where a comment says otherwise."""

    def __init__(self) -> None:
        self.state = FRESH
        self.reason = ""
        self.socket = ""
        self.hostd = ""  # of a fleet, which says the socket at the first mark
        self.question: Any = None  # to hostd, until it has answered
        self.library = ""  # the agent that hostd names
        self.directory = ""
        self.pid = 0
        self.forked = False
        self.agent: Any = None
        self.tries = 0
        self.dispatches = 0  # until connected
        self.source: Any = None  # not None: a window is open, or about to be
        self.stall_ns = 0
        self.export: Optional[threading.Thread] = None
        self.calls: Any = None  # what the wrappers call (_torch.Hooks)
        self.mark_iteration: Optional[Callable[[], None]] = None
        self.children: List[int] = []  # pids of loaders' children, until connected
        self.grouped = False  # in a process group of several ranks
        self.groups: List[Any] = []  # groups made until connected


_hook = _Hook()
_attached = False
_lock = threading.Lock()


def _nothing(*args: Any) -> None:
    """Called by the wrappers once the hook is disabled."""


def _disable(reason: str) -> None:
    _hook.state = DISABLED
    _hook.reason = _hook.reason or reason
    _hook.mark_iteration = None
    if _hook.calls is not None:
        _hook.calls.set(*[_nothing] * 7)


def _silent(function: Callable[..., None]) -> Callable[..., None]:
    """On the first error: disables the hook; the job continues."""

    @functools.wraps(function)
    def guarded(*args: Any) -> None:
        try:
            if _hook.state is not DISABLED:
                function(*args)
        except BaseException as error:
            _give_up(function.__name__, error)

    return guarded


def _give_up(where: str, error: BaseException) -> None:
    """Disables the hook. An exception of a signal handler is raised again."""
    the_jobs = _signals.is_the_jobs(error)
    _disable("%s: %s" % (where, "interrupted" if the_jobs else repr(error)))
    _abandon()
    try:
        if the_jobs:
            raise error
    finally:
        del error  # as in _signals.pass_on


def _abandon() -> None:
    """After the hook was disabled: stops its profiler, and reports the reason to the daemon."""
    source, _hook.source = _hook.source, None
    try:
        if source is not None:
            source.abort()
    except Exception as error:  # nothing left to do
        _signals.pass_on(error)
    finally:
        if _hook.agent is not None:
            _hook.agent.disable(_hook.reason.encode("utf-8", "replace"))


# The first mark


def _connect() -> bool:
    """True once connected: marks are recorded."""
    if _hook.state is ACTIVE:
        return True
    if _hook.state is DISABLED or _in_loader_process():
        _disable("a data-loading process")
        return False
    if not _hook.socket and not _ask_hostd():
        return False
    if _hook.agent is None:
        _hook.agent = _agent.Agent(_agent.library_path(_hook.library))
    rank, local_rank, world_size = _rank.identity()
    error = _hook.agent.start(os.fsencode(_hook.socket), rank, local_rank, world_size)
    if error == 0:
        _activate()
        return True
    _hook.tries += 1
    if error != _agent.EAGAIN or _hook.tries >= CONNECT_TRIES:  # EAGAIN: its backlog is full
        _disable("no connection: %s" % os.strerror(-error))
    return False


def _ask_hostd() -> bool:
    """True once hostd has said which daemon watches this process; does not wait for it."""
    if _hook.question is None:
        try:
            _hook.question = _fleet.Question(_hook.hostd)
        except BlockingIOError:  # its backlog is full
            _hook.tries += 1
            if _hook.tries >= CONNECT_TRIES:
                raise
            return False
    said = _hook.question.answer()
    if said is None:
        return False
    _hook.question = None
    _hook.socket = said["socket"]
    _hook.directory = said.get("dir", "")
    _hook.library = said.get("agent", "")
    return True


def _activate() -> None:
    builtins = _hook.agent.builtins(_act)
    if builtins is None:
        _disable("this Python lacks the C functions that the hook needs")
        _abandon()
        return
    begins, ends, step_begins, step_ends, iteration_mark, on_gc, *others = builtins
    _hook.agent.open_sources()
    _hook.agent.run()  # marks work without its helper thread too
    _tell_children(_hook.children, of_loader=True)
    _hook.children = []
    _tell_other_children()
    for group in _hook.groups:
        _hook.agent.group(group)
    _hook.groups = []
    if _hook.grouped:
        _hook.agent.expect_collectives()
    _hook.state = ACTIVE
    _hook.pid = os.getpid()
    _hook.mark_iteration = iteration_mark
    if _hook.calls is not None:  # without torch only the user's own marks exist
        _hook.calls.set(begins, ends, step_begins, step_ends, *others)
    gc.callbacks.append(on_gc)
    atexit.register(_on_exit)
    if _hook.forked:
        _exit_with_multiprocessing()


def _exit_with_multiprocessing() -> None:
    """multiprocessing's forked children exit without running atexit handlers."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.Finalize(None, _on_exit, exitpriority=100)


def _in_loader_process() -> bool:
    data = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


@_silent
def _first_loader(loader_iter: Any) -> None:
    # A forked child that only loads is not a rank; a rank steps an optimizer soon.
    if not _hook.forked and _connect():
        _hook.calls.loader_begins(loader_iter)


def _tell_children(pids: List[int], of_loader: bool) -> None:
    for pid in pids:
        _hook.agent.child(pid, of_loader)


def _tell_other_children() -> None:
    """The children of multiprocessing now, of which the loaders' are known."""
    process = sys.modules.get("multiprocessing.process")
    popens = [getattr(child, "_popen", None) for child in list(getattr(process, "_children", ()))]
    pids = [getattr(popen, "pid", None) for popen in popens]
    _tell_children([pid for pid in pids if isinstance(pid, int)][-CHILDREN_MAX:], of_loader=False)


@_silent
def _loader_started(loader_iter: Any) -> None:
    """An iterator has started its children, most often before the first mark."""
    pids = [getattr(child, "pid", None) for child in getattr(loader_iter, "_workers", ())]
    known = [pid for pid in pids if isinstance(pid, int)]
    if _hook.state is ACTIVE:
        _tell_children(known, of_loader=True)
    else:
        _hook.children = (_hook.children + known)[-CHILDREN_MAX:]


@_silent
def _group_started(*made: Any) -> None:
    """made: what _torch.group_of() takes. Most groups are made before the first mark."""
    from perftracker import _torch

    _hook.grouped = True
    group = _torch.group_of(*made) if made else None
    if _hook.state is not ACTIVE:
        if group is not None and len(_hook.groups) < GROUPS_MAX:
            _hook.groups.append(group)
        return
    _hook.agent.expect_collectives()
    if group is not None:
        _hook.agent.group(group)


@_silent
def _first_step(optimizer: Any) -> None:
    if _connect():
        _hook.calls.step_begins(optimizer)


@_silent
def _first_scaler(optimizer: Any) -> None:
    if _connect():
        _hook.calls.scaler_begins(optimizer)


@_silent
def _first_backward(graph: Any) -> None:
    if _connect():
        _hook.calls.backward_begins(graph)


def _dispatched() -> bool:
    """Before a compiled function of JAX is called. False: not to be called again."""
    _first_dispatch()
    return _hook.state is FRESH


@_silent
def _first_dispatch() -> None:
    _hook.dispatches += 1
    if _hook.dispatches > DISPATCHES_MIN and not _hook.forked:
        _connect()


def _watch_dispatch(function: Any) -> None:
    """A function that jax.jit has made."""
    try:
        if _hook.state is not DISABLED:
            if _hook.agent is None:
                _hook.agent = _agent.Agent(_agent.library_path(_hook.library))
            _hook.agent.watch_dispatch(function, _dispatched)
    except BaseException as error:
        _give_up("_watch_dispatch", error)


@_silent
def iteration() -> None:
    if _hook.mark_iteration is None and not (_attached and _connect()):
        return
    if _hook.mark_iteration is not None:
        _hook.mark_iteration()


# Windows


@_silent
def _act(action: int) -> None:
    """Called by the agent where an iteration begins. Everything else is C."""
    if action == _agent.BEGIN:
        _open()
    elif action == _agent.END:
        _close()
    elif action == _agent.BOUND and _hook.source is not None:
        _hook.source.bound(_hook.agent.step())


def _trace_path(agent: Any) -> str:
    """The trace file of a source that writes one; empty without a directory."""
    if not _hook.directory:
        return ""
    rank = _rank.identity()[0]
    name = str(rank) if rank >= 0 else "p%d" % _hook.pid
    return os.path.join(_hook.directory, "%s-%d.json" % (name, agent.order()))


def _sources(agent: Any) -> Any:
    """Sources that may record the window, in order of preference."""
    wanted = agent.order_source()
    if wanted == _agent.SOURCE_AGENT:
        return [AgentSource(agent, whole=False)]
    # The agent's recording of a device was tested on doubles of its libraries only: it is
    # used on request (docs/gpu-measurements.md).
    torch_is_late = "torch" in sys.modules and not agent.operators_tried
    if wanted == _agent.SOURCE_TORCH or has_device() or torch_is_late:
        return [TorchSource()]
    return [AgentSource(agent), TorchSource()]


def _open() -> None:
    agent = _hook.agent
    begin_ns = time.monotonic_ns()
    if _hook.export is not None and _hook.export.is_alive():
        agent.missed(b"the trace of the window before is still being saved")
        return
    why = "no source"
    for source in _sources(agent):
        _hook.source = source  # if a signal interrupts the start, _give_up() ends it
        try:
            source.start(_trace_path(agent), _stolen)
        except SourceError as error:
            why = str(error)
            _hook.source = None
            if isinstance(error, YieldError):
                break
            continue
        _begun(source, begin_ns)
        return
    agent.missed(why.encode("utf-8", "replace"))


def _begun(source: Any, begin_ns: int) -> None:
    if _hook.agent.begun(source.name) != 0:  # the daemon would not read it
        source.abort()
        _hook.source = None
        return
    source.bound(_hook.agent.step())
    _tell_other_children()
    _hook.stall_ns = time.monotonic_ns() - begin_ns


def _close(exiting: bool = False) -> None:
    source = _hook.source
    if source is None:
        return
    begin_ns = time.monotonic_ns()
    finish = source.stop(exiting)
    _hook.source = None
    _hook.stall_ns += time.monotonic_ns() - begin_ns
    if exiting or not source.late:
        _export(finish, source, _hook.stall_ns)
        return
    export = threading.Thread(
        target=_export,
        args=(finish, source, _hook.stall_ns),
        name="perftracker-export",
        daemon=True,
    )
    export.start()
    _hook.export = export


def _export(finish: Callable[[], int], source: Any, stall_ns: int) -> None:
    """On the export thread if the source is late; the agent's rare calls are not concurrent."""
    try:
        stall_ns += finish()
        _send(lambda: _hook.agent.done(os.fsencode(source.path), stall_ns), source.late)
    except Exception as error:
        _signals.pass_on(error)
        text = ("%s" % error).encode("utf-8", "replace")
        _send(lambda: _hook.agent.missed(text), source.late)


def _send(attempt: Callable[[], int], may_wait: bool) -> None:
    """The socket may be full for a moment: the export thread may wait, the training thread not."""
    for _ in range(100 if may_wait else 3):
        if attempt() != _agent.EAGAIN:
            return
        if may_wait:
            time.sleep(0.05)


def _stolen() -> None:
    source, _hook.source = _hook.source, None
    if source is None:
        return
    source.abort()
    _hook.agent.missed(b"the user started a profiler")


def _exception_name() -> str:
    """The class of the exception that ends the program; the interpreter has printed it."""
    kind = getattr(sys, "last_type", None)
    return str(getattr(kind, "__name__", "")) if kind is not None else ""


def _on_exit() -> None:
    """Closes an open window: a short one is better than none."""
    if _hook.state is not ACTIVE or os.getpid() != _hook.pid:
        return
    try:
        _close(exiting=True)
        if _hook.export is not None:
            _hook.export.join(EXIT_WAIT_S)
        _hook.agent.bye(_exception_name().encode())
    except Exception as error:  # the exit status is the job's
        _signals.pass_on(error)
    _disable("the interpreter ends")


def _forked_child() -> None:
    """A child forked before the first mark may become a worker; others are disabled."""
    global _lock
    _lock = threading.Lock()
    _hook.children = []
    _hook.groups = []
    _hook.question = None  # the parent's
    if _hook.state is FRESH and _hook.agent is None:
        _hook.forked = True
        return
    _disable("a forked child")
    _hook.source = None


# Attaching


def attach() -> None:
    """Wraps DataLoader and Optimizer once, if torch is imported and a daemon may watch.

    That is the one of PERFTRACKER_SOCKET, or the one that hostd of a fleet names later.
    """
    global _attached
    try:
        with _lock:
            socket = os.environ.get("PERFTRACKER_SOCKET", "")
            hostd = "" if socket else _fleet.find()
            if not socket and not hostd:
                return
            if not _attached:
                _attached = True
                _hook.socket, _hook.hostd = socket, hostd
                _hook.directory = os.environ.get("PERFTRACKER_DIR", "")
                os.register_at_fork(after_in_child=_forked_child)
            _wrap_torch()
            _wrap_jax()
    except Exception as error:
        _disable("attach: %r" % error)
        _signals.pass_on(error)


def _wrap_torch() -> None:
    if "torch" not in sys.modules:
        return
    from perftracker import _torch

    if _hook.calls is None:
        first = (_first_loader, _nothing, _first_step, _nothing, _first_backward, _nothing)
        _hook.calls = _torch.Hooks(_loader_started, _group_started, *first, _first_scaler)
    _torch.wrap(_hook.calls)
    profiles.attach()


def _wrap_jax() -> None:
    if "jax" not in sys.modules or not (_hook.socket or _agent.library_is_known()):
        return  # hostd names the library later
    from perftracker import _jax

    _jax.wrap(_watch_dispatch)


def region(name: str) -> "ContextManager[Any]":
    source = _hook.source
    try:
        if source is not None:
            return source.region(name)
    except BaseException as error:
        _give_up("region", error)
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
