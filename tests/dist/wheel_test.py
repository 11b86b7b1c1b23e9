# SPDX-License-Identifier: Apache-2.0
"""The wheel of `make dist` in a fresh virtual environment; skipped where dist/ has none.

The environment takes torch from the interpreter PERFTRACKER_PYTHON by a .pth file.
"""

from __future__ import annotations

import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))

import dist_check  # noqa: E402

TORCH = os.environ.get("PERFTRACKER_PYTHON", str(ROOT / ".venv" / "bin" / "python"))
STEPS = 30
JOB = f"""
import os, sys, torch, perftracker
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(1)
data = torch.utils.data.DataLoader(torch.rand({STEPS} * 4, 8), batch_size=4)
for batch in data:
    optimizer.zero_grad()
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
print("hook", perftracker.__file__)
print("agent", os.environ.get("PERFTRACKER_AGENT"))
print("state", perftracker.status()["state"], perftracker.status()["step"])
"""


def lines(text: str) -> dict[str, str]:
    return dict(line.split(" ", 1) for line in text.splitlines() if " " in line)


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        wheels = sorted((ROOT / "dist").glob("perftracker-*x86_64.whl"))
        if not wheels:
            raise unittest.SkipTest("dist/ has no wheel: `make dist` makes it")
        cls.wheel = wheels[0]
        cls.folder = tempfile.TemporaryDirectory()
        cls.venv = pathlib.Path(cls.folder.name) / "venv"
        base = subprocess.run(
            [TORCH, "-c", "import sys; print(sys.base_prefix + '/bin/python3')"],
            capture_output=True,
            text=True,
        ).stdout.strip()
        python = base if os.path.exists(base) else sys.executable
        subprocess.run([python, "-m", "venv", str(cls.venv)], check=True)
        subprocess.run(
            [str(cls.venv / "bin/pip"), "install", "-q", "--no-index", "--no-deps"]
            + ["--disable-pip-version-check", str(cls.wheel)],
            check=True,
        )
        cls.env = {k: v for k, v in os.environ.items() if not k.startswith("PERFTRACKER")}
        cls.env["PATH"] = f"{cls.venv}/bin:{os.environ['PATH']}"
        cls.env["PERFTRACKER_STORE"] = "none"

    @classmethod
    def tearDownClass(cls) -> None:
        cls.folder.cleanup()

    def run_program(self, *args: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["perftracker", *args], env=self.env, capture_output=True, text=True, timeout=600
        )
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def with_torch(self) -> None:
        find = "import torch, os; print(os.path.dirname(os.path.dirname(torch.__file__)))"
        done = subprocess.run([TORCH, "-c", find], capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest(f"{TORCH} has no torch")
        (site,) = self.venv.glob("lib/python*/site-packages")
        (site / "torch.pth").write_text(done.stdout)

    def test_is_as_it_should_be(self) -> None:
        self.assertEqual(dist_check.check(self.wheel), [])

    def test_is_on_the_path(self) -> None:
        self.assertIn("perftracker ", self.run_program("--version").stdout)
        self.assertIn("usage", self.run_program("run", "--help").stdout.lower())

    def test_package_without_torch_or_a_daemon_does_nothing(self) -> None:
        code = "import perftracker; perftracker.step(); print(perftracker.__file__)"
        done = subprocess.run(
            [str(self.venv / "bin/python"), "-c", code],
            env=self.env,
            capture_output=True,
            text=True,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(str(self.venv), done.stdout)

    def test_job_runs_with_the_hook_and_the_agent_of_the_wheel(self) -> None:
        self.with_torch()
        script = pathlib.Path(self.folder.name) / "train.py"
        script.write_text(JOB)
        out = str(pathlib.Path(self.folder.name) / "out")
        python = str(self.venv / "bin/python")
        done = self.run_program("run", "--out", out, "--", python, str(script))
        said = lines(done.stdout)
        place = f"{self.venv}/libexec/perftracker"
        self.assertEqual(said["agent"], f"{place}/libperftracker-agent.so")
        self.assertTrue(said["hook"].startswith(f"{place}/python/perftracker/"), said)
        state, step = said["state"].split()
        self.assertNotEqual(state, "disabled", done.stderr)
        self.assertGreaterEqual(int(step), STEPS - 1, said)

    def test_job_without_the_command_is_left_alone(self) -> None:
        self.with_torch()
        script = pathlib.Path(self.folder.name) / "plain.py"
        script.write_text(JOB)
        done = subprocess.run(
            [str(self.venv / "bin/python"), str(script)],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=600,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(lines(done.stdout)["agent"], "None")

    def test_traces_are_analyzed(self) -> None:
        out = pathlib.Path(self.folder.name) / "traces"
        self.run_program("simulate", "--scenario", "nic-bond", "-o", str(out))
        done = subprocess.run(
            ["perftracker", "analyze", "--format", "json", str(out)],
            env=self.env,
            capture_output=True,
            text=True,
        )
        found = {finding["id"] for finding in json.loads(done.stdout)["findings"]}
        self.assertIn("PT-202", found)

    def test_stacks_of_a_process(self) -> None:
        """Native frames are read by the unwinder that is linked in."""
        child = subprocess.Popen(
            [str(self.venv / "bin/python"), "-c", "print(1, flush=True); input()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            child.stdout.readline()
            text = self.run_program("stacks", str(child.pid)).stdout
        finally:
            child.communicate(b"\n")
        self.assertIn("<module>", text)
        self.assertRegex(text, r"\n +0  \S*(read|recv|poll)")

    def test_uninstall_leaves_nothing(self) -> None:
        """Runs in an environment of its own."""
        with tempfile.TemporaryDirectory() as folder:
            venv = pathlib.Path(folder) / "v"
            subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
            before = {p for p in venv.rglob("*") if p.is_file() and p.suffix != ".pyc"}
            quiet = ["-q", "--disable-pip-version-check"]
            pip = str(venv / "bin/pip")
            subprocess.run(
                [pip, "install", *quiet, "--no-index", "--no-deps", str(self.wheel)], check=True
            )
            subprocess.run([pip, "uninstall", "-y", *quiet, "perftracker"], check=True)
            after = {p for p in venv.rglob("*") if p.is_file() and p.suffix != ".pyc"}
            self.assertEqual(after, before)


class Aarch64(unittest.TestCase):
    """The other machine's wheel, unpacked, by qemu-user with Debian's libc for it (packages
    qemu-user-static and libc6-arm64-cross)."""

    def setUp(self) -> None:
        wheels = sorted((ROOT / "dist").glob("perftracker-*aarch64.whl"))
        if not wheels:
            self.skipTest("dist/ has no wheel for aarch64: `make dist` makes it")
        self.wheel = wheels[0]
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_program(self, *words: str) -> str:
        emulator, libc = shutil.which("qemu-aarch64-static"), "/usr/aarch64-linux-gnu"
        if platform.machine() == "aarch64":
            emulate = []
        elif emulator is None or not os.path.exists(f"{libc}/lib/libc.so.6"):
            self.skipTest("qemu-user-static or libc6-arm64-cross is not installed")
        else:
            emulate = [emulator, "-L", libc]
        with zipfile.ZipFile(self.wheel) as archive:
            archive.extractall(self.folder)
        (program,) = self.folder.rglob("scripts/perftracker")
        program.chmod(0o755)
        done = subprocess.run(
            [*emulate, str(program), *words], capture_output=True, text=True, timeout=600,
            env={**os.environ, "PERFTRACKER_STORE": "none"},
        )  # fmt: skip
        self.assertIn(done.returncode, (0, 3), done.stderr)
        return done.stdout

    def test_is_as_it_should_be(self) -> None:
        self.assertEqual(dist_check.check(self.wheel), [])
        with zipfile.ZipFile(self.wheel) as archive:
            (name,) = (n for n in archive.namelist() if n.endswith("scripts/perftracker"))
            self.assertEqual(archive.read(name)[18:20], b"\xb7\x00")  # EM_AARCH64

    def test_says_its_version(self) -> None:
        self.assertIn("perftracker ", self.run_program("--version"))

    def test_a_job_is_diagnosed(self) -> None:
        traces = str(self.folder / "traces")
        few = ("--workers", "16", "--iterations", "3")  # an emulator is slow
        self.run_program("simulate", "--scenario", "nic-bond", *few, "-o", traces)
        text = self.run_program("analyze", "--format", "json", traces)
        self.assertIn("PT-202", {finding["id"] for finding in json.loads(text)["findings"]})


if __name__ == "__main__":
    unittest.main()
