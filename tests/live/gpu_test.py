# SPDX-License-Identifier: Apache-2.0
"""GPUs that the daemon watches: a double of NVML, scripted workers, real sidecars."""

from __future__ import annotations

import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from live import PROGRAM, QUICK, LiveTest  # noqa: E402

DOUBLES = pathlib.Path(PROGRAM).resolve().parents[2] / "tests/gpu/doubles"


class Gpus(LiveTest):
    def setUp(self) -> None:
        super().setUp()
        if not (DOUBLES / "libnvidia-ml.so.1").exists():
            self.skipTest("no double of NVML beside the program")
        before = os.environ.get("LD_LIBRARY_PATH")
        self.env["LD_LIBRARY_PATH"] = f"{DOUBLES}{':' + before if before else ''}"

    def gpus(self, double: str) -> list[dict]:
        """The GPUs of rank 1, of two workers on a host whose NVML is a double."""
        self.env["NVML_DOUBLE"] = double
        slow = ("--world", "2", "--slow-at", "80", "--iterations", "130")
        words = self.fake(*slow, *self.until_report())
        done = self.run_job(*QUICK, "--no-checkup", "--keep-traces", *words, limit_s=120)
        self.said = done.stderr.decode()
        self.assertEqual((done.returncode, done.stdout), (0, b"job done\n"), self.said)
        sidecar = str(self.out / "traces" / "1-1.json.sidecar")
        answer = self.ask("dump", "--format", "json", sidecar)
        return json.loads(answer.stdout)["gpus"]

    def test_a_sidecar_has_the_samples_of_the_workers_gpu(self) -> None:
        (gpu,) = self.gpus("")
        self.assertEqual(gpu["index"], 1)
        self.assertTrue(gpu["by_rank"], "the double shows no processes")
        self.assertEqual(gpu["name"], "NVIDIA H100 80GB HBM3")
        self.assertEqual(gpu["metrics"]["power"]["mean"], 650)
        self.assertEqual(gpu["metrics"]["throttled_power"]["unit"], "s")

    def test_a_fault_is_reported_at_once(self) -> None:
        self.gpus("fault")
        self.assertIn("event=gpu-fault gpu=0 number=79", self.said)

    def test_ranks_that_share_a_gpu_are_told_once(self) -> None:
        pids = self.env["NVML_DOUBLE_PIDS"] = str(self.folder / "pids")
        words = ("--world", "2", "--iterations", "300", "--ms", "10", "--pids", pids)
        done = self.run_job(*QUICK, *self.fake(*words), limit_s=120)
        said = done.stderr.decode()
        self.assertEqual(said.count("event=gpu-shared gpu=0 ranks=0-1 "), 1, said)

    def test_a_driver_that_refuses_is_reported(self) -> None:
        (gpu,) = self.gpus("refuse")
        self.assertEqual((gpu["index"], gpu["why"]), (None, "NVML: Driver Not Loaded (9)"))

    def test_a_driver_that_hangs_blocks_nothing(self) -> None:
        (gpu,) = self.gpus("hang")
        self.assertEqual((gpu["index"], gpu["why"]), (None, "not looked for yet"))
        self.assertEqual(self.report("report-1.json")["coverage"]["workers_analyzed"], 2)
