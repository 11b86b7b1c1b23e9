# SPDX-License-Identifier: Apache-2.0
"""Tests of tools/check-includes on source trees made for it."""

from __future__ import annotations

import pathlib
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

    def test_two_folders_of_collect_are_two_stages(self) -> None:
        done = run_on({"collect/agent/a.c": '#include "collect/host/procfs.h"\n'})
        self.assertEqual(done.returncode, 1)

    def test_nobody_climbs_out_of_a_folder(self) -> None:
        done = run_on({"cmd/main.c": '#include "../base/str.h"\n'})
        self.assertEqual(done.returncode, 1)
        self.assertIn("goes through ../", done.stdout)

    def test_base_uses_nothing_else(self) -> None:
        done = run_on({"base/str.c": '# include "format/event.h"\n'})
        self.assertEqual(done.returncode, 1)

    def test_commands_may_use_everything(self) -> None:
        done = run_on({"cmd/main.c": '#include "serve/hub.h"\n#include "report/html.h"\n'})
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
