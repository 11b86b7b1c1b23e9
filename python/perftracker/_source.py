# SPDX-License-Identifier: Apache-2.0
"""The profiling sources of a window: the agent's own collectors, or torch's profiler.

Both offer the same five methods. Everything runs on the training thread except
the function that stop() returns.

AgentSource only switches collectors on and off; their records go to the daemon
through shared memory. TorchSource is the fallback: for a device, or a version of
torch or Python that the collectors don't support. Only one tool can record a device
in a process, so both sources yield to the user's profiler.

Costs of torch's profiler for the job, and how they are reduced:
- torch builds its event objects twice. The low-level calls give the result
  that can be saved; torch.profiler's own stop would also convert it.
- save() formats the trace as text and holds the interpreter lock throughout.
  A forked child does it instead, at low priority; the parent continues training.
  If a device holds pages of the process, a thread saves instead.
- Each call of Python is an event: a loop of a million calls an iteration held a job up
  for half a minute. So the first iteration is a trial: it is recorded, stopped and
  dropped, and if the stop took long the others are recorded without Python's calls.
"""

import contextlib
import ctypes
import functools
import inspect
import json
import os
import signal
import sys
import threading
import time
import warnings
import weakref
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Tuple

from perftracker import _agent, _signals

SAVE_LIMIT_S = 300.0
COMPLETE_LIMIT_S = 5.0  # from the end of a window to the last event of a device
KINETO_SILENT = 6  # above Kineto's greatest severity
USUAL_STEPS = 16  # iterations of a window, unless --steps says otherwise
STOP_MOST_S = 4.0  # that a window's end may hold the job up


class SourceError(Exception):
    """The window can't be recorded; the text is the reason."""


class YieldError(SourceError):
    """Another tool records this process: no other source is tried either."""


class AgentSource:
    """The collectors of libperftracker-agent.so; whole: a device must be recorded, too."""

    name = b"agent"
    path = ""  # no file: the trace is in the recorder

    def __init__(self, agent: Any, whole: bool = True) -> None:
        self._agent = agent
        self._whole = whole
        self.late = False  # True: events still arrive after stop()
        self._deadline = 0.0  # for the last event

    def start(self, path: str, on_steal: Callable[[], None]) -> None:
        device = has_device()
        if device and profiles.is_open():
            raise YieldError("the user's own profiler is active")
        error = self._agent.window_open(int(self._whole))
        absent = self._agent.absent(_agent.GPU)
        if error == _agent.EBUSY:
            raise YieldError(absent)
        if error != 0:
            raise SourceError(absent or "the agent's own collectors can't record this process")
        self.late = not absent
        if device and self._whole and not self.late:
            self._agent.window_close()
            raise SourceError("the agent can't record this device: %s" % absent)
        if self.late:
            profiles.watch(on_steal)

    def bound(self, step: int) -> None:
        """No action: the recorder has the marks."""

    def region(self, name: str) -> "ContextManager[Any]":
        if "torch" not in sys.modules:
            return contextlib.nullcontext()
        import torch.autograd.profiler as profiler

        return profiler.record_function(name)

    def abort(self) -> None:
        self.stop()()

    def stop(self, exiting: bool = False) -> Callable[[], int]:
        self._deadline = time.monotonic() + COMPLETE_LIMIT_S
        if self.late:
            profiles.begin_after(self._wait_complete)
        profiles.unwatch()
        self._agent.window_close()
        return self._wait_complete if self.late else lambda: 0

    def _wait_complete(self) -> int:
        """Waits for the last event, up to COMPLETE_LIMIT_S; later events are lost."""
        while not self._agent.window_complete() and time.monotonic() < self._deadline:
            time.sleep(0.002)
        return 0


