#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What deploy/slurm gives a site, on a real slurmd with hostd: plugin, prolog, epilog, task prolog.

The plugin's tests are skipped where it was not built (<slurm/spank.h>: libslurm-dev).
"""

from __future__ import annotations

import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from cluster import LIMIT_S, live  # noqa: E402
from slurmhosts import SlurmHosts  # noqa: E402

DEPLOY = live.ROOT / "deploy" / "slurm"
PLUGIN = pathlib.Path(live.PROGRAM).parent.parent / "slurm" / "perftracker-spank.so"
HOOK = live.ROOT / "python"
# Says its environment, then iterates until it is watched or said not to be.
TASK = """
import json, os, sys, time
print("env " + json.dumps({k: v for k, v in os.environ.items() if not k.startswith("SLURM")}))
try:
    import perftracker
except ImportError:
    print("state none")
    sys.exit(0)
perftracker.step()
until = time.monotonic() + 120
while perftracker.status()["state"] not in ("active", "disabled") and time.monotonic() < until:
    time.sleep(0.01)
    perftracker.step()
print("state " + perftracker.status()["state"])
"""


class SiteTest(SlurmHosts):
    hosts = 1
    node = "Gres=gpu:2"
    extra = """SelectType=select/cons_tres
GresTypes=gpu
PrologFlags=Alloc
Prolog={folder}/prolog
Epilog={folder}/epilog
TaskProlog={folder}/task-prolog
PlugStackConfig={folder}/plugstack.conf
"""
    slurm = "asked"  # of the task prolog
    plugin = ""  # words of plugstack.conf; empty: no plugin

    def write_more(self) -> None:
        self.socket, self.map = self.folder / "run" / "hostd.sock", self.folder / "map"
        conf = self.folder / "site.conf"
        conf.write_text(
            f"PERFTRACKER_SLURM={self.slurm}\nPERFTRACKER_HOOK={HOOK}\n"
            f"PERFTRACKER_JOB_MAP={self.map}\nPERFTRACKER_HOSTD={self.socket}\n"
        )
        for name in ("prolog", "epilog", "task-prolog"):
            script = self.folder / name
            script.write_text(
                f"#!/bin/sh\nexport PERFTRACKER_SLURM_CONF={conf}\nexec {DEPLOY / name}\n"
            )
            script.chmod(0o755)
        devices = [self.folder / f"gpu{i}" for i in range(2)]
        for device in devices:
            os.mknod(device, 0o600 | stat.S_IFCHR, os.makedev(1, 3 + 2 * devices.index(device)))
        (self.folder / "gres.conf").write_text(
            "".join(f"Name=gpu File={device}\n" for device in devices)
        )
        words = f"optional {PLUGIN} hook={HOOK} hostd={self.socket} {self.plugin}\n"
        (self.folder / "plugstack.conf").write_text(words if self.plugin else "")
        (self.folder / "task.py").write_text(TASK)
        for name in [n for n in self.env if n.startswith(("PERFTRACKER", "PYTHON"))]:
            del self.env[name]

    def start_hostd(self) -> None:
        """No broker answers: hostd watches jobs alone."""
        site = self.folder / "site.yaml"
        site.write_text(
            f"bus: {{url: 'nats://127.0.0.1:4'}}\nhostd: {{socket: {self.socket}, "
            f"folder: {self.folder}/hostd}}\njobs: {{audit: no, linger_seconds: 1}}\n"
        )
        self.daemon(0, live.PROGRAM, "hostd", "--config", str(site))
        self.until("hostd", self.socket.exists)

    def srun(self, *options: str, command: tuple[str, ...] = (), **env: str) -> tuple[int, str]:
        words = ["srun", "--ntasks=1", *options]
        words += command or (self.python, str(self.folder / "task.py"))
        done = subprocess.run(
            self.net.command(0, words), capture_output=True, text=True,
            env={**self.env, **env}, timeout=LIMIT_S,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    def task(self, *options: str, **env: str) -> tuple[dict[str, str], str]:
        """The task's environment, and whether it was watched."""
        status, text = self.srun(*options, **env)
        self.assertEqual(status, 0, text)
        said = dict(line.split(" ", 1) for line in text.splitlines() if " " in line)
        return json.loads(said["env"]), said["state"]

    def assert_untouched(self, env: dict[str, str]) -> None:
        self.assertEqual([n for n in env if n.startswith(("PERFTRACKER", "PYTHONP"))], [])


