# SPDX-License-Identifier: Apache-2.0
"""What `meson install` and the packages bring: the tree, one version, the units of systemd.

The wheel itself is checked where `make dist` has made one: wheel_test.py.
"""

from __future__ import annotations

import ast
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PERFTRACKER_BUILD", ROOT / "build"))
UNITS = ROOT / "deploy" / "systemd"
# systemd-analyze's exposure, in tenths. hostd starts daemons as other users, reads their /proc,
# stops threads of a hung job for their stacks, and opens GPUs.
EXPOSURE = {"perftracker-hostd": 32, "perftracker-hub": 15}


def project_version() -> str:
    found = re.search(r"^  version: '([^']+)'", (ROOT / "meson.build").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


class Tree(unittest.TestCase):
    """An installation below DESTDIR."""

    @classmethod
    def setUpClass(cls) -> None:
        if not (BUILD / "build.ninja").exists():
            raise unittest.SkipTest(f"{BUILD} is not configured")
        cls.folder = tempfile.TemporaryDirectory()
        command = ["meson", "install", "-C", str(BUILD), "--no-rebuild", "--quiet"]
        subprocess.run([*command, f"--destdir={cls.folder.name}"], check=True)
        programs = list(pathlib.Path(cls.folder.name).rglob("bin/perftracker"))
        cls.prefix = programs[0].parent.parent

    @classmethod
    def tearDownClass(cls) -> None:
        cls.folder.cleanup()

    def names(self, folder: str) -> set[str]:
        paths = (self.prefix / folder).rglob("*")
        return {str(p.relative_to(self.prefix / folder)) for p in paths if p.is_file()}

    def test_documents_and_schemas(self) -> None:
        names = self.names("share/doc/perftracker")
        wanted = {"LICENSE", "README.md", "CHANGELOG.md", "findings.md", "install.md"}
        wanted |= {p.name for p in (ROOT / "docs").glob("*schema.json")} | {"openapi.json"}
        self.assertEqual(wanted - names, set())

    def test_manual_pages_and_completions(self) -> None:
        pages = {p.name for p in (ROOT / "docs" / "man").glob("*.1")}
        self.assertEqual(self.names("share/man/man1"), pages)
        for place in (
            "share/bash-completion/completions/perftracker",
            "share/zsh/site-functions/_perftracker",
            "share/fish/vendor_completions.d/perftracker.fish",
        ):
            self.assertTrue((self.prefix / place).is_file(), place)

    def test_dashboards_and_units(self) -> None:
        deploy = self.names("share/perftracker/deploy")
        self.assertIn("grafana/perftracker.json", deploy)
        self.assertIn("prometheus/perftracker.rules.yml", deploy)
        self.assertIn("systemd/perftracker-hostd.service", deploy)
        self.assertLessEqual({"slurm/prolog", "kubernetes/chart/templates/_helpers.tpl"}, deploy)
        self.assertTrue(os.access(self.prefix / "share/perftracker/deploy/slurm/prolog", os.X_OK))

    def test_program_finds_its_parts(self) -> None:
        """From where they were installed: the hook is imported by the job."""
        out = pathlib.Path(self.folder.name) / "out"
        job = "import perftracker; print(perftracker.__file__, perftracker.status()['state'])"
        env = {k: v for k, v in os.environ.items() if not k.startswith("PERFTRACKER")}
        done = subprocess.run(
            [str(self.prefix / "bin/perftracker"), "run", "--out", str(out), "--", "python3"]
            + ["-c", job],
            env={**env, "PERFTRACKER_STORE": "none"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{self.prefix}/lib/perftracker/python/perftracker/", done.stdout)

    def test_no_compiled_python_is_installed(self) -> None:
        self.assertEqual([n for n in self.names(".") if n.endswith(".pyc")], [])


class Version(unittest.TestCase):
    def test_one_version(self) -> None:
        package = ROOT / "python" / "perftracker" / "__init__.py"
        (named,) = (
            ast.literal_eval(node.value)
            for node in ast.parse(package.read_text()).body
            if isinstance(node, ast.Assign) and node.targets[0].id == "__version__"
        )
        version = project_version()
        self.assertEqual(named, version)
        info = ROOT / "python" / f"perftracker-{version}.dist-info" / "METADATA"
        self.assertIn(f"\nVersion: {version}\n", info.read_text())

    def test_one_version_of_the_broker(self) -> None:
        wheel = (ROOT / "packaging" / "dist_wheel.py").read_text()
        broker = re.search(r'^BROKER = "(.*?)"', wheel, re.MULTILINE)
        self.assertIn(broker[1], (ROOT / "tools" / "bootstrap").read_text())


class Units(unittest.TestCase):
    def test_exposure(self) -> None:
        if shutil.which("systemd-analyze") is None:
            self.skipTest("systemd-analyze is not installed")
        for name, limit in EXPOSURE.items():
            command = ["systemd-analyze", "security", "--offline=true", f"--threshold={limit}"]
            done = subprocess.run(
                [*command, str(UNITS / f"{name}.service")], capture_output=True, text=True
            )
            last = done.stdout.strip().splitlines()[-1:] or [done.stderr]
            self.assertEqual(done.returncode, 0, last[0])

    def test_directives_are_known(self) -> None:
        if shutil.which("systemd-analyze") is None:
            self.skipTest("systemd-analyze is not installed")
        with tempfile.TemporaryDirectory() as folder:
            for path in UNITS.glob("*.service"):
                # The program of the test, where the unit has the installed one.
                text = path.read_text().replace("/usr/bin/perftracker", "/bin/true")
                (pathlib.Path(folder) / path.name).write_text(text)
            done = subprocess.run(
                [
                    "systemd-analyze",
                    "verify",
                    "--man=no",
                    *sorted(map(str, pathlib.Path(folder).iterdir())),
                ],
                capture_output=True,
                text=True,
            )
            for word in ("Unknown", "Failed to parse", "Invalid"):
                self.assertNotIn(word, done.stderr)

    def test_places_are_those_of_the_program(self) -> None:
        """Defaults of src/live/site that the units and tmpfiles must allow."""
        keys = (ROOT / "src/live/site/sitekeys.c").read_text()
        tmpfiles = (UNITS / "perftracker.tmpfiles").read_text()
        for key in ("hostd.folder", "hub.folder"):
            found = re.search(rf'"{key}".*?preset = "([^"]+)"', keys)
            self.assertIn(f"d {found[1]} ", tmpfiles)

    def test_the_folder_of_the_hub_s_sockets_is_private(self) -> None:
        """The hub refuses another mode (rundir_private())."""
        unit = (UNITS / "perftracker-hub.service").read_text()
        self.assertIn("\nRuntimeDirectory=perftracker-hub\nRuntimeDirectoryMode=0700\n", unit)


class Sums(unittest.TestCase):
    """Files of `make dist`, if there are any."""

    def test_sums_and_sbom(self) -> None:
        dist = ROOT / "dist"
        if not (dist / "SHA256SUMS").exists():
            self.skipTest("dist/SHA256SUMS is not there: `make dist` makes it")
        done = subprocess.run(
            ["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=dist, capture_output=True
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        document = json.loads((dist / "perftracker.spdx.json").read_text())
        named = {package["name"] for package in document["packages"]}
        libraries = json.loads((ROOT / "packaging" / "libraries.json").read_text())
        self.assertEqual(named, {library["debian"] for library in libraries} | {"perftracker"})
        (source,) = dist.glob("perftracker-*.tar.gz")
        gzip.decompress(source.read_bytes())


if __name__ == "__main__":
    unittest.main()