class TorchSource:
    """torch.profiler machinery: CPU (and CUDA) activities, stacks, shapes."""

    name = b"torch"
    late = True  # saving takes time

    def __init__(self) -> None:
        self.path = ""
        self._profile: Any = None
        self._step_range: Any = None
        self._ranges: Any = None
        self._on_steal: Any = None
        self._bounds = 0  # of iterations, the window's begin included

    def start(self, path: str, on_steal: Callable[[], None]) -> None:
        """Records until stop(); the trace will be at path. Raises SourceError when it can't.

        on_steal is called if the user starts a profiler meanwhile: torch can run
        only one, and the user's has precedence.
        """
        torch = sys.modules.get("torch")
        if torch is None:
            raise SourceError("torch is not loaded: --source agent records Python stacks")
        if not path:
            raise SourceError("PERFTRACKER_DIR is not set")
        import torch.autograd.profiler as profiler

        if profiler.kineto_available() is False:
            raise SourceError("this torch has no Kineto")
        if profiles.is_open():
            raise YieldError("the user's own profiler is active")
        self.path = path
        self._on_steal = on_steal
        self._begin(stacks=True)

    def _begin(self, stacks: bool) -> None:
        import torch.autograd.profiler as profiler

        torch = sys.modules["torch"]
        self._ranges = _Ranges(profiler.record_function)
        self._profile = _profile(torch, profiler, stacks)
        profiles.prepare(self._profile)
        self._ranges.watch()
        with _quiet_kineto(torch):
            self._profile._start_trace()
        _add_metadata(torch, stacks)
        profiles.watch(self._on_steal)

    def _end_trial(self) -> None:
        begin_s = time.monotonic()
        self._end_recording()
        cost_s = (time.monotonic() - begin_s) * USUAL_STEPS
        self._begin(stacks=cost_s <= STOP_MOST_S)

    def bound(self, step: int) -> None:
        """An iteration begins here: closes the previous iteration's range."""
        import torch.autograd.profiler as profiler

        self._bounds += 1
        if self._bounds == 2 and self._profile is not None:
            self._end_trial()
        if self._step_range is not None:
            self._ranges.end(self._step_range)
        self._step_range = profiler.record_function("ProfilerStep#%d" % step)
        self._step_range.__enter__()

    def region(self, name: str) -> "ContextManager[Any]":
        import torch.autograd.profiler as profiler

        return profiler.record_function(name)

    def abort(self) -> None:
        """Stops and discards the recording, also after a partial start() or stop()."""
        self._end_recording()

    def stop(self, exiting: bool = False) -> Callable[[], int]:
        """Ends the recording.

        Returns a function for another thread: it returns when the trace is
        complete, with the nanoseconds for which it held the interpreter lock;
        it raises SourceError when there is no trace.
        """
        result = [self._end_recording()]
        path = self.path
        child = -1 if exiting else _fork_save(result[0], path)
        if child < 0:
            return lambda: _save_here(result, path)
        return lambda: _wait_child(child, result, path)

    def _end_recording(self) -> Any:
        import torch.autograd.profiler as profiler

        torch = sys.modules["torch"]
        profiles.unwatch()
        self._step_range = None
        if self._ranges is not None:
            self._ranges.end_all()
        if self._profile is None or not torch._C._autograd._profiler_enabled():
            return None
        if getattr(self._profile, "use_device", None) == "cuda":
            torch.cuda.synchronize()  # kernels that still run would be missing
        with _quiet_kineto(torch):
            result = torch._C._autograd._disable_profiler()
        self._profile = None
        if hasattr(profiler, "_run_on_profiler_stop"):
            profiler._run_on_profiler_stop()
        return result


class Profiles:
    """Tracks the job's profiles by torch. Only one can exist at a time, TorchSource's included.

    A profile is prepared, sometimes long before it starts (the warm-up of a schedule). torch
    only reports started profiles, and crashes if a second one begins and ends before the first
    has started. So each is tracked from its preparation on.
    """

    def __init__(self) -> None:
        self._prepare: Any = None  # torch's method; None: not attached
        self._open: Any = weakref.WeakSet()
        self._on_steal: Any = None
        self._wait: Any = None

    def attach(self) -> None:
        """Wraps torch's profile class once, for good."""
        import torch.autograd.profiler as profiler

        kind = profiler.profile
        if self._prepare is not None or not hasattr(kind, "_prepare_trace"):
            return
        self._prepare, leave = kind._prepare_trace, kind.__exit__

        @functools.wraps(self._prepare)
        def prepared(profile: Any) -> Any:
            self._begins(profile)
            return self._prepare(profile)

        @functools.wraps(leave)
        def left(profile: Any, *error: Any) -> Any:
            try:
                return leave(profile, *error)
            finally:
                self._open.discard(profile)

        kind._prepare_trace, kind.__exit__ = prepared, left

    def prepare(self, profile: Any) -> None:
        """Prepares a profile of TorchSource."""
        if self._prepare is None:
            profile._prepare_trace()
        else:
            self._prepare(profile)

    def is_open(self) -> bool:
        """Whether the job has a profile, on any thread."""
        torch = sys.modules.get("torch")
        return len(self._open) > 0 or (
            torch is not None and bool(torch._C._autograd._profiler_enabled())
        )

    def watch(self, on_steal: Callable[[], None]) -> None:
        """Calls on_steal before a profile of the job begins, until unwatch()."""
        self._on_steal = on_steal

    def unwatch(self) -> None:
        self._on_steal = None

    def begin_after(self, wait: Callable[[], int]) -> None:
        """A profile of the job that begins after a window first calls wait, which has a limit."""
        self._wait = wait

    def _begins(self, profile: Any) -> None:
        try:
            self._open.add(profile)
            on_steal = self._on_steal
            if on_steal is not None:
                on_steal()
            if self._wait is not None:
                self._wait()
        except Exception as error:  # the job's profile then fails as beside any other profiler
            _signals.pass_on(error)


