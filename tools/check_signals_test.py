# SPDX-License-Identifier: Apache-2.0
"""Tests of tools/check-signals on source trees made for it, and on the tree's sources."""

from __future__ import annotations

import pathlib
import subprocess
import tempfile
import unittest

TOOL = pathlib.Path(__file__).with_name("check-signals")


def run_on(name: str, text: str) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True)
        path.write_text(text)
        command = [str(TOOL), folder]
        return subprocess.run(command, capture_output=True, text=True, check=False)


class CheckSignals(unittest.TestCase):
    def test_a_direct_call_is_refused_with_its_place(self) -> None:
        for call in ("kill(pid, 9)", "uv_process_kill(&p, 9)", "syscall(SYS_tgkill, 1, 2, 9)"):
            done = run_on("live/pool.c", f"\n\t(void){call};\n")
            self.assertEqual(done.returncode, 1, call)
            self.assertIn("live/pool.c:2:", done.stdout)

    def test_base_and_tests_may(self) -> None:
        for name in ("base/subprocess.c", "live/hostd/pool_test.c"):
            self.assertEqual(run_on(name, "\tkill(pid, 9);\n").returncode, 0, name)

    def test_words_that_look_like_it_are_no_calls(self) -> None:
        done = run_on("live/hostd/hostd.c", "/* kill(0) is everybody */\n\tpool_kill(pool, id);\n")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_the_sources_of_the_tree_pass(self) -> None:
        done = subprocess.run([str(TOOL)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
