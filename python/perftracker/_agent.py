# SPDX-License-Identifier: Apache-2.0
"""The C interface of libperftracker-agent.so (src/agent/core/agent.h)."""

import ctypes
import os
import sys
from typing import Any

from perftracker import _signals

NONE = 0
BEGIN = 1
END = 2
BOUND = 3

# enum order_source
SOURCE_AUTO = 0
SOURCE_AGENT = 1
SOURCE_TORCH = 2

# enum flight_source
STACKS = 0
OPERATORS = 1
GC = 5
GPU = 7

EAGAIN = -11
EBUSY = -16


LIBRARY = "libperftracker-agent.so"


def library_path(named: str = "") -> str:
    """PERFTRACKER_AGENT, else the library beside this file, as in a wheel, else the one named."""
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), LIBRARY)
    if not os.path.exists(beside) and named:
        beside = named
    return os.environ.get("PERFTRACKER_AGENT") or beside


def library_is_known() -> bool:
    return os.path.exists(library_path())


def _load(path: str) -> Any:
    """The copy that is already loaded, from any path: there must be one state per process."""
    try:
        return ctypes.PyDLL(LIBRARY, mode=os.RTLD_NOLOAD)
    except OSError as error:
        _signals.pass_on(error)
    return ctypes.PyDLL(path)


class Agent:
    """Loaded as PyDLL: a call takes 100 ns; releasing the interpreter lock could cost 5 ms.

    Functions that run at each iteration are not called through ctypes: builtins() are C
    functions that Python calls like its own.
    """

    def __init__(self, path: str) -> None:
        lib = _load(path)
        self._lib = lib
        self.operators_tried = False  # torch was imported before the first mark
        self.start = lib.pt_agent_start
        self.start.argtypes = [ctypes.c_char_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32]
        self.begun = lib.pt_agent_begun
        self.begun.argtypes = [ctypes.c_char_p]
        self.done = lib.pt_agent_done
        self.done.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
        self.missed = lib.pt_agent_missed
        self.missed.argtypes = [ctypes.c_char_p]
        self.disable = lib.pt_agent_disable
        self.disable.argtypes = [ctypes.c_char_p]
        self.disable.restype = None
        self.bye = lib.pt_agent_bye
        self.bye.argtypes = [ctypes.c_char_p]
        self.bye.restype = None
        self.order = lib.pt_agent_order
        self.order.restype = ctypes.c_uint64
        self.order_source = lib.pt_agent_order_source
        self.order_source.restype = ctypes.c_uint32
        self.step = lib.pt_agent_step
        self.step.restype = ctypes.c_uint64
        self.enabled = lib.pt_agent_enabled
        self.run = lib.pt_agent_run
        self.expect_collectives = lib.pt_agent_expect_collectives
        self.expect_collectives.restype = None
        self.window_open = lib.pt_agent_window_open
        self.window_open.argtypes = [ctypes.c_int]
        self.window_close = lib.pt_agent_window_close
        self.window_close.restype = None
        self.window_complete = lib.pt_agent_window_complete

    def child(self, pid: int, of_loader: bool) -> None:
        """The rank may wait for this child, which is looked at then."""
        child = self._lib.pt_agent_child
        child.argtypes = [ctypes.c_uint32, ctypes.c_int]
        child.restype = None
        child(pid, of_loader)

    def group(self, group: Any) -> None:
        """group: a _torch.Group that this rank is in."""
        tell = self._lib.pt_agent_group
        tell.argtypes = (
            [ctypes.c_char_p] + 3 * [ctypes.c_uint32] + [ctypes.c_void_p, ctypes.c_size_t]
        )
        tell.restype = None
        threads = sorted(group.threads)
        tids = (ctypes.c_uint32 * len(threads))(*threads)
        name = group.name.encode("utf-8", "replace")
        tell(name, group.size, group.first_rank, group.rank_stride, tids, len(threads))

    def watch_dispatch(self, function: Any, connect: Any) -> int:
        """Calls of a compiled function of JAX are marks; 0, or why not as a negative errno."""
        watch = self._lib.pt_agent_watch_dispatch
        watch.argtypes = [ctypes.py_object, ctypes.py_object]
        return int(watch(function, connect))

    def builtins(self, act: Any) -> Any:
        """The C functions of agent/python/pyhook.c, in the order of its table; or None."""
        make = self._lib.pt_agent_builtins
        make.argtypes = [ctypes.py_object]
        make.restype = ctypes.c_void_p  # NULL for a py_object would end the process
        address = make(act)
        return ctypes.cast(address, ctypes.py_object).value if address else None

    def absent(self, source: int) -> str:
        """Why a source can't be recorded in this process; empty when it can."""
        absent = self._lib.pt_agent_absent
        absent.argtypes = [ctypes.c_uint32]
        absent.restype = ctypes.c_char_p
        return str(absent(source).decode("utf-8", "replace"))

    def open_sources(self) -> None:
        """Opens the sources that this process can record, each with a self-test."""
        self._open_stacks()
        torch = sys.modules.get("torch")
        if torch is not None:
            self._open_operators(torch)

    def _open_stacks(self) -> None:
        codes = []
        frame: Any = sys._getframe()
        while frame is not None:
            codes.append(id(frame.f_code))
            frame = frame.f_back
        array = (ctypes.c_size_t * len(codes))(*codes)
        open_stacks = self._lib.pt_agent_open_stacks
        open_stacks.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        open_stacks.restype = None
        open_stacks(array, len(codes))

    def _open_operators(self, torch: Any) -> None:
        self.operators_tried = True
        open_operators = self._lib.pt_agent_open_operators
        open_operators.argtypes = [ctypes.c_char_p]
        open_operators.restype = None
        check = self._lib.pt_agent_check_operators
        check.argtypes = [ctypes.c_int]
        check.restype = None
        open_operators(str(torch.__version__).encode())
        if self.absent(OPERATORS):
            return
        check(1)
        try:
            torch.empty(0)
        finally:
            check(0)
