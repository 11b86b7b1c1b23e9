# SPDX-License-Identifier: Apache-2.0
"""perftracker doctor: on trees of /proc and /sys made here, and on this machine.

PERFTRACKER_NVML_DOUBLE names a folder with a double of libnvidia-ml.so.1.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import unittest

import program

SCHEMA = program.ROOT / "docs" / "doctor-schema.json"
SECRET = "hf_abcdefghijklmnopqrst"
PLAIN = {"PATH": "/usr/bin:/bin", "HF_TOKEN": SECRET}

BARE = {
    "/proc/sys/kernel/osrelease": "6.1.0-28-amd64\n",
    "/proc/self/cgroup": "0::/\n",
    "/proc/self/mounts": "tmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0\n",
    "/proc/self/limits": "Max file size             unlimited            unlimited    bytes\n"
    "Max locked memory         8388608              8388608      bytes\n",
    "/proc/self/schedstat": "100 200 3\n",
    "/proc/self/status": "Name:\tx\nCapEff:\t0000000000000000\nCpus_allowed_list:\t0-7\n",
    "/proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "/sys/devices/system/cpu/online": "0-7\n",
}
CONTAINER = {
    **BARE,
    "/proc/sys/kernel/osrelease": "4.14.1\n",
    "/proc/sys/kernel/perf_event_paranoid": "4\n",
    "/proc/sys/kernel/yama/ptrace_scope": "1\n",
    "/proc/self/cgroup": "0::/kubepods/pod1\n",
    "/proc/self/mounts": "shm /dev/shm tmpfs rw,nosuid,size=65536k 0 0\n",
    "/proc/self/limits": "Max file size             1000000              1000000      bytes\n"
    "Max locked memory         65536                65536        bytes\n",
    "/sys/fs/cgroup/kubepods/pod1/cpu.max": "400000 100000\n",
    "/sys/fs/cgroup/kubepods/pod1/cpu.stat": "nr_periods 90\nnr_throttled 70\n",
    "/sys/fs/cgroup/kubepods/pod1/memory.max": "536870912\n",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n",
    "/sys/devices/system/cpu/online": "0-95\n",
}
GPU = {
    **BARE,
    "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64"
    "  580.95.05  Release Build\nGCC version: 12\n",
    "/proc/driver/nvidia/params": "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n",
    "/proc/driver/nvidia/gpus/0000:01:00.0/information": "Model: NVIDIA H100\n",
    "/proc/driver/nvidia/gpus/0000:02:00.0/information": "Model: NVIDIA H100\n",
    "/proc/900/stat": "900 (nv-hostengine) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 9"
    + " 0" * 16
    + " 3 0 0 0\n",
    "/proc/net/tcp": "  sl  local_address rem_address   st\n"
    "   0: 0100007F:15B3 00000000:0000 0A 00000000:00000000\n",
    "/sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n",
    "/sys/class/infiniband/mlx5_0/ports/1/rate": "400 Gb/sec (4X NDR)\n",
    "/sys/class/infiniband/mlx5_0/ports/1/link_layer": "InfiniBand\n",
    "/sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data": "12345\n",
    "/sys/class/infiniband/mlx5_1/ports/1/state": "1: DOWN\n",
}
TREES = {"bare": (BARE, 0), "container": (CONTAINER, 1), "gpu": (GPU, 0)}


def holding(variables: dict[str, str]) -> dict[str, str]:
    return {**PLAIN, **variables}


class Doctor(program.Program):
    def tree(self, files: dict[str, str], name: str = "root") -> str:
        for path, text in files.items():
            full = self.folder / name / path.lstrip("/")
            full.parent.mkdir(parents=True, exist_ok=True)
            full.write_text(text)
        return name

    def ask(self, *words: str, status: int = 0, env: dict[str, str] | None = None) -> dict:
        done = self.call("doctor", "--format", "json", *words, env=env)
        self.assertEqual((done.returncode, done.stderr), (status, ""))
        report = json.loads(done.stdout)
        self.assertEqual(report["fit"], status != 1)
        return {check["id"]: check for check in report["checks"]}

    def test_trees_say_what_is_agreed(self) -> None:
        for name, (files, status) in TREES.items():
            with self.subTest(name=name):
                done = self.call("doctor", "--root", self.tree(files, name), env=PLAIN)
                self.assertEqual((done.returncode, done.stderr), (status, ""))
                self.golden(f"doctor.{name}.text", done.stdout)

    def test_json_is_as_its_schema_says(self) -> None:
        done = self.call("doctor", "--format", "json", "--root", self.tree(GPU), env=PLAIN)
        report = json.loads(done.stdout)
        schema = json.loads(SCHEMA.read_text())
        check = schema["properties"]["checks"]["items"]
        self.assertEqual(set(report), set(schema["required"]))
        self.assertEqual(set(report["counts"]), set(check["properties"]["state"]["enum"]))
        self.assertEqual(sum(report["counts"].values()), len(report["checks"]))
        for row in report["checks"]:
            self.assertEqual(set(row), set(check["required"]))
            self.assertIn(row["state"], check["properties"]["state"]["enum"])
        ids = {row["id"] for row in report["checks"]}
        self.assertEqual(ids, set(check["properties"]["id"]["enum"]))
        self.golden("doctor.gpu.json", done.stdout)

    def test_exit_code_makes_limits_an_exit_status(self) -> None:
        root = self.tree(GPU)
        self.assertEqual(self.call("doctor", "--root", root, env=PLAIN).returncode, 0)
        done = self.call("doctor", "--exit-code", "--root", root, env=PLAIN)
        self.assertEqual(done.returncode, 3)

    def test_secrets_are_never_printed(self) -> None:
        env = holding(
            {
                "CUDA_INJECTION64_PATH": f"/opt/tool.so?token={SECRET}",
                "NCCL_PROFILER_PLUGIN": SECRET,
                "LD_LIBRARY_PATH": f"/opt/CUPTI:https://me:{SECRET}@host/lib",
                "KINETO_CONFIG": f"password={SECRET}",
            }
        )
        for form in ("text", "json"):
            done = self.call("doctor", "--format", form, "--verbose", "--root", "r", env=env)
            self.assertNotIn(SECRET[4:], done.stdout)
            self.assertIn("CUDA_INJECTION64_PATH=/opt/tool.so", done.stdout)

    def test_slots_of_others_are_named(self) -> None:
        env = holding({"NCCL_PROFILER_PLUGIN": "inspector", "KINETO_USE_DAEMON": "1"})
        checks = self.ask("--root", self.tree(BARE), env=env)
        self.assertEqual(checks["nccl-plugin"]["state"], "limited")
        self.assertEqual(
            checks["nccl-plugin"]["found"], "NCCL_PROFILER_PLUGIN=inspector: another profiler's"
        )
        self.assertEqual(checks["torch-profiler"]["state"], "limited")
        self.assertEqual(checks["injection"]["state"], "ok")

    def nccl_plugin(self, files: dict[str, str], **variables: str) -> tuple[str, str]:
        """State and words of the check on a tree; nothing of other settings is in the output."""
        secret = "NCCL_NET_SECRET=swordfish\n"
        files = {k: secret + v if k.endswith(".conf") else v for k, v in files.items()}
        root = self.tree({**BARE, **files}, f"root{len(list(self.folder.iterdir()))}")
        env = holding({"HOME": "/home/me", **variables})
        done = self.call("doctor", "--format", "json", "--verbose", "--root", root, env=env)
        self.assertNotIn("swordfish", done.stdout + done.stderr)
        self.assertNotIn("NCCL_NET_SECRET", done.stdout + done.stderr)
        checks = {check["id"]: check for check in json.loads(done.stdout)["checks"]}
        return checks["nccl-plugin"]["state"], checks["nccl-plugin"]["found"]

    def test_the_nccl_plugin_is_found_in_configuration_files(self) -> None:
        conf = {"/etc/nccl.conf": "NCCL_PROFILER_PLUGIN=inspector\n"}
        found = "NCCL_PROFILER_PLUGIN=inspector in /etc/nccl.conf: another profiler's"
        self.assertEqual(self.nccl_plugin(conf), ("limited", found))
        conf["/home/me/.nccl.conf"] = "NCCL_PROFILER_PLUGIN=/lib/libperftracker-agent.so\n"
        state, found = self.nccl_plugin(conf)
        self.assertEqual(state, "ok")
        self.assertIn("in /home/me/.nccl.conf: perftracker's own", found)
        conf["/opt/my.conf"] = "NCCL_PROFILER_PLUGIN=None\n"
        state, found = self.nccl_plugin(conf, NCCL_CONF_FILE="/opt/my.conf")
        self.assertEqual(state, "limited")
        self.assertEqual(found, "NCCL_PROFILER_PLUGIN=None in /opt/my.conf: disabled")
        state, found = self.nccl_plugin(
            conf, NCCL_PROFILER_PLUGIN="libperftracker-agent.so", NCCL_TUNER_PLUGIN="tuner"
        )
        self.assertEqual(state, "ok")
        self.assertTrue(found.endswith(": perftracker's own; NCCL_TUNER_PLUGIN=tuner"), found)
        conf = {"/etc/nccl.conf": f"NCCL_PROFILER_PLUGIN={SECRET}\n"}
        self.assertNotIn(SECRET[4:], self.nccl_plugin(conf)[1])

    def test_a_plugin_that_nccl_takes_by_itself_is_found_where_the_loader_looks(self) -> None:
        self.assertEqual(self.nccl_plugin({}), ("ok", "NCCL's slot is free"))
        library = "/opt/x/libnccl-profiler.so"
        self.assertEqual(self.nccl_plugin({library: ""}), ("ok", "NCCL's slot is free"))
        state, found = self.nccl_plugin({library: ""}, LD_LIBRARY_PATH="/opt:/opt/x")
        self.assertEqual(state, "limited")
        self.assertEqual(found, f"{library}, which NCCL loads by default: another profiler's")
        cache = {"/etc/ld.so.cache": "glibc\0libnccl-profiler.so\0/opt/x/libnccl-profiler.so\0"}
        state, found = self.nccl_plugin(cache)
        self.assertEqual(state, "limited")
        self.assertIn("in /etc/ld.so.cache, which NCCL loads by default", found)

    def test_a_link_to_the_agents_library_counts_as_the_agent(self) -> None:
        root = pathlib.Path(self.folder, self.tree({**BARE, "/opt/libperftracker-agent.so": ""}))
        (root / "lib64").mkdir()
        (root / "lib64" / "libnccl-profiler.so").symlink_to("../opt/libperftracker-agent.so")
        check = self.ask("--root", root.name, env=PLAIN)["nccl-plugin"]
        self.assertEqual(check["state"], "ok", check)

    def test_a_python_that_is_not_there_is_a_failure(self) -> None:
        checks = self.ask("--python", "/nonexistent/python", status=1)
        self.assertEqual(checks["python"]["state"], "absent")
        self.assertEqual(checks["torch"]["state"], "not tried")

    def test_the_agent_works_in_this_python(self) -> None:
        env = {**os.environ, "HF_TOKEN": SECRET}
        env.pop("TORCH_DEVICE_BACKEND_AUTOLOAD", None)
        done = self.call("doctor", "--format", "json", "--python", sys.executable, env=env)
        checks = {check["id"]: check for check in json.loads(done.stdout)["checks"]}
        self.assertEqual(checks["python"]["state"], "ok", checks["python"])
        self.assertEqual(checks["agent"]["state"], "ok", checks["agent"])
        self.assertEqual(checks["stacks"]["state"], "ok", checks["stacks"])
        self.assertNotIn(SECRET, done.stdout)
        self.assertEqual(done.returncode, 0 if checks["torch"]["state"] == "ok" else 1)

    def test_an_old_nats_server_is_failed(self) -> None:
        server = self.folder / "nats-server"
        for says, state in (
            ("nats-server: v2.9.10", "failed"),
            ("nats-server: v2.12.7", "ok"),
            ("hello", "failed"),
        ):
            server.write_text(f"#!/bin/sh\necho '{says}'\n")
            server.chmod(0o755)
            env = {"PATH": os.environ["PATH"], "PERFTRACKER_NATS_SERVER": str(server)}
            found = self.ask("--python", "/none", status=1, env=env)["nats-server"]
            self.assertEqual(found["state"], state, found)
        server.unlink()
        found = self.ask("--python", "/none", status=1, env=env)["nats-server"]
        self.assertEqual(found["state"], "failed", found)

    def test_wrong_calls_are_usage_errors(self) -> None:
        for words in (["--format", "xml"], ["more"], ["--pyton", "x"]):
            self.assertIn("--help", self.fails(2, self.call("doctor", *words)))


@unittest.skipUnless(os.environ.get("PERFTRACKER_NVML_DOUBLE"), "needs the double of NVML")
class Drivers(program.Program):
    """Libraries that hang or crash, which only a child of doctor's may meet."""

    def nvml(self, mode: str) -> dict:
        folder = pathlib.Path(os.environ["PERFTRACKER_NVML_DOUBLE"]).parent
        env = holding({"LD_LIBRARY_PATH": str(folder), "NVML_DOUBLE": mode})
        done = self.call("doctor", "--format", "json", "--python", "/nonexistent", env=env)
        return {c["id"]: c for c in json.loads(done.stdout)["checks"]}["nvml"]

    def test_a_working_nvml_is_ok(self) -> None:
        check = self.nvml("")
        self.assertEqual(check["state"], "ok", check)
        self.assertEqual(check["found"], "NVML of driver 580.95.05, 2 devices, with GPM")

    def test_an_nvml_that_crashes_or_refuses_is_failed(self) -> None:
        crash = self.nvml("crash")
        self.assertEqual(crash["state"], "failed")
        self.assertEqual(crash["found"], "libnvidia-ml.so.1 crashed (signal 11)")
        refusal = self.nvml("refuse")
        present = pathlib.Path("/proc/driver/nvidia/version").exists()
        self.assertEqual(refusal["state"], "failed" if present else "absent")
        self.assertEqual(refusal["found"], "nvmlInit: Driver Not Loaded (9)")


if __name__ == "__main__":
    unittest.main()
