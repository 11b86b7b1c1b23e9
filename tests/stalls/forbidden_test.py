#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`perftracker stacks` and `stalls` where a seccomp filter forbids their calls: one clear line."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import pathlib
import platform
import struct
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = os.environ.get("PERFTRACKER_PROGRAM", str(ROOT / "build/src/cmd/perftracker"))
NUMBERS = {
    "x86_64": {"ptrace": 101, "process_vm_readv": 310, "perf_event_open": 298},
    "aarch64": {"ptrace": 117, "process_vm_readv": 270, "perf_event_open": 241},
}
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = 38, 22, 2
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06  # of classic BPF
ALLOW, FAIL = 0x7FFF0000, 0x00050000


class Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("filter", ctypes.c_void_p)]  # noqa: RUF012


def forbid(numbers: list[int], error: int) -> None:
    """These system calls fail in this process and in what it starts."""
    last = len(numbers)
    code = [(LOAD, 0, 0, 0)]
    code += [(JUMP_EQUAL, last - place, 0, number) for place, number in enumerate(numbers)]
    code += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, FAIL | error)]
    raw = b"".join(struct.pack("HBBI", *one) for one in code)
    buffer = ctypes.create_string_buffer(raw, len(raw))
    program = Program(len(code), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs")
    if libc.prctl(PR_SET_SECCOMP, FILTER, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


@unittest.skipUnless(platform.machine() in NUMBERS, "no numbers of system calls for this machine")
class Forbidden(unittest.TestCase):
    def setUp(self) -> None:
        loop = "import time\nprint(flush=True)\nwhile True:\n    time.sleep(0.05)"
        self.target = subprocess.Popen([sys.executable, "-c", loop], stdout=subprocess.PIPE)
        self.target.stdout.readline()

    def tearDown(self) -> None:
        """The target has run all the time, and is neither stopped nor traced."""
        status = pathlib.Path(f"/proc/{self.target.pid}/status").read_text()
        ended = self.target.poll()
        self.target.kill()
        self.target.communicate()
        self.assertIsNone(ended)
        self.assertIn("TracerPid:\t0\n", status)
        self.assertRegex(status, r"State:\t[SR] ")

    def ask(self, calls: list[str], error: int, *words: object) -> subprocess.CompletedProcess[str]:
        numbers = [NUMBERS[platform.machine()][call] for call in calls]
        try:
            return subprocess.run(
                [PROGRAM, *map(str, words)],
                capture_output=True, text=True, timeout=300,
                preexec_fn=lambda: forbid(numbers, error),
            )  # fmt: skip
        except subprocess.SubprocessError as refused:
            self.skipTest(f"no filter can be set here: {refused}")

    def test_stacks_name_the_filter_and_leave_the_process_alone(self) -> None:
        for error in (errno.EPERM, errno.ENOSYS):
            done = self.ask(["ptrace", "process_vm_readv"], error, "stacks", self.target.pid)
            self.assertEqual(done.returncode, 1, done)
            said = done.stderr.splitlines()
            self.assertEqual(len(said), 1, said)
            self.assertIn(f"process {self.target.pid} cannot be read", said[0])
            if os.geteuid() == 0 or error == errno.ENOSYS:  # else the user may be the reason
                self.assertIn("a seccomp filter forbids ptrace or process_vm_readv", said[0])

    def test_stalls_say_what_the_filter_hides_and_judge_by_the_rest(self) -> None:
        for error in (errno.EPERM, errno.ENOSYS):
            done = self.ask(
                ["perf_event_open"], error, "stalls", "--pid", self.target.pid,
                "--seconds", 1, "--format", "json",
            )  # fmt: skip
            self.assertEqual((done.returncode, done.stderr), (0, ""), done)
            verdict = json.loads(done.stdout)
            self.assertNotEqual(verdict["verdict"], "no_stall")  # not all could be seen
            self.assertEqual([one["pid"] for one in verdict["processes"]], [self.target.pid])
            text = "\n".join(verdict["not_seen"])
            self.assertIn("exact times of threads", text)
            if os.geteuid() == 0 or error == errno.ENOSYS:
                self.assertIn("a seccomp filter forbids perf_event_open", text)

    def test_stalls_need_no_ptrace(self) -> None:
        done = self.ask(
            ["ptrace", "process_vm_readv"], errno.EPERM, "stalls", "--pid", self.target.pid,
            "--seconds", 1, "--format", "json",
        )  # fmt: skip
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        self.assertTrue(json.loads(done.stdout)["threads"])


if __name__ == "__main__":
    unittest.main()
