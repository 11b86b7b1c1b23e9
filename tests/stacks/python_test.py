# SPDX-License-Identifier: Apache-2.0
"""Python frames of `perftracker stacks` against those of faulthandler, under each CPython."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "agent")]

from support import Stacks, call, names, python_frames  # noqa: E402
from test_pystack import candidates, describe  # noqa: E402

TARGET = HERE / "python_target.py"
FRAME = re.compile(r'  File "(.*)", line (\d+) in (.*)')
Frame = tuple[str, str, int]


def settled(stacks: list[list[Frame]]) -> list[list[Frame]]:
    """Sorted, without the line of the frame that moves on."""
    kept = [[(f, p, 0 if f == "compute" else line) for f, p, line in s] for s in stacks if s]
    return sorted(kept)


def dumped(text: str) -> list[list[Frame]]:
    """The stacks in a dump of faulthandler."""
    stacks: list[list[Frame]] = []
    for line in text.splitlines():
        frame = FRAME.match(line)
        if frame:
            stacks[-1].append((frame[3], frame[1], int(frame[2])))
        elif line.startswith(("Thread", "Current thread")):
            stacks.append([])
    return stacks


class Python(Stacks):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dump = pathlib.Path(folder.name, "dump")

    def start_target(self, interpreter: str) -> subprocess.Popen[str]:
        """Returns when faulthandler has written all stacks."""
        process = self.start(interpreter, TARGET, self.dump)
        until = time.monotonic() + 60
        while " in <module>" not in self.dump.read_text():
            self.assertLess(time.monotonic(), until)
            time.sleep(0.05)
        return process

    def check(self, interpreter: str) -> None:
        process = self.start_target(interpreter)
        threads = self.read_one(process.pid)["threads"]
        expected = dumped(self.dump.read_text())
        found = [python_frames(thread) for thread in threads]
        self.assertEqual(settled(found), settled(expected))
        for thread in threads:
            self.assertTrue(thread["complete"], thread)
            self.assertTrue(thread["mixed"], thread)
            self.assertNotIn("_PyEval_EvalFrameDefault", names(thread))
        main = threads[0]
        order = [f["function"] for f in main["frames"] if f["kind"] == "python"]
        self.assertEqual(order.count("recurse"), 6)
        self.assertTrue(any("sleep" in name or "select" in name for name in names(main)[:2]))
        self.assertEqual([t["gil"] for t in threads].count("holds"), 1)
        self.assertIn("compute (" + str(TARGET), call(process.pid).stdout)

    def test_all_versions_agree_with_faulthandler(self) -> None:
        tried = 0
        for interpreter in candidates():
            version, reason = describe(interpreter)
            if reason:
                continue
            with self.subTest(version=version, interpreter=interpreter):
                self.check(interpreter)
            tried += 1
        self.assertGreater(tried, 0)

    def test_a_stopped_interpreter_is_read(self) -> None:
        process = self.start_target(sys.executable)
        before = settled([python_frames(t) for t in self.read_one(process.pid)["threads"]])
        process.send_signal(signal.SIGSTOP)
        stopped = self.read_one(process.pid)
        self.assertEqual(settled([python_frames(t) for t in stopped["threads"]]), before)
        process.send_signal(signal.SIGCONT)

    def test_an_interpreter_in_a_container_is_read(self) -> None:
        """Its threads have other, small numbers in there."""
        inside = ["unshare", "-p", "-f", "--mount-proc", "--kill-child"]
        done = subprocess.run([*inside, "true"], capture_output=True, check=False)
        if done.returncode != 0:
            self.skipTest("no PID namespace can be made")
        for interpreter in candidates():
            if describe(interpreter)[1]:
                continue
            with self.subTest(interpreter=interpreter):
                process = self.start(*inside, interpreter, TARGET, self.dump)
                (child,) = self.read_one(process.pid)["children"]
                threads = self.read_one(child["pid"])["threads"]
                functions = {frame[0] for t in threads for frame in python_frames(t)}
                self.assertLessEqual({"recurse", "compute", "wait"}, functions)
                self.end(process)

    def test_views(self) -> None:
        process = self.start_target(sys.executable)
        text = call("--python", process.pid).stdout
        self.assertNotIn("libc.so", text)
        self.assertIn("recurse", text)
        text = call("--native", process.pid).stdout
        self.assertNotIn("recurse", text)
        self.assertIn("libc.so", text)
        text = call("--verbose", process.pid).stdout
        self.assertIn("_start (", text)
        self.assertNotIn("_start (", call(process.pid).stdout)

    def test_two_samples_tell_what_moved(self) -> None:
        process = self.start(
            sys.executable, "-c", "import time\nprint('ready', flush=True)\ntime.sleep(1000)"
        )
        text = call("--twice", "0.1", process.pid).stdout
        self.assertIn("did not move", text)


if __name__ == "__main__":
    os.environ.pop("PYTHONFAULTHANDLER", None)
    unittest.main()