profiles = Profiles()


def has_device() -> bool:
    """Whether torch uses a GPU in this process; without torch, whether a GPU's driver is loaded."""
    torch = sys.modules.get("torch")
    if torch is None:
        return _has_driver()
    return bool(torch.cuda.is_available() and torch.cuda.is_initialized())


def _has_driver() -> bool:
    try:
        with open("/proc/self/maps", errors="replace") as maps:
            text = maps.read()
    except OSError:
        return True
    return any(name in text for name in ("/libcuda.so", "/libamdhip64.so", "/libtpu.so"))


class _Ranges:
    """The record_function ranges that are open on this thread, the job's too.

    No range may outlive the window. torch stores a range's end in the memory of the
    profile in which it began, also after that memory is freed: if another profile
    runs by then, it overwrites the new contents (torch 2.13; pytorch pull request
    188172 has the same problem with global callbacks). Ending a range twice is harmless.
    """

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._original = kind.__enter__, kind.__exit__
        self._open: Dict[int, Any] = {}

    def watch(self) -> None:
        enter, leave = self._original
        thread = threading.get_ident()
        ranges = self._open

        @functools.wraps(enter)
        def entered(opened: Any) -> Any:
            if threading.get_ident() == thread:
                ranges[id(opened)] = opened
            return enter(opened)

        @functools.wraps(leave)
        def left(opened: Any, *error: Any) -> Any:
            ranges.pop(id(opened), None)
            return leave(opened, *error)

        self._kind.__enter__, self._kind.__exit__ = entered, left

    def end(self, opened: Any) -> None:
        if getattr(opened, "record", opened) is not None:  # None: it has not begun
            self._original[1](opened, None, None, None)
        self._open.pop(id(opened), None)

    def end_all(self) -> None:
        self._kind.__enter__, self._kind.__exit__ = self._original
        while self._open:
            self.end(self._open[next(reversed(self._open))])


@contextlib.contextmanager
def _quiet_kineto(torch: Any) -> Iterator[None]:
    """Kineto of torch 2.13 writes two lines per trace to the job's stderr.

    Sets Kineto's log level for the duration. The environment can't be used: Kineto reads it
    once, and the user's own profiles would be silenced, too.
    """
    level = _kineto_level(torch)
    before = level.value if level is not None else -1
    if level is None or not 0 <= before < KINETO_SILENT:  # not the expected variable
        yield
        return
    try:
        level.value = KINETO_SILENT
        yield
    finally:
        level.value = before


def _kineto_level(torch: Any) -> Any:
    path = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")
    try:
        library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        return ctypes.c_int.in_dll(library, "_ZN9libkineto6Logger14severityLevel_E")
    except (OSError, ValueError) as error:
        _signals.pass_on(error)
        return None


def _profile(torch: Any, profiler: Any, stacks: bool) -> Any:
    parameters = inspect.signature(profiler.profile.__init__).parameters
    options = {"use_kineto": True, "record_shapes": True, "with_stack": stacks}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        options.update({"use_device": "cuda"} if "use_device" in parameters else {"use_cuda": True})
        _keep_cupti(torch)
    profile = profiler.profile(**options)
    config = _trace_only()
    if config is not None:
        # Set after construction, since the constructor refuses it together with
        # stacks: the *events* would lack stacks, but the trace has its own.
        profile.experimental_config = config
    return profile


def _keep_cupti(torch: Any) -> None:
    """Keeps CUPTI attached between windows where a teardown by Kineto crashes CUDA graphs.

    torch.profiler sets the same variables under the same condition, but the lower-level
    calls don't: from torch 2.1 on (pytorch pull request 101879), both from 2.2 on
    (112507; Kineto of 2.1 takes any value of the second for yes), and from 2.8 on only
    before CUDA 12.6 (151124). Only graphs that inductor makes by its own setting are
    known; torch.compile sets the variables itself where its mode asks for graphs.
    """
    try:
        if torch.__version__ >= (2, 1) and _has_graphs_that_crash(torch):
            os.environ["DISABLE_CUPTI_LAZY_REINIT"] = "1"
            if torch.__version__ >= (2, 2):
                os.environ["TEARDOWN_CUPTI"] = "0"
    except Exception as error:  # settings moved in this version of torch
        _signals.pass_on(error)


