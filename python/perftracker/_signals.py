# SPDX-License-Identifier: Apache-2.0
"""Distinguishes exceptions of the job's signal handlers from the hook's own errors.

Python runs a handler between any two instructions of the main thread, also inside the
hook. Its exception, such as the TimeoutError of an alarm, is meant for the job.
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
        del error  # breaks the cycle of error and frame, which would keep its frames alive


def is_the_jobs(error: BaseException) -> bool:
    """Whether a signal handler raised the error, which was just caught."""
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
        except Exception:  # attributes of the job's objects may run any code
            continue
        if isinstance(code, CodeType):
            found.add(code)
    return found


def _was_given_its_caller(frame: FrameType) -> bool:
    """Only handlers get their caller's frame: handler(number, frame). They may be uninstalled."""
    for value in list(frame.f_locals.values()):
        if value is frame.f_back is not None:
            return True
        if isinstance(value, tuple) and any(item is frame.f_back for item in value):
            return frame.f_back is not None
    return False
