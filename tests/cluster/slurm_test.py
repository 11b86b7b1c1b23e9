#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`srun perftracker run` as users of Slurm start jobs, on a real one (slurmhosts.py)."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from cluster import HOSTS, TRAIN, live  # noqa: E402
from slurmhosts import SlurmHosts  # noqa: E402


class SlurmTest(SlurmHosts):
    def srun(self, *words: str) -> None:
        """Its output is the first host's log."""
        log = open(self.folder / "log0", "wb")
        command = ["srun", f"--nodes={HOSTS}", "--ntasks-per-node=1", *words]
        self.jobs.append(
            subprocess.Popen(
                self.net.command(0, command),
                stdout=log,
                stderr=log,
                env=self.env,
                start_new_session=True,
            )  # fmt: skip
        )
        log.close()

    def assert_names_the_second_host(self) -> None:
        self.await_steps()
        self.begin_fault("sleep.1")
        self.until("a finding", lambda: self.report().get("verdict") == "abnormal")
        self.end_job()
        report = self.report()
        (finding,) = report["findings"]
        self.assertEqual((finding["ranks"], finding["hosts"]), ("1", "gpu-1"))
        self.assertIn("query_inventory", finding["function"]["name"])
        self.assertEqual(report["coverage"]["workers_analyzed"], HOSTS)
        self.assertEqual(self.log(0).count("event=joined hub=gpu-0"), HOSTS - 1)

    def run_words(self, *options: str) -> list[str]:
        return [live.PROGRAM, "run", "--out", f"{self.folder}/out0", "--min-gap", "0",
                "--no-audit", *options, "--"]  # fmt: skip

    def test_torchrun_under_srun(self) -> None:
        launch = f"-m torch.distributed.run --nnodes={HOSTS} --nproc-per-node=1"
        launch += " --rdzv-backend=c10d --rdzv-endpoint=gpu-0:29500 --rdzv-id=$SLURM_JOB_ID"
        words = " ".join([*self.run_words(), self.python, launch, TRAIN, str(self.folder)])
        self.srun("sh", "-c", f"exec {words}")
        self.assert_names_the_second_host()

    def test_a_rank_for_each_task_of_srun(self) -> None:
        ranks = "RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=0"
        ranks += " MASTER_ADDR=gpu-0 MASTER_PORT=29501"
        words = " ".join([*self.run_words(), self.python, TRAIN, str(self.folder)])
        self.srun("sh", "-c", f"{ranks} exec {words}")
        self.assert_names_the_second_host()


if __name__ == "__main__":
    unittest.main()
