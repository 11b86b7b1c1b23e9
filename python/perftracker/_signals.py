# SPDX-License-Identifier: Apache-2.0
"""Tells what the job's signal handlers raise from trouble of our own.

Python runs a handler between any two instructions of the main thread, so also
between two of ours. What it raises, such as the TimeoutError of an alarm, is
meant for the job.
"""

import signal
from types import CodeType, FrameType
from typing import Any, Set


def pass_on(error: BaseException) -> None:
    """Raises the error again if it is the job's."""
    try:
        if is_the_jobs(error):
            raise error
    finally:
        del error  # or it and this frame hold each other, and all that its frames hold


def is_the_jobs(error: BaseException) -> bool:
    """Whether a handler raised the error, which has been caught just now."""
    if not isinstance(error, Exception):  # KeyboardInterrupt, SystemExit
        return True
    codes = _handlers()
    traceback = error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code in codes or _was_given_its_caller(frame):
            return True
        traceback = traceback.tb_next
    return False


def _handlers() -> "Set[Any]":
    """The code of the handlers that are functions or methods, maybe in a functools.partial."""
    found = set()
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        try:
            code = getattr(getattr(handler, "func", handler), "__code__", None)
        except Exception:  # an object of the job's may do what it likes
            continue
        if isinstance(code, CodeType):
            found.add(code)
    return found


def _was_given_its_caller(frame: FrameType) -> bool:
    """As handlers are, and nobody else: handler(number, frame). It may be replaced by now."""
    for value in list(frame.f_locals.values()):
        if value is frame.f_back is not None:
            return True
        if isinstance(value, tuple) and any(item is frame.f_back for item in value):
            return frame.f_back is not None
    return False
