# SPDX-License-Identifier: Apache-2.0
"""A real Slurm over hosts of its own network: its tests' base.

slurmctld is on the first host, a slurmd on each; names of hosts are known as by a site's DNS.
Skipped where Slurm is not installed (slurmctld, slurmd, slurm-client) or hosts cannot be made.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from cluster import ClusterTest  # noqa: E402

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
{extra}
"""


class SlurmHosts(ClusterTest):
    """extra: more lines of slurm.conf; node: more words of each host's line."""

    extra = ""
    node = ""

    def setUp(self) -> None:
        super().setUp()
        for tool in ("slurmctld", "slurmd", "srun"):
            if shutil.which(tool, path=PATH) is None:
                self.skipTest(f"{tool} is not installed")
        self.name_hosts()
        nodes = "\n".join(
            f"NodeName={self.net.name(i)} NodeAddr={self.net.address(i)} CPUs=4 State=UNKNOWN"
            f" {self.node}"
            for i in range(self.hosts)
        )
        conf = self.folder / "slurm.conf"
        conf.write_text(
            CONF.format(
                first=self.net.name(0),
                address=self.net.address(0),
                folder=self.folder,
                nodes=nodes,
                extra=self.extra.format(folder=self.folder),
            )  # fmt: skip
        )
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (self.folder / "state").mkdir()
        self.env |= {"SLURM_CONF": str(conf), "PATH": PATH}
        self.write_more()
        self.daemon(0, "slurmctld", "-D")
        for host in range(self.hosts):
            (self.folder / f"spool-{self.net.name(host)}").mkdir()
            self.daemon(host, "slurmd", "-D", "-N", self.net.name(host))
        self.until("Slurm's hosts", self.are_idle)

    def write_more(self) -> None:
        """Files that `extra` names."""

    def name_hosts(self) -> None:
        """`ip netns exec` lays these files over those of /etc."""
        text = "127.0.0.1 localhost\n" + "".join(
            f"{self.net.address(i)} {self.net.name(i)}\n" for i in range(self.hosts)
        )
        for host in range(self.hosts):
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
        return said.stdout.split() == [str(self.hosts), "idle"]
