# SPDX-License-Identifier: Apache-2.0
"""deploy/kubernetes: the chart by real helm, the base by real kustomize, all against the schemas of
Kubernetes. No API server sees anything. Skipped where helm is missing (tools/fetch-helm).
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
from collections.abc import Sequence

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy" / "kubernetes"
CHART = DEPLOY / "chart"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
VALUES = [CHART / "values.yaml", *sorted((CHART / "ci").glob("*.yaml"))]
VERSIONS = [f"1.{minor}" for minor in range(30, 38)]
PYTHON = os.environ.get("PERFTRACKER_PYTHON", str(ROOT / ".venv" / "bin" / "python"))
# Reads resources on standard input and says each complaint; `kinds`: of the schemas' versions.
VALIDATE = """
import json, sys, yaml, kubernetes_validate
found = []
for item in [d for d in yaml.safe_load_all(sys.stdin) if d]:
    known = item["apiVersion"].partition("/")[0] != "monitoring.coreos.com"
    for version in sys.argv[1:] if known else []:
        try:
            kubernetes_validate.validate(item, version, strict=True)
        except Exception as error:
            found.append("%s %s: %s" % (version, item["kind"], str(error).splitlines()[0]))
    found.append(json.dumps(item))
print("\\n".join(found))
"""


def tool(name: str) -> str | None:
    path = CACHE / "perftracker" / "kubernetes" / name
    return str(path) if os.access(path, os.X_OK) else shutil.which(name)


def project_version() -> str:
    found = re.search(r"^  version: '([^']+)'", (ROOT / "meson.build").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


class Kubernetes(unittest.TestCase):
    def setUp(self) -> None:
        self.helm = tool("helm")
        if self.helm is None:
            self.skipTest("helm is not there: tools/fetch-helm")

    def run_tool(self, *words: str | pathlib.Path) -> str:
        done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def render(self, *options: str | pathlib.Path) -> str:
        words = ["template", "perftracker", CHART, "-n", "perftracker", "--kube-version", "1.30"]
        return self.run_tool(self.helm, *words, *options)

    def resources(self, text: str, versions: Sequence[str] = VERSIONS[-1:]) -> list[dict]:
        """All of them, valid in those versions of Kubernetes."""
        done = subprocess.run(
            [PYTHON, "-c", VALIDATE, *versions], input=text, capture_output=True, text=True
        )
        if "No module named" in done.stderr:
            self.skipTest("kubernetes-validate is not installed: tools/bootstrap test")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual([line for line in lines if not line.startswith("{")], [])
        return [json.loads(line) for line in lines]

    def containers(self, items: list[dict]) -> dict[str, dict]:
        specs = [i["spec"]["template"]["spec"] for i in items if "template" in i.get("spec", {})]
        found = [c for spec in specs for c in spec["containers"] + spec.get("initContainers", [])]
        return {c["name"]: c for c in found}

    def test_each_values_file_is_rendered_and_valid(self) -> None:
        for values in VALUES:
            self.run_tool(self.helm, "lint", "--strict", CHART, "--values", values)
            items = self.resources(self.render("--values", values), VERSIONS)
            kinds = {item["kind"] for item in items}
            self.assertLessEqual({"DaemonSet", "StatefulSet", "ConfigMap", "Service"}, kinds)
            for name, container in self.containers(items).items():
                with self.subTest(values=values.name, container=name):
                    self.assertTrue(container["securityContext"]["readOnlyRootFilesystem"])
                    self.assertIn("limits", container["resources"])
                    self.assertIn("requests", container["resources"])
        self.assertLessEqual({"PodMonitor", "NetworkPolicy"}, self.kinds_of("all-values.yaml"))
        self.assertNotIn("NetworkPolicy", self.kinds_of("claim-values.yaml"))

    def kinds_of(self, name: str) -> set[str]:
        text = self.render("--values", CHART / "ci" / name)
        return {item["kind"] for item in self.resources(text)}

    def test_a_misspelt_field_is_not_valid(self) -> None:
        """That the check above can fail."""
        text = self.render().replace("hostPID:", "hostPid:")
        done = subprocess.run(
            [PYTHON, "-c", VALIDATE, "1.30"], input=text, capture_output=True, text=True
        )
        if "No module named" in done.stderr:
            self.skipTest("kubernetes-validate is not installed")
        self.assertIn("1.30 DaemonSet:", done.stdout)

    def test_values_that_are_not_known_are_refused(self) -> None:
        for wrong in ("hubb.port=1", "hub.prot=1", "hub.port=x", "site.cluster=a b", "hub.user=0"):
            done = subprocess.run(
                [self.helm, "template", "x", CHART, "--set", wrong], capture_output=True, text=True
            )
            self.assertNotEqual(done.returncode, 0, wrong)

    def test_hub_and_hostd_may_what_the_units_may(self) -> None:
        items = self.resources(self.render("--set", "secrets.tokens=t"))
        hub, hostd = (self.containers(items)[name] for name in ("hub", "hostd"))
        self.assertEqual(hub["securityContext"]["capabilities"], {"drop": ["ALL"]})
        unit = (ROOT / "deploy/systemd/perftracker-hostd.service").read_text()
        (words,) = re.findall(r"^CapabilityBoundingSet=(.*)$", unit, re.MULTILINE)
        added = hostd["securityContext"]["capabilities"]["add"]
        self.assertEqual({f"CAP_{name}" for name in added}, set(words.split()))
        self.assertEqual(hostd["securityContext"]["capabilities"]["drop"], ["ALL"])
        (spec,) = (i["spec"]["template"]["spec"] for i in items if i["kind"] == "StatefulSet")
        self.assertTrue(spec["securityContext"]["runAsNonRoot"])

    def test_the_program_takes_the_site_file(self) -> None:
        program = os.environ.get("PERFTRACKER_PROGRAM") or str(ROOT / "build/src/cmd/perftracker")
        if not os.access(program, os.X_OK):
            self.skipTest(f"{program} is not built")
        for values in VALUES:
            items = self.resources(self.render("--values", values))
            (text,) = (i["data"]["site.yaml"] for i in items if "site.yaml" in i.get("data", {}))
            with tempfile.TemporaryDirectory() as folder:
                # Its files are not there: those are the problems that may be named.
                site = pathlib.Path(folder) / "site.yaml"
                site.write_text(text)
                done = subprocess.run(
                    [program, "hostd", "--config", str(site), "--check-config"],
                    capture_output=True, text=True, env={**os.environ, "PERFTRACKER_HOST": "a"},
                )  # fmt: skip
            said = done.stdout + done.stderr
            self.assertNotIn("expected a key of the configuration", said)
            self.assertIn("/run/perftracker/hostd.sock", said)
            # The hub makes this folder with mode 0700: a volume's own one has another.
            self.assertRegex(said, r"hub.run\W+/run/perftracker-hub/leaders")

    def test_a_long_name_of_a_node_becomes_one_for_the_bus(self) -> None:
        command = self.containers(self.resources(self.render()))["hostd"]["command"]
        script = command[2].replace("exec /usr/bin/perftracker hostd", "exec env #")
        for node, host in {
            "gpu-7": "gpu-7",
            "ip-10-0-3-4.eu.compute.internal": "ip-10-0-3-4",
            "gke-cluster-1-pool-a100-1a2b3c4d-x9yz": "-pool-a100-1a2b3c4d-x9yz",
        }.items():
            done = subprocess.run(
                [*command[:2], script], env={"NODE_NAME": node}, capture_output=True, text=True
            )
            said = dict(line.split("=", 1) for line in done.stdout.splitlines())
            self.assertEqual(said["PERFTRACKER_HOST"], host)

    def test_the_base_is_what_the_chart_says(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "out.yaml"
            self.run_tool(ROOT / "tools" / "kubernetes-base", self.helm, out)
            self.assertEqual(
                out.read_text(), (DEPLOY / "base" / "perftracker.yaml").read_text(),
                "tools/kubernetes-base writes it",
            )  # fmt: skip

    def test_kustomize_builds_base_and_training(self) -> None:
        kubectl = tool("kubectl")
        if kubectl is None:
            self.skipTest("kubectl is not there: tools/fetch-helm")
        base = self.resources(self.run_tool(kubectl, "kustomize", DEPLOY / "base"))
        self.assertEqual({i["metadata"].get("namespace") for i in base} - {None}, {"perftracker"})
        items = self.resources(self.run_tool(kubectl, "kustomize", DEPLOY / "examples"))
        train = self.containers(items)["train"]
        self.assertEqual(
            {e["name"] for e in train["env"]}, {"PERFTRACKER", "PERFTRACKER_JOB", "PYTHONPATH"}
        )
        # Sockets and folders are at the same paths in hostd's pod and in the job's.
        mounted = {m["mountPath"] for m in self.containers(base)["hostd"]["volumeMounts"]}
        for mount in train["volumeMounts"]:
            path = mount["mountPath"]
            inside = any(path == m or path.startswith(f"{m}/") for m in mounted)
            self.assertTrue(inside or path == "/usr/lib/perftracker", path)

    def test_the_version_is_the_program_s(self) -> None:
        text = (CHART / "Chart.yaml").read_text()
        self.assertIn(f'\nappVersion: "{project_version()}"\n', text)
        self.assertIn(f"\nversion: {project_version()}\n", text)


if __name__ == "__main__":
    unittest.main()
