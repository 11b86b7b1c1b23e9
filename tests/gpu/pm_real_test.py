# SPDX-License-Identifier: Apache-2.0
"""PM sampling with the real libcupti of each version of CUDA that has it and that tools/gpu-headers
has fetched: which counters are chosen for each chip that it knows, as its own host API says, and
that the device's side refuses a driver that can do nothing, by a word.

No GPU is needed. A libcupti of 13.2 or later wants a driver for all answers: that is a double.
Where the driver's private functions are missing 13.2's crashes by itself, so that is not tried.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "live"))

from live import CACHE  # noqa: E402

KITS = CACHE / "gpu-headers"
FIRST = (12, 6)
CRASHES = (13, 2)


def number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def libraries() -> dict[str, pathlib.Path]:
    found = {path.parts[-3]: path for path in KITS.glob("*/lib/libcupti.so.*")}
    return {name: found[name] for name in sorted(found, key=number) if number(name) >= FIRST}


class Real(unittest.TestCase):
    def setUp(self) -> None:
        self.libraries = libraries()
        if not self.libraries:
            self.skipTest("no libcupti of CUDA 12.6 or later: tools/gpu-headers")

    def run_with_driver(self, program: str, **more: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "LD_LIBRARY_PATH": os.environ["CUDA_DOUBLE_DIR"], **more}
        return subprocess.run(
            [os.environ[program]], env=env, capture_output=True, text=True, timeout=120
        )

    def test_the_choice_for_every_chip(self) -> None:
        for version, path in self.libraries.items():
            with self.subTest(version):
                output = self.run_with_driver(
                    "PM_CHOICE_TEST", CUPTI_REAL=str(path), CUDA_DOUBLE_TABLE="1"
                )
                self.assertEqual(output.returncode, 0, output.stdout + output.stderr)
                self.assertIn("GH100: 13", output.stdout)

    def test_a_driver_that_can_do_nothing_is_refused(self) -> None:
        for version, path in self.libraries.items():
            if number(version) == CRASHES:
                continue
            with self.subTest(version):
                output = self.run_with_driver("PM_SAMPLES", CUPTI_LIBRARY=str(path))
                self.assertEqual(output.returncode, 77, output.stderr)
                self.assertIn("PM sampling: CUPTI's error", output.stderr)


if __name__ == "__main__":
    if not libraries():
        sys.exit(77)
    unittest.main()
