# SPDX-License-Identifier: Apache-2.0
"""A signal arrives at each line of the hook's own code, one at a time.

Its handler raises TimeoutError, which must reach the job, and no profiler may be
left running. Prints how many lines were interrupted, then what went wrong.
"""

import os
import signal
import sys
import threading

import torch
from perftracker import _hook, _source
from torch.autograd import profiler

PACKAGE = os.path.dirname(_hook.__file__)
original_enter = profiler.record_function.__enter__


class Agent:
    """Replaces the library: this test is of the hook's Python."""

    def __init__(self, source):
        self.recording = self.disabled = False
        self.order_source = lambda: source
        self.order = self.step = lambda: 1
        self.begun = lambda name: 0
        self.done = lambda path, stall_ns: 0
        self.missed = lambda why: 0
        self.bye = lambda exception: None
        self.absent = lambda number: ""  # it records a device, too
        self.window_complete = lambda: True
        self.operators_tried = True

    def window_open(self, whole):
        self.recording = True
        return 0

    def window_close(self):
        self.recording = False

    def disable(self, why):
        self.disabled = True
        self.recording = False


class Alarm:
    """Goes off at the line of a number; .rang says whether there was such a line."""

    def __init__(self, number):
        self.left = number
        self.rang = False
        self.entered = []
        signal.signal(signal.SIGALRM, self.ring)

    def ring(self, number, frame):
        self.rang = True
        raise TimeoutError("of the job")

    def trace(self, frame, event, arg):
        if os.path.dirname(frame.f_code.co_filename) != PACKAGE:
            return None
        if event != "line":
            return self.trace
        if frame.f_code.co_name == "guarded" and frame not in self.entered:
            self.entered.append(frame)  # nothing has begun yet: as if it had not been called
        else:
            self.left -= 1
            if self.left == 0:
                signal.raise_signal(signal.SIGALRM)
        return self.trace


def region():
    with _hook.region("a region"):
        torch.ones(3)


WINDOW = (
    lambda: _hook._act(_hook._agent.BEGIN),
    region,
    lambda: _hook._act(_hook._agent.BOUND),
    lambda: _hook._act(_hook._agent.END),
)


def fresh_hook(source):
    hook = _hook._hook = _hook._Hook()
    hook.state = _hook.ACTIVE
    hook.directory = sys.argv[1]
    hook.pid = os.getpid()
    hook.agent = Agent(source)
    return hook


def try_line(source, number):
    """(whether the line is there, what went wrong)"""
    hook = fresh_hook(source)
    alarm = Alarm(number)
    reached = False
    sys.settrace(alarm.trace)
    for part in WINDOW:
        try:
            part()
        except TimeoutError:
            reached = True
    sys.settrace(None)
    for thread in threading.enumerate():
        if thread.name == "perftracker-export":
            thread.join()
    wrong = []
    if alarm.rang and not reached:
        wrong.append("swallowed")
    if torch._C._autograd._profiler_enabled():
        wrong.append("profiler left on")
        torch._C._autograd._disable_profiler()
    if _source.profiles._on_steal is not None:
        wrong.append("profiles left watched")
        _source.profiles.unwatch()
    if profiler.record_function.__enter__ is not original_enter:
        wrong.append("ranges left watched")
    if hook.agent.recording:
        wrong.append("collectors left on")
    return alarm.rang, wrong


lines = 0
for source in (_hook._agent.SOURCE_AGENT, _hook._agent.SOURCE_TORCH):
    number = 1
    while True:
        rang, wrong = try_line(source, number)
        if not rang:
            break
        if wrong:
            print("source %d, line %d:" % (source, number), ", ".join(wrong))
        number += 1
    lines += number - 1
print("lines", lines)