class Plugin(SiteTest):
    plugin = "all"

    def setUp(self) -> None:
        if not PLUGIN.exists():
            self.skipTest(f"{PLUGIN} was not built: it needs slurm/spank.h")
        super().setUp()

    def test_tasks_are_watched_unless_they_say_no(self) -> None:
        self.assert_untouched(self.task()[0])  # hostd does not run
        self.start_hostd()
        env, state = self.task()
        self.assertEqual((env["PERFTRACKER"], env["PYTHONPATH"]), ("1", str(HOOK)))
        self.assertEqual((env["PERFTRACKER_HOSTD"], state), (str(self.socket), "active"))
        env, state = self.task("--perftracker=no", PYTHONPATH="/mine")
        self.assertEqual((env["PERFTRACKER"], env["PYTHONPATH"]), ("0", "/mine"))
        env, state = self.task("--perftracker", PERFTRACKER="0", PYTHONPATH="/mine")
        self.assertEqual((env["PERFTRACKER"], env["PYTHONPATH"]), ("1", f"{HOOK}:/mine"))
        self.assertEqual(state, "active")
        status, text = self.srun("--perftracker=maybe", command=("true",))
        self.assertNotEqual(status, 0)
        self.assertIn("--perftracker=maybe: expected yes or no", text)
        self.batch_takes_the_option()

    def batch_takes_the_option(self) -> None:
        """That of sbatch is also in force for each srun of the script."""
        script, out = self.folder / "job.sbatch", self.folder / "batch.out"
        script.write_text(
            f"#!/bin/sh\n#SBATCH --perftracker=no --output={out}\n"
            "echo batch $PERFTRACKER\nsrun sh -c 'echo step $PERFTRACKER'\n"
        )
        words = self.net.command(0, ["sbatch", "--wait", str(script)])
        done = subprocess.run(words, capture_output=True, text=True, env=self.env, timeout=LIMIT_S)
        said = out.read_text() if out.exists() else ""
        self.assertEqual((done.returncode, said), (0, "batch 0\nstep 0\n"), done.stderr)


class Scripts(SiteTest):
    def gpus(self) -> dict[str, list[str]]:
        """The job map as dcgm-exporter reads it."""
        return {p.name: p.read_text().split() for p in self.map.glob("[0-9]*")}

    def test_task_prolog_and_the_map_of_gpus(self) -> None:
        self.assertNotIn("PYTHONPATH", self.task(PERFTRACKER="1")[0])  # hostd does not run
        self.start_hostd()
        self.assert_untouched(self.task()[0])  # did not ask
        env, state = self.task(PERFTRACKER="1")
        self.assertEqual((env["PYTHONPATH"], state), (str(HOOK), "active"))
        self.assertEqual(env["PERFTRACKER_HOSTD"], str(self.socket))
        show = "echo job $SLURM_JOB_ID;" + f" grep -H . {self.map}/[0-9]*"
        status, text = self.srun("--gpus=2", command=("sh", "-c", show))
        self.assertEqual(status, 0, text)
        job = text.partition("job ")[2].split()[0]
        self.assertEqual(
            sorted(
                line.removeprefix(f"{self.map}/") for line in text.splitlines() if "/map/" in line
            ),
            [f"0:{job}", f"1:{job}"],
        )
        self.until("the epilog", lambda: self.gpus() == {})


class Map(unittest.TestCase):
    """Prolog and epilog alone: jobs that share GPUs, and what must not fail a host."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.map = self.folder / "map"
        (self.folder / "conf").write_text(f"PERFTRACKER_JOB_MAP={self.map}\n")

    def call(self, name: str, job: str, gpus: str = "") -> None:
        env = {"PERFTRACKER_SLURM_CONF": str(self.folder / "conf"), "SLURM_JOB_ID": job}
        env |= {"SLURM_JOB_GPUS": gpus} if gpus else {}
        done = subprocess.run([DEPLOY / name], env=env, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def files(self) -> dict[str, str]:
        return {p.name: p.read_text() for p in self.map.iterdir()}

    def test_jobs_share_gpus_and_end_in_any_order(self) -> None:
        self.call("prolog", "7", "0,1")
        self.call("prolog", "77", "1,2")
        self.call("prolog", "77", "1,2")  # once per step without PrologFlags=Alloc
        self.assertEqual(self.files(), {"0": "7\n", "1": "7\n77\n", "2": "77\n"})
        self.call("epilog", "7")
        self.assertEqual(self.files(), {"1": "77\n", "2": "77\n"})
        self.call("epilog", "5")
        self.call("epilog", "77")
        self.assertEqual(self.files(), {})

    def test_jobs_that_begin_and_end_together(self) -> None:
        jobs = [str(1000 + i) for i in range(20)]
        for name, expected in (("prolog", sorted(jobs)), ("epilog", [])):
            started = [
                subprocess.Popen(
                    [DEPLOY / name],
                    env={"PERFTRACKER_SLURM_CONF": str(self.folder / "conf"),
                         "SLURM_JOB_ID": job, "SLURM_JOB_GPUS": "0"},
                )
                for job in jobs
            ]  # fmt: skip
            self.assertEqual([process.wait() for process in started], [0] * len(jobs))
            self.assertEqual(sorted(self.files().get("0", "").split()), expected)

    def test_trouble_never_fails_a_host(self) -> None:
        self.call("epilog", "7")  # no folder
        self.call("prolog", "7")  # no GPU
        self.assertFalse(self.map.exists())
        self.call("prolog", "7", "MIG-1,../x,0")
        self.assertEqual(self.files(), {"0": "7\n"})
        (self.folder / "conf").write_text(f"PERFTRACKER_JOB_MAP={self.folder}/conf\n")
        self.call("prolog", "7", "0")
        self.call("epilog", "7")
        (self.folder / "conf").write_text("this is not sh (\n")
        self.call("prolog", "7", "0")


if __name__ == "__main__":
    unittest.main()
