# SPDX-License-Identifier: Apache-2.0
"""The experiments themselves, without a GPU: each skips with a reason, and can find both ways."""

from __future__ import annotations

import copy
import importlib
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import experiment  # noqa: E402

BUILD = os.environ.get("PERFTRACKER_BUILD", "")
LOOP = {"before_ms": 100.0, "in_ms": 101.0, "after_ms": 100.5, "noise_frac": 0.005}
PHASES = [
    {"phase": "init", "nodes": 32},
    {"phase": "before", "window": 0, "enqueue_ns": 2000.0, "whole_ns": 3000.0},
    {"phase": "in", "window": 1, "enqueue_ns": 2600.0, "whole_ns": 3600.0},
    {
        "phase": "window", "window": 1, "launched": 512, "kernels": 512, "graph_kernels": 512,
        "nodes": 32, "unlaunched": 0, "dropped": 0, "untimed": 0, "open_ms": 30.0,
        "close_ms": 90.0, "drain_cpu_ms": 0.1, "stayed": "", "calls": 16,
    },
    {"phase": "after", "window": 1, "enqueue_ns": 2010.0, "whole_ns": 3010.0},
]  # fmt: skip
IDLE_PHASES = [{**p, "stayed": "idle: CUDA graphs"} if "stayed" in p else p for p in PHASES]
PROBE = {"after_import": 0, "after_profiler": 0, "mapped_later": ["/a/libcupti.so.13"]}
WAY = {
    "before": {"launched": 512, "queue_ns": 2000.0, "gpu_ns": 1500.0, "others_ns": 300.0},
    "in": {"launched": 512, "queue_ns": 2090.0, "gpu_ns": 2500.0, "others_ns": 900.0},
    "seen": {
        "launched": 768, "kernels": 768, "records": 800, "buffers": 2, "bytes": 166000,
        "dropped": 0,
    },
}  # fmt: skip
TRACED = {**WAY, "seen": {**WAY["seen"], "launched": 771, "kernels": 0, "records": 24}}
BARE = {
    "before": WAY["before"],
    "seen": {"subscribe_ms": 0.1, "enable_ms": 9.0, "disable_ms": 1.0, "flush_ms": 2.0},
    "disabled": {"queue_ns": 2300.0},
    "detach": {"finalize_ms": 30.0},
    "detached": {"queue_ns": 2020.0},
}
SELECTED = {**WAY, "in": {**WAY["in"], "queue_ns": 2900.0}}
STEPS = {
    "way": "selected", "before_ms": 100.0, "in_ms": 101.0, "noise_frac": 0.005, "steps": 62,
    "kernels": 6200, "records": 9000, "buffers": 2, "bytes": 1400000, "dropped": 0,
}  # fmt: skip
SESSION = {
    "hz": 10000, "samples": 200000, "overflows": 0, "failed": 0, "cpu_ms": 300.0,
    "begin_ns": 0, "end_ns": 10**10,
}  # fmt: skip
HEALTHY = {"findings": [], "compute_frac": 0.5, "iteration_ms": 100.0}


def found(cause: str, name: str) -> dict[str, Any]:
    return {"before": HEALTHY, "with": {**HEALTHY, "findings": [[cause, name]]}}


