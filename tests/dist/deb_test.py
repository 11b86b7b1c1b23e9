# SPDX-License-Identifier: Apache-2.0
"""The Debian package of `make dist`, installed and purged below a folder by dpkg itself."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Of lintian; the rest must be clean. The address is that of who makes the package (DEBEMAIL); the
# scripts are written without debhelper; libraries that are linked in are not Debian's.
TAGS = [
    "bogus-mail-host",
    "bogus-mail-host-in-debian-changelog",
    "embedded-library",
    "initial-upload-closes-no-bugs",
    "maintainer-script-calls-systemctl",
]


class Deb(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        packages = sorted((ROOT / "dist").glob("*_amd64.deb"))
        if not packages:
            raise unittest.SkipTest("dist/ has no Debian package: `make dist` makes it")
        if shutil.which("dpkg") is None:
            raise unittest.SkipTest("dpkg is not installed")
        cls.package = packages[0]

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "var/lib/dpkg/info").mkdir(parents=True)
        (self.root / "var/lib/dpkg/updates").mkdir()
        (self.root / "var/lib/dpkg/status").touch()
        (self.root / "etc").mkdir()
        for name in ("passwd", "group"):
            (self.root / "etc" / name).write_text("root:x:0:0:root:/root:/bin/sh\n")
        (self.root / "etc/group").write_text("root:x:0:\n")

    def dpkg(self, *args: str) -> None:
        if os.geteuid() != 0:
            self.skipTest("dpkg --install needs root")
        force = ["--force-not-root", "--force-depends", "--force-script-chrootless"]
        done = subprocess.run(
            ["dpkg", f"--root={self.root}", *force, *args], capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def left(self) -> list[str]:
        """Files that are not dpkg's own or of the empty system."""
        paths = (p.relative_to(self.root) for p in self.root.rglob("*") if not p.is_dir())
        return sorted(str(p) for p in paths if p.parts[0] not in ("etc", "dev"))

    def test_install_upgrade_purge(self) -> None:
        self.dpkg("--install", str(self.package))
        program = self.root / "usr/bin/perftracker"
        done = subprocess.run([str(program), "--version"], capture_output=True, text=True)
        self.assertTrue(done.stdout.startswith("perftracker "), done)
        for name in ("perftracker-hostd", "perftracker-hub"):
            self.assertTrue((self.root / f"usr/lib/systemd/system/{name}.service").exists())
        if shutil.which("systemd-sysusers") is not None:
            self.assertIn("perftracker:", (self.root / "etc/passwd").read_text())
        site = self.root / "etc/perftracker/site.yaml"
        site.parent.mkdir()
        site.write_text("cluster: mine\n")
        kept = self.root / "var/lib/perftracker/jobs/u0/job/report.json"
        kept.parent.mkdir(parents=True)
        kept.write_text("{}")
        self.dpkg("--install", str(self.package))  # over itself: nothing of the site's is lost
        self.assertEqual((site.read_text(), kept.read_text()), ("cluster: mine\n", "{}"))
        self.dpkg("--remove", "perftracker")
        self.assertFalse(program.exists())
        self.assertTrue(kept.exists())
        self.dpkg("--purge", "perftracker")
        self.assertEqual([n for n in self.left() if "perftracker" in n], [])
        self.assertEqual(site.read_text(), "cluster: mine\n")

    def test_job_runs_from_where_it_was_installed(self) -> None:
        subprocess.run(["dpkg-deb", "-x", str(self.package), str(self.root)], check=True)
        job = "import perftracker; print(perftracker.__file__)"
        env = {k: v for k, v in os.environ.items() if not k.startswith("PERFTRACKER")}
        done = subprocess.run(
            [f"{self.root}/usr/bin/perftracker", "run", "--out", str(self.root / "out"), "--"]
            + ["python3", "-c", job],
            env={**env, "PERFTRACKER_STORE": "none"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        place = f"{self.root}/usr/lib/perftracker/python/perftracker/"
        self.assertTrue(done.stdout.startswith(place), done)

    def test_lintian(self) -> None:
        if shutil.which("lintian") is None:
            self.skipTest("lintian is not installed")
        command = ["lintian", "--allow-root", "--fail-on=error,warning", "--no-cfg"]
        done = subprocess.run(
            [*command, f"--suppress-tags={','.join(TAGS)}", str(self.package)],
            capture_output=True,
            text=True,
            timeout=300,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
