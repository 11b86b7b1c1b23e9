#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real Slurm over hosts of its own network: `srun perftracker run` as users of it start jobs.

slurmctld is on the first host, a slurmd on each; names of hosts are known as by a site's DNS.
Skipped where Slurm is not installed (slurmctld, slurmd, slurm-client) or hosts cannot be made.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from cluster import HOSTS, TRAIN, ClusterTest, live  # noqa: E402

PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"
CONF = """
ClusterName=test
SlurmctldHost={first}({address})
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
SlurmUser=root
SlurmdParameters=config_overrides
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
StateSaveLocation={folder}/state
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdLogFile={folder}/slurmd-%n.log
SlurmdSpoolDir={folder}/spool-%n
ReturnToService=2
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP
"""


class SlurmTest(ClusterTest):
    def setUp(self) -> None:
        super().setUp()
        for tool in ("slurmctld", "slurmd", "srun"):
            if shutil.which(tool, path=PATH) is None:
                self.skipTest(f"{tool} is not installed")
        self.name_hosts()
        nodes = "\n".join(
            f"NodeName={self.net.name(i)} NodeAddr={self.net.address(i)} CPUs=4 State=UNKNOWN"
            for i in range(HOSTS)
        )
        conf = self.folder / "slurm.conf"
        conf.write_text(
            CONF.format(
                first=self.net.name(0), address=self.net.address(0), folder=self.folder, nodes=nodes
            )
        )
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (self.folder / "state").mkdir()
        self.env |= {"SLURM_CONF": str(conf), "PATH": PATH}
        self.daemon(0, "slurmctld", "-D")
        for host in range(HOSTS):
            (self.folder / f"spool-{self.net.name(host)}").mkdir()
            self.daemon(host, "slurmd", "-D", "-N", self.net.name(host))
        self.until("Slurm's hosts", self.are_idle)

    def name_hosts(self) -> None:
        """`ip netns exec` lays these files over those of /etc."""
        text = "127.0.0.1 localhost\n" + "".join(
            f"{self.net.address(i)} {self.net.name(i)}\n" for i in range(HOSTS)
        )
        for host in range(HOSTS):
            etc = pathlib.Path("/etc/netns") / self.net.namespace(host)
            etc.mkdir(parents=True)
            self.addCleanup(shutil.rmtree, etc)
            (etc / "hosts").write_text(text)

    def daemon(self, host: int, *words: str) -> None:
        log = open(self.folder / f"{words[0]}-{host}.out", "wb")
        process = subprocess.Popen(
            self.net.command(host, words), stdout=log, stderr=log, env=self.env,
            start_new_session=True,
        )  # fmt: skip
        log.close()
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)

    def are_idle(self) -> bool:
        words = self.net.command(0, ["sinfo", "--noheader", "--format=%D %t"])
        said = subprocess.run(words, capture_output=True, text=True, env=self.env)
        return said.stdout.split() == [str(HOSTS), "idle"]

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