# What a machine would show on which all is as expected.
GOOD: dict[str, Any] = {
    "e0_inventory": {"plain": PROBE, "teardown": PROBE, "doctor": {"cupti": "ok"}},
    "e1_injection": {
        "job_pid": 7,
        "calls": [{"pid": 7, "context": 0, "next": 1}],
        "init_ms": 200.0,
        "init_injected_ms": 203.0,
    },
    "e2_overhead": {
        "launches": PHASES,
        "loops": {"eager": LOOP},
        "ways": {
            "graph": {"off": WAY, "idle": WAY, "runtime": SELECTED, "selected": SELECTED},
            "launches": {"selected": SELECTED, "pinned": {"why": "no"}},
        },
        "steps": {"eager": [STEPS, {**STEPS, "way": "runtime", "in_ms": 120.0}]},
    },
    "e3_residue": {"launches": PHASES, "bare": BARE, "steps": [LOOP, LOOP, LOOP]},
    "e4_graphs": {"phases": IDLE_PHASES, "kernels": WAY, "traced": TRACED},
    "e5_pmsampling": {
        "seconds": 20,
        "followed": True,
        "session": SESSION,
        "edges_ns": [20_000_000 * i + 150_000 for i in range(1, 30)],
        "spins": [[20_000_000 * i, 20_000_000 * i + 5_000_000] for i in range(1, 30)],
        "launch_ns": 3000.0,
        "launch_beside_ns": 3030.0,
    },
    "e6_counters": {
        "h2d": {"rate": 50e9, "pcie_rx_rate": 51e9, "pcie_tx_rate": 1e9, "matrix_active": 0.0},
        "d2h": {"rate": 48e9, "pcie_rx_rate": 1e9, "pcie_tx_rate": 49e9},
        "set": {"pcie_rx_rate": 1e6, "pcie_tx_rate": 1e6, "memory_active": 0.7},
        "gemm": {"matrix_active": 0.6},
    },
    "e7_together": {
        "together": {"session": SESSION, "second": "busy", "kernels": 300, "nvml": 40},
        "nobody": {"window": "", "sampling": "no permission", "nvml": ""},
        "admin_only": "1",
        "profilers": {
            "profiled": 500,
            "in_window": "the user started a profiler",
            "in_profiler": "the user's own profiler is active",
        },
    },
    "e8_python": {
        "ways": {
            "samples": LOOP,
            "exact": {**LOOP, "in_ms": 180.0},
            "torch.profiler": {**LOOP, "in_ms": 120.0},
        },
        "compiled": {
            "early": {"graphs": 3, "breaks": 0},
            "late": {"graphs": 3, "breaks": 0},
            "absent": [],
        },
    },
    "e9_events": {
        "launch_ns": 2000.0, "launch_with_events_ns": 3200.0, "query_ns": 300.0,
        "captured_query": 907, "capturing": 1, "drift_whole": True, "drift_us": 2.1,
    },
    "e10_nvml": {
        "calls": {"slow": {"mean_us": 800.0}, "fast": {"mean_us": 400.0}},
        "metrics": [{"metric": "cores_active", "changes_per_second": 9.8}],
        "launch_ns": 3000.0,
        "launch_beside_ns": 3010.0,
    },
    "e11_faults": {
        "loader": found("slow-data-loading", "steps.py(30): read_slowly"),
        "gc": found("garbage-collection", "gc (generation 2)"),
        "hog": found("cpu-starvation", "steps.py(90): step"),
        "kernel": {"before": HEALTHY, "with": {**HEALTHY, "compute_frac": 0.8}},
    },
    "e12_nccl": {
        "backend": "nccl", "ranks": 2, "nccl": "2.28.9", "plugin": "libperftracker-agent.so",
        "mapped": True, "queued": 96, "sized": 96,
    },
    "e13_ranks": {"jobs": [
        {"fault": "none", "source": "auto", "code": 0, "reports": [{"findings": []}]},
        {"fault": "loader", "source": "auto", "code": 0, "reports": [
            {"findings": [["slow-data-loading", "rank_steps.py(26): read_slowly", "1", 50.0]]},
        ]},
    ]},
}  # fmt: skip