def _has_graphs_that_crash(torch: Any) -> bool:
    config = sys.modules.get("torch._inductor.config")
    if config is None or not config.triton.cudagraphs:
        return False
    internal = sys.modules.get("torch._utils_internal")
    mended = getattr(internal, "profiler_allow_cudagraph_cupti_lazy_reinit_cuda12", None)
    if mended is None:  # this torch treats all versions of CUDA as broken
        return True
    cuda = torch.version.cuda  # None: another vendor's
    return (cuda is not None and _numbers(cuda) < (12, 6)) or not mended()


def _numbers(version: str) -> Tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def _trace_only() -> Any:
    """The option that halves the time of the stop (torch 2.10 and newer), or None."""
    try:
        from torch._C._profiler import _ExperimentalConfig

        return _ExperimentalConfig(trace_only=True)
    except (ImportError, TypeError):
        return None


def _add_metadata(torch: Any, stacks: bool) -> None:
    """As torch.profiler: readers get the rank from distributedInfo."""
    add = getattr(torch.autograd, "_add_metadata_json", None)
    dist = sys.modules.get("torch.distributed")
    if add is None or dist is None or not dist.is_available() or not dist.is_initialized():
        return
    info = {
        "backend": str(dist.get_backend()),
        "rank": dist.get_rank(),
        "world_size": dist.get_world_size(),
    }
    try:
        info["pg_config"] = dist.distributed_c10d._get_all_pg_configs()
    except Exception as error:  # private, and newer than torch 2.1
        _signals.pass_on(error)
    add("distributedInfo", json.dumps(info, default=str))
    add("with_stack", str(int(stacks)))
    add("record_shapes", "1")


def _save(result: Any, path: str) -> None:
    """Renames complete traces only: on a full disk Kineto logs a line and truncates."""
    temporary = path + ".part"
    try:
        with _quiet_kineto(sys.modules["torch"]):
            result.save(temporary)
        if not _is_complete(temporary):
            raise SourceError("the trace could not be written")
        os.rename(temporary, path)
    except BaseException:
        for left in (temporary, temporary + ".tmp"):  # the second is Kineto's own
            with contextlib.suppress(OSError):
                os.unlink(left)
        raise


def _is_complete(path: str) -> bool:
    with open(path, "rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - 16))
        return file.read().rstrip().endswith(b"}")


def _fork_save(result: Any, path: str) -> int:
    """Pid of a child that saves, -1 without one. The child always ends by _exit."""
    if os.environ.get("PERFTRACKER_EXPORT") == "thread" or _pins_memory():
        return -1
    parent = os.getpid()
    try:
        with warnings.catch_warnings():  # Python 3.12 warns about threads
            warnings.simplefilter("ignore")
            child = os.fork()
        if child == 0:
            os.nice(5)
            _save(result, path)
            os._exit(0)
        return child
    except OSError as error:
        _signals.pass_on(error)
        return -1
    finally:
        if os.getpid() != parent:  # also after an exception of a signal handler
            os._exit(1)


def _pins_memory() -> bool:
    """Whether a device or a network card may write to this process's pages.

    After a fork the next write copies a page; on old kernels also pages that a
    device holds, and the device keeps using the old copy.
    """
    torch = sys.modules["torch"]
    return bool(torch.cuda.is_initialized()) or os.path.exists("/sys/class/infiniband")


def _wait_child(child: int, result: List[Any], path: str) -> int:
    deadline = time.monotonic() + SAVE_LIMIT_S
    status = 0
    while True:
        try:
            pid, status = os.waitpid(child, os.WNOHANG)
        except ChildProcessError:  # it ended, and the program waited for any child and reaped it
            break
        if pid == child:
            break
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise SourceError("saving the trace took too long")
        time.sleep(0.02)
    held_ns = _release(result)
    if not os.path.exists(path):
        raise SourceError("saving the trace failed, status %d" % status)
    return held_ns


def _save_here(result: List[Any], path: str) -> int:
    begin_ns = time.monotonic_ns()
    _save(result[0], path)
    return time.monotonic_ns() - begin_ns + _release(result)


def _release(result: List[Any]) -> int:
    """Frees the result, which also holds the interpreter lock. Returns the ns."""
    begin_ns = time.monotonic_ns()
    result.clear()
    return time.monotonic_ns() - begin_ns
