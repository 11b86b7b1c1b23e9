# SPDX-License-Identifier: Apache-2.0
"""Fingerprints of real jobs accuse the same after they went over the wire.

Jobs of other people (shared/traces), and those that this checkout's own live jobs left
in out/, if there are any.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "traces"))
import real  # noqa: E402  # beside tests/traces

WIRE_REPORT = os.environ["PERFTRACKER_WIRE_REPORT"]
LIVE = real.ROOT / "out" / "live_faults"


def compare(paths: list[pathlib.Path]) -> tuple[int, str]:
    done = subprocess.run(
        [WIRE_REPORT, *map(str, paths)], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


class Wire(unittest.TestCase):
    def test_jobs_of_other_people(self) -> None:
        for name in sorted(p.name for p in (real.TRACES / "multi_rank").iterdir()):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                paths = []
                for rank, trace in enumerate(real.ranks_of(name)):
                    paths.append(pathlib.Path(folder) / f"{rank}.ptfp")
                    done = real.call("summarize", trace, "--rank", str(rank), "-o", paths[-1])
                    self.assertEqual(done.returncode, 0, done.stderr)
                status, text = compare(paths)
                self.assertEqual(status, 0, text)

    def test_live_jobs(self) -> None:
        for folder in sorted(LIVE.glob("*/fingerprints/*")):
            with self.subTest(folder.parent.parent.name):
                status, text = compare(sorted(folder.glob("*.ptfp")))
                self.assertEqual(status, 0, text)


if __name__ == "__main__":
    real.skip_without_traces()
    unittest.main()
