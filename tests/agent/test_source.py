# SPDX-License-Identifier: Apache-2.0
"""What the hook does with the child that saves a trace, without torch."""

import contextlib
import itertools
import os
import pathlib
import signal
import sys
import tempfile
import time
import unittest
from typing import Any, Iterator
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from perftracker import _source  # noqa: E402


def wait_child(clock: Iterator[float], **waitpid: Any) -> mock.Mock:
    """Waits for a child that never saves anything; returns the calls of kill()."""
    kill = mock.Mock()
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(os, "kill", kill))
        stack.enter_context(mock.patch.object(os, "waitpid", **waitpid))
        stack.enter_context(mock.patch.object(time, "monotonic", side_effect=clock))
        stack.enter_context(mock.patch.object(time, "sleep"))
        with unittest.TestCase().assertRaises(_source.SourceError):
            _source._wait_child(77, [None], "/nowhere/trace")
    return kill


class WaitChild(unittest.TestCase):
    def test_a_child_that_the_program_has_reaped_is_not_killed(self) -> None:
        """Wherever the time limit falls: its number may be another process's by now."""
        for reads in range(1, 6):
            clock = itertools.chain([0.0] * reads, itertools.repeat(1e9))
            wait_child(clock, side_effect=ChildProcessError).assert_not_called()

    def test_a_trace_whose_child_the_program_has_reaped_is_used(self) -> None:
        with (
            tempfile.NamedTemporaryFile() as trace,
            mock.patch.object(os, "waitpid", side_effect=ChildProcessError),
        ):
            result = [object()]
            self.assertGreaterEqual(_source._wait_child(77, result, trace.name), 0)
            self.assertEqual(result, [])

    def test_a_child_that_takes_too_long_is_killed_once(self) -> None:
        clock = itertools.chain([0.0], itertools.repeat(1e9))
        kill = wait_child(clock, return_value=(0, 0))
        kill.assert_called_once_with(77, signal.SIGKILL)


if __name__ == "__main__":
    unittest.main()
