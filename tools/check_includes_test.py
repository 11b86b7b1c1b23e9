# SPDX-License-Identifier: Apache-2.0
"""Tests of tools/check-includes on source trees made for it."""

from __future__ import annotations

import pathlib
import runpy
import subprocess
import tempfile
import unittest

TOOL = pathlib.Path(__file__).with_name("check-includes")


def run_on(files: dict[str, str]) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        command = [str(TOOL), folder]
        return subprocess.run(command, capture_output=True, text=True, check=False)


class CheckIncludes(unittest.TestCase):
    def test_a_stage_may_use_base_format_and_itself(self) -> None:
        text = '#include "report/text.h"\n#include "base/str.h"\n#include <stdio.h>\n'
        done = run_on({"report/text.c": text + '#include "format/finding.h"\n'})
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_a_stage_may_not_use_another_stage(self) -> None:
        done = run_on({"report/text.c": '\n#include "localize/blame.h"\n'})
        self.assertEqual(done.returncode, 1)
        self.assertIn("report/text.c:2:", done.stdout)
        self.assertIn("is not for report", done.stdout)

    def test_what_one_stage_tells_another_is_not_the_other_stage(self) -> None:
        done = run_on({"agent/core/a.c": '#include "host/process/procfs.h"\n'})
        self.assertEqual(done.returncode, 1)

    def test_a_private_header_stays_in_its_folder(self) -> None:
        done = run_on({"live/hub/hub.c": '#include "live/hostd/hostd_parts.h"\n'})
        self.assertEqual(done.returncode, 1)
        self.assertIn("is private to its folder", done.stdout)

    def test_a_file_name_stands_once(self) -> None:
        done = run_on({"host/pool.c": "\n", "live/pool.c": "\n"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("pool.c: host/pool.c and live/pool.c", done.stdout)

    def test_a_command_may_be_named_as_its_module(self) -> None:
        done = run_on({"cmd/doctor.c": "\n", "doctor/doctor.c": "\n"})
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_a_folder_has_a_limit(self) -> None:
        done = run_on({f"base/file{number}.c": "\n" for number in range(41)})
        self.assertEqual(done.returncode, 1)
        self.assertIn("41 files, the limit is 40", done.stdout)

    def test_an_include_through_the_parent_folder_is_refused(self) -> None:
        done = run_on({"cmd/main.c": '#include "../base/str.h"\n'})
        self.assertEqual(done.returncode, 1)
        self.assertIn("goes through ../", done.stdout)

    def test_base_uses_nothing_else(self) -> None:
        done = run_on({"base/str.c": '# include "format/event.h"\n'})
        self.assertEqual(done.returncode, 1)

    def test_commands_may_use_everything(self) -> None:
        done = run_on({"cmd/main.c": '#include "live/hub/hub.h"\n#include "report/html/html.h"\n'})
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_every_folder_that_it_knows_is_there(self) -> None:
        names = runpy.run_path(str(TOOL))
        for folder in names["ALLOWED"]:
            self.assertTrue((TOOL.parents[1] / "src" / folder).is_dir(), folder)


if __name__ == "__main__":
    unittest.main()
