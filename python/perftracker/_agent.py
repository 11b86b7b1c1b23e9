# SPDX-License-Identifier: Apache-2.0
"""The C interface of libperftracker-agent.so (src/collect/agent/agent.h)."""

import ctypes
import os

MARK_DATALOADER = 1
MARK_DATALOADER_END = 2
MARK_OPTIMIZER = 3
MARK_ITERATION = 4
MARK_GC = 5
MARK_OPTIMIZER_BEGIN = 6

NONE = 0
BEGIN = 1
END = 2
BOUND = 3


def library_path() -> str:
    """PERFTRACKER_AGENT, else the library that the wheel carries beside this file."""
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libperftracker-agent.so")
    return os.environ.get("PERFTRACKER_AGENT") or beside


class Agent:
    """Loaded as PyDLL: a mark takes 100 ns, giving the interpreter lock away could cost 5 ms."""

    def __init__(self, path: str) -> None:
        lib = ctypes.PyDLL(path)
        self.start = lib.pt_agent_start
        self.start.argtypes = [ctypes.c_char_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32]
        self.mark = lib.pt_agent_mark
        self.mark.argtypes = [ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint32]
        self.begun = lib.pt_agent_begun
        self.done = lib.pt_agent_done
        self.done.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
        self.missed = lib.pt_agent_missed
        self.missed.argtypes = [ctypes.c_char_p]
        self.disable = lib.pt_agent_disable
        self.disable.argtypes = [ctypes.c_char_p]
        self.disable.restype = None
        self.bye = lib.pt_agent_bye
        self.bye.restype = None
        self.order = lib.pt_agent_order
        self.order.restype = ctypes.c_uint64
        self.step = lib.pt_agent_step
        self.step.restype = ctypes.c_uint64
        self.enabled = lib.pt_agent_enabled
