# SPDX-License-Identifier: Apache-2.0
"""The .rpm of `make dist`, installed, upgraded and erased below a folder by rpm itself."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Rpm(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        packages = sorted((ROOT / "dist").glob("*.x86_64.rpm"))
        if not packages:
            raise unittest.SkipTest("dist/ has no .rpm: `make dist` makes it")
        if shutil.which("rpm") is None:
            raise unittest.SkipTest("rpm is not installed")
        cls.package = str(packages[0])

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def rpm(self, *words: str, status: int = 0) -> str:
        done = subprocess.run(["rpm", *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def inside(self, *words: str) -> str:
        """Without its scripts, whose shell is not there, and what it needs: libc."""
        return self.rpm(f"--root={self.root}", "--nodeps", "--noscripts", *words)

    def test_install_run_verify_upgrade_erase(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("rpm --root needs root")
        self.rpm(f"--root={self.root}", "--initdb")
        self.inside("--install", self.package)
        program = str(self.root / "usr/bin/perftracker")
        done = subprocess.run([program, "--version"], capture_output=True, text=True)
        self.assertTrue(done.stdout.startswith("perftracker "), done)
        self.assertEqual(self.rpm(f"--root={self.root}", "-V", "--nodeps", "perftracker"), "")
        job = "import perftracker; print(perftracker.__file__)"
        env = {k: v for k, v in os.environ.items() if not k.startswith("PERFTRACKER")}
        done = subprocess.run(
            [program, "run", "--out", str(self.root / "out"), "--", "python3", "-c", job],
            env={**env, "PERFTRACKER_STORE": "none"}, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        place = f"{self.root}/usr/lib/perftracker/python/perftracker/"
        self.assertTrue(done.stdout.startswith(place), done)
        site = self.root / "etc/perftracker/site.yaml"
        site.parent.mkdir(parents=True)
        site.write_text("cluster: mine\n")
        self.inside("--upgrade", "--force", self.package)
        self.inside("--erase", "perftracker")
        left = [p for p in (self.root / "usr").rglob("*") if "perftracker" in str(p)]
        self.assertEqual([str(p) for p in left if p.suffix != ".pyc" and p.is_file()], [])
        self.assertEqual(site.read_text(), "cluster: mine\n")

    def test_needs_only_libc_and_a_shell(self) -> None:
        needs = {
            line.split()[0]
            for line in self.rpm("-qp", "--requires", self.package).split("\n")
            if line
        }
        self.assertEqual({n for n in needs if not n.startswith("rpmlib(")}, {"glibc", "/bin/sh"})

    def test_scripts_are_those_of_a_shell(self) -> None:
        for name in ("POSTIN", "PREUN", "POSTUN"):
            text = self.rpm("-qp", "--queryformat", f"%{{{name}}}", self.package)
            self.assertIn("systemctl", text)
            done = subprocess.run(["sh", "-n"], input=text, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_has_the_files_of_the_debian_package(self) -> None:
        debs = sorted((ROOT / "dist").glob("*_amd64.deb"))
        if not debs or shutil.which("dpkg-deb") is None:
            self.skipTest("no Debian package, or no dpkg-deb")
        listed = subprocess.run(
            ["dpkg-deb", "--fsys-tarfile", debs[0]], capture_output=True, check=True
        ).stdout
        tar = subprocess.run(["tar", "-t"], input=listed, capture_output=True, check=True).stdout
        files = {n[1:] for n in tar.decode().splitlines() if not n.endswith("/")}
        renamed = {n.replace("zsh/vendor-completions", "zsh/site-functions") for n in files}
        renamed.discard("/usr/share/doc/perftracker/changelog.gz")
        listing = self.rpm(
            "-qp", "--queryformat", "[%{FILEMODES:perms} %{FILENAMES}\n]", self.package
        )
        rows = [line.split(" ", 1) for line in listing.splitlines()]
        self.assertEqual({n for mode, n in rows if not mode.startswith("d")}, renamed)


if __name__ == "__main__":
    unittest.main()