# One figure that is another, and so is the verdict.
BAD: dict[str, list[tuple[str, Any]]] = {
    "e0_inventory": [
        ("plain.mapped_later", ["/a/libcupti.so.13", "/b/libcupti.so.12"]),
        ("plain.after_import", 39),
        ("plain.after_profiler", 15),
        ("teardown.after_profiler", 39),
        ("doctor.cupti", "failed"),
    ],
    "e1_injection": [
        ("calls", []),
        ("calls.0.pid", 8),
        ("calls.0.context", 1),
        ("calls.0.next", -1),
        ("init_injected_ms", 250.0),
    ],
    "e2_overhead": [
        ("launches.2.enqueue_ns", 3100.0),
        ("launches.3.kernels", 511),
        ("launches.3.dropped", 1),
        ("launches.3.untimed", 1),
        ("launches.3.drain_cpu_ms", 1.0),
        ("loops.eager.in_ms", 103.0),
        ("ways.graph.idle.in.queue_ns", 2200.0),
        ("ways.launches.selected.in.queue_ns", 3100.0),
        ("ways.graph.runtime.seen.kernels", 767),
        ("ways.graph.runtime.seen.dropped", 1),
        ("steps.eager.0.in_ms", 103.0),
        ("steps.eager.1.dropped", 1),
    ],
    "e3_residue": [
        ("launches.3.stayed", "the GPU's library stays attached"),
        ("launches.3.open_ms", 900.0),
        ("launches.3.close_ms", 5000.0),
        ("launches.4.enqueue_ns", 2200.0),
        ("steps.2.after_ms", 110.0),
        ("bare.detached.queue_ns", 2200.0),
    ],
    "e4_graphs": [
        ("phases.3.kernels", 480),
        ("phases.3.graph_kernels", 0),
        ("phases.3.nodes", 1),
        ("phases.3.unlaunched", 16),
        ("phases.3.stayed", ""),
        ("phases.3.calls", 0),
        ("traced.seen.records", 768),
    ],
    "e5_pmsampling": [
        ("session.hz", 1000),
        ("session.samples", 150000),
        ("session.overflows", 1),
        ("session.cpu_ms", 2000.0),
        ("edges_ns", []),
        ("edges_ns", [20_000_000 * i + 900_000 for i in range(1, 30)]),
        ("spins", []),
        ("launch_beside_ns", 3300.0),
    ],
    "e6_counters": [
        ("h2d.pcie_rx_rate", 20e9),
        ("h2d.pcie_tx_rate", 20e9),
        ("h2d.rate", 0.0),
        ("d2h.pcie_tx_rate", 1e9),
        ("d2h.pcie_rx_rate", 49e9),
        ("set.memory_active", 0.0),
        ("set.pcie_rx_rate", 9e9),
        ("gemm.matrix_active", 0.01),
        ("h2d.matrix_active", 0.3),
    ],
    "e7_together": [
        ("together.kernels", 0),
        ("together.session.samples", 0),
        ("together.session.failed", 3),
        ("together.nvml", 0),
        ("together.second", ""),
        ("nobody.window", "no permission"),
        ("nobody.nvml", "no permission"),
        ("nobody.sampling", ""),
        ("admin_only", "0"),
        ("profilers.profiled", 0),
        ("profilers.in_window", ""),
        ("profilers.in_profiler", ""),
    ],
    "e8_python": [
        ("ways.samples.in_ms", 104.0),
        ("ways.exact.in_ms", 400.0),
        ("ways.torch.profiler.in_ms", 98.0),
        ("compiled.late.graphs", 4),
        ("compiled.late.breaks", 1),
        ("compiled.absent", ["operators"]),
    ],
    "e9_events": [
        ("launch_with_events_ns", 9000.0),
        ("query_ns", 5000.0),
        ("captured_query", 0),
        ("capturing", 0),
        ("drift_whole", False),
        ("drift_us", 400.0),
        ("drift_us", 0.0),
    ],
    "e10_nvml": [
        ("calls.slow.mean_us", 40000.0),
        ("calls.fast.mean_us", 4000.0),
        ("metrics.0.changes_per_second", 500.0),
        ("launch_beside_ns", 4000.0),
    ],
    "e11_faults": [
        ("loader.with.findings", []),
        ("gc.with.findings", [["host-stall", "main"]]),
        ("hog.with.findings", []),
        ("gc.before.findings", [["garbage-collection", "gc (generation 2)"]]),
        ("kernel.with.compute_frac", 0.5),
    ],
    "e12_nccl": [
        ("nccl", "2.21.5"),
        ("plugin", ""),
        ("mapped", False),
        ("sized", 80),
        ("sized", 200),
    ],
    "e13_ranks": [
        ("jobs.0.code", 1),
        ("jobs.0.reports.0.findings", [["host-stall", "main", "1", 2.0]]),
        ("jobs.1.reports.0.findings", []),
        ("jobs.1.reports.0.findings", [["slow-data-loading", "read_slowly", "0-2", 50.0]]),
        ("jobs.1.reports.0.findings", [["elsewhere", "main", "1", 50.0]]),
    ],
}


def changed(figures: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """A copy in which one figure is another."""
    whole = copy.deepcopy(figures)
    at, words = whole, path.replace("torch.profiler", "torch profiler").split(".")
    for word in words[:-1]:
        word = word.replace("torch profiler", "torch.profiler")
        at = at[int(word)] if word.isdigit() else at[word]
    at[words[-1]] = value
    return whole


def load_runner() -> Any:
    loader = importlib.machinery.SourceFileLoader("run_experiments", str(HERE / "run_experiments"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Judges(unittest.TestCase):
    def judge(self, name: str, figures: dict[str, Any]) -> list[experiment.Check]:
        return importlib.import_module(name).judge(copy.deepcopy(figures))

    def test_every_experiment_has_made_up_figures(self) -> None:
        names = {path.stem for path in HERE.glob("e*_*.py")} - {"experiments_test"}
        self.assertEqual(set(GOOD), names)
        self.assertEqual(set(BAD), names)
        self.assertEqual(len(names), 14)

    def test_figures_as_expected_pass(self) -> None:
        for name, figures in GOOD.items():
            with self.subTest(name):
                wrong = [check for check in self.judge(name, figures) if not check.ok]
                self.assertEqual(wrong, [])

    def test_each_figure_that_is_not_as_expected_is_found(self) -> None:
        for name, changes in BAD.items():
            for path, value in changes:
                with self.subTest(name, path=path, value=value):
                    checks = self.judge(name, changed(GOOD[name], path, value))
                    self.assertTrue(any(not check.ok for check in checks))

    def test_what_steps_differ_by_anyway_is_not_held_against_a_window(self) -> None:
        noisy = changed(GOOD["e2_overhead"], "loops.eager.in_ms", 103.0)
        noisy["loops"]["eager"]["noise_frac"] = 0.05
        self.assertTrue(all(check.ok for check in self.judge("e2_overhead", noisy)))

    def test_one_gpu_needs_no_all_reduces(self) -> None:
        alone = {**GOOD["e12_nccl"], "ranks": 1, "sized": 0}
        self.assertTrue(all(check.ok for check in self.judge("e12_nccl", alone)))


def is_running(pid: int) -> bool:
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


class Runner(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def script(self, name: str, *words: str) -> tuple[int, dict[str, Any]]:
        command = [sys.executable, str(HERE / name), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.stderr, "")
        return done.returncode, json.loads(done.stdout)

    def test_all_are_skipped_with_a_reason_where_nothing_is(self) -> None:
        runner = [sys.executable, str(HERE / "run_experiments"), "--out", str(self.folder)]
        done = subprocess.run(
            [*runner, "--build", str(self.folder)], capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 77, done.stdout + done.stderr)
        output = json.loads((self.folder / "experiments.json").read_text())["experiments"]
        self.assertEqual([each["experiment"] for each in output], [f"E{i}" for i in range(14)])
        for each in output:
            self.assertEqual(each["outcome"], "skipped")
            self.assertTrue(each["why"], each)
        rows = (self.folder / "experiments.md").read_text().splitlines()
        self.assertEqual(sum(row.startswith("| E") for row in rows), 14)
        self.assertEqual({row.count("|") for row in rows if row.startswith("|")}, {7})

    def test_figures_of_before_can_be_judged_again(self) -> None:
        path = self.folder / "figures.json"
        for figures, status, outcome in (
            (GOOD["e9_events"], 0, "as expected"),
            ({**GOOD["e9_events"], "captured_query": 0}, 1, "not as expected"),
        ):
            path.write_text(json.dumps(figures))
            answer, output = self.script("e9_events.py", "--judge", str(path))
            self.assertEqual((answer, output["outcome"]), (status, outcome))
            self.assertEqual(output["figures"], figures)
        path.write_text("{}")
        status, output = self.script("e9_events.py", "--judge", str(path))
        self.assertEqual((status, output["outcome"]), (2, "failed"))
        self.assertIn("KeyError", output["why"])

    def test_experiments_that_hang_or_break_are_reported_and_ended(self) -> None:
        runner = load_runner()
        pid = self.folder / "pid"
        hangs = self.folder / "e90_hangs.py"
        hangs.write_text(
            "import os, subprocess, time\n"
            "child = subprocess.Popen(['sleep', '60'], process_group=0)\n"
            f"open({str(pid)!r}, 'w').write(str(child.pid))\n"
            "time.sleep(60)\n"
        )
        output = runner.carry_out("E90", hangs, [], 5)
        self.assertEqual((output["outcome"], output["why"]), ("failed", "not done after 5 s"))
        deadline = time.monotonic() + 10  # a signal takes effect a little later
        while is_running(int(pid.read_text())):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        breaks = self.folder / "e91_breaks.py"
        breaks.write_text("print('words')\nraise ValueError('of no use')\n")
        output = runner.carry_out("E91", breaks, [], 30)
        self.assertEqual((output["outcome"], output["why"]), ("failed", "ValueError: of no use"))

    def test_a_program_that_hangs_is_asked_to_end_what_it_started(self) -> None:
        ended = self.folder / "ended"
        code = f"trap 'touch {ended}; exit 0' TERM; sleep 60 & wait"
        with self.assertRaisesRegex(RuntimeError, "not done after 1 s"):
            experiment.run(["sh", "-c", code], limit_s=1)
        self.assertTrue(ended.exists())

    def test_the_table_has_every_check_and_no_stray_bars(self) -> None:
        runner = load_runner()
        check = {"what": "a | b", "expected": "1", "seen": "2\n3", "ok": False}
        output = {"experiment": "E1", "title": "t", "on": "device", "outcome": "not as expected"}
        text = runner.table({"gpu": "X"}, [{**output, "checks": [check]}], False)
        self.assertIn("| E1 t | device | a \\| b | 1 | 2 3 | not as expected |", text)
        self.assertNotIn("doubles", text)
        self.assertIn("nothing of a card", runner.table({}, [], True))

    def test_the_status_is_that_of_the_worst(self) -> None:
        runner = load_runner()
        for outcomes, status in (
            (["as expected", "skipped"], 0),
            (["skipped", "skipped"], 77),
            (["as expected", "not as expected"], 1),
            (["skipped", "failed"], 1),
        ):
            self.assertEqual(runner.status_of([{"outcome": each} for each in outcomes]), status)


@unittest.skipUnless(
    os.path.exists(f"{BUILD}/tests/gpu/libcupti-double.so"), "PERFTRACKER_BUILD has no doubles"
)
class Doubles(unittest.TestCase):
    """The programs on doubles; figures that are times mean nothing there."""

    def checks(self, name: str) -> dict[str, dict]:
        command = [sys.executable, str(HERE / name), "--build", BUILD, "--double"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        output = json.loads(done.stdout)
        self.assertIn(done.returncode, (0, 1), output)
        self.assertEqual(output["on"], "double")
        return {check["what"]: check for check in output["checks"]}

    def assert_ok(self, checks: dict[str, dict], *parts: str) -> None:
        for part in parts:
            chosen = [check for what, check in checks.items() if part in what]
            self.assertTrue(chosen, part)
            for check in chosen:
                self.assertTrue(check["ok"], check)

    def test_graphs_are_seen_whole_in_both_windows(self) -> None:
        checks = self.checks("e4_graphs.py")
        self.assert_ok(checks, ": kernels", "with a node", "different nodes", "not finalized")

    def test_a_sampler_beside_a_load_loses_nothing(self) -> None:
        self.assert_ok(self.checks("e5_pmsampling.py"), "samples a second", "overflows")

    def test_nvml_is_looked_at_beside_a_load(self) -> None:
        self.assert_ok(self.checks("e10_nvml.py"), "a slow look", "changes of GPM")


@unittest.skipUnless(
    os.path.exists(f"{BUILD}/tests/gpu/experiments/libcuda.so.1"),
    "PERFTRACKER_BUILD has no doubles",
)
class Driver(unittest.TestCase):
    """The programs' way to a real driver, on a library that has its names."""

    def run_program(self, name: str, *words: str) -> list[dict[str, Any]]:
        env = {**os.environ, "LD_LIBRARY_PATH": f"{BUILD}/tests/gpu/experiments"}
        env["CUPTI_LIBRARY"] = f"{BUILD}/tests/gpu/libcupti-double.so"
        env.pop("DOUBLE_CUDA", None)
        return experiment.objects(experiment.run([f"{BUILD}/tests/gpu/{name}", *words], env).stdout)

    def test_a_graph_is_captured_and_seen_whole(self) -> None:
        phases = self.run_program("e_launches", "graphs", "3")
        windows = [phase for phase in phases if phase["phase"] == "window"]
        self.assertEqual([w["kernels"] for w in windows], [4 * 32, 4 * 32])
        self.assertEqual([w["nodes"] for w in windows], [32, 32])
        self.assertEqual([w["unlaunched"] for w in windows], [0, 0])

    def test_launches_are_counted_in_three_windows(self) -> None:
        phases = self.run_program("e_launches", "windows", "2")
        windows = [phase for phase in phases if phase["phase"] == "window"]
        self.assertEqual([w["kernels"] for w in windows], 3 * [3 * 256])

    def test_each_way_to_record_sees_all_kernels(self) -> None:
        for way in importlib.import_module("e2_overhead").WAYS:
            for loop in ("launches", "graph"):
                phases = {
                    line["phase"]: line for line in self.run_program("e_loops", loop, way, "2")
                }
                seen, wanted = phases["seen"], 3 * (256 + 1)
                self.assertEqual(seen["launched"], wanted)
                self.assertEqual(seen["kernels"], 0 if way in ("off", "idle") else wanted)
                self.assertGreater(phases["in"]["gpu_ns"], 0)

    def test_loads_report_their_bytes_and_kernels(self) -> None:
        for mode in ("h2d", "d2h", "set"):
            output = self.run_program("e_load", mode, "0.1")[0]
            self.assertEqual((output["load"], output["status"]), (mode, 0))
            self.assertGreater(output["bytes"], 0)
            self.assertEqual(output["bytes"] % (64 << 20), 0)
        spins = self.run_program("e_load", "spin", "0.2", "recorded")[0]["spins"]
        self.assertGreater(len(spins), 0)
        for begin, end in spins:
            self.assertAlmostEqual(end - begin, 5e6, delta=1e3)

    def test_events_in_a_capture_and_against_kernels(self) -> None:
        output = self.run_program("e_events", "1")[0]
        self.assertEqual((output["captured_query"], output["capturing"]), (907, 1))
        self.assertEqual((output["drift_whole"], output["drift_kernels"]), (True, 10))
        self.assertGreater(output["launch_ns"], 0)


if __name__ == "__main__":
    unittest.main()
