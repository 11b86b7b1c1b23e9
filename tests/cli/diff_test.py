# SPDX-License-Identifier: Apache-2.0
"""`perftracker diff` on small jobs: what is said in which form, and with which status."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import random
import unittest
from typing import Any

import program

STEPS = 8
USAGE = {
    "diff.nothing": ["diff"],
    "diff.one": ["diff", "old"],
    "diff.three": ["diff", "old", "new", "new"],
    "diff.vs-nothing": ["diff", "old", "--vs"],
    "diff.vs-twice": ["diff", "old", "--vs", "new", "--vs", "new"],
    "diff.min-change": ["diff", "--min-change", "-1", "old", "new"],
    "diff.level": ["diff", "--level", "2", "old", "new"],
    "diff.steps": ["diff", "--steps", "6-4", "old", "new"],
    "diff.format": ["diff", "--format", "yaml", "old", "new"],
    "diff.jobs": ["diff", "--jobs", "0", "old", "new"],
}


def load_schema_check() -> Any:
    path = program.ROOT / "src" / "report" / "schema_check.py"
    spec = importlib.util.spec_from_file_location("schema_check", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def launch(name: str, at: float, span: tuple[float, float], number: int) -> list[dict[str, Any]]:
    """A kernel on stream 7, and the call that launches it."""
    begin, end = span
    call = program.span("cuda_runtime", "cudaLaunchKernel", at, at + 10)
    kernel = program.span("kernel", name, begin, end, lane=7)
    call["args"] = {"correlation": number}
    kernel["args"] = {"correlation": number, "stream": 7, "device": 0}
    kernel["pid"] = 0
    return [call, kernel]


def forward(begin: float, compiled: bool, length: float, number: int) -> list[dict[str, Any]]:
    """A module, as one CompiledFunction with a fused kernel, or as its operators with theirs."""
    span, end = program.span, begin + 4_000 + length
    if compiled:
        return [
            span("cpu_op", "CompiledFunction", begin, begin + 4_000),
            span("cpu_op", "triton_fused_0", begin + 100, begin + 3_900),
            *launch("triton_fused_addmm_gelu_0", begin + 3_950, (begin + 4_000, end), number),
        ]
    half = begin + 4_000 + length / 2
    return [
        span("cpu_op", "aten::linear", begin, begin + 2_000),
        span("cpu_op", "aten::addmm", begin + 50, begin + 1_950),
        *launch("ampere_sgemm_128x64_tn", begin + 1_500, (begin + 1_520, half), number),
        span("cpu_op", "aten::gelu", begin + 2_100, begin + 3_900),
        *launch("gelu_kernel", begin + 3_000, (half, end), number + 1),
    ]


def write_run(folder: pathlib.Path, compiled: bool, seed: int, ranks: int = 3) -> None:
    """Steps of a loader, a module, the optimizer; uncompiled the module takes longer."""
    folder.mkdir()
    noise = random.Random(seed)
    for rank in range(ranks):
        begin, events = 1_000_000.0, []
        for step in range(STEPS):
            length = (20_000 if compiled else 36_000) * (1 + 0.02 * noise.random())
            load = 3_000 + 100 * noise.random()
            end = begin + load + 4_000 + length + 2_000
            name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
            events += [
                program.span("user_annotation", f"ProfilerStep#{step}", begin, end),
                program.span("user_annotation", name, begin, begin + load - 10),
                program.span("cpu_op", "aten::stack", begin + 50, begin + load - 50),
                *forward(begin + load, compiled, length, 10 * step + 1),
                program.span("user_annotation", "Optimizer.step#SGD.step", end - 1_900, end - 100),
                program.span("cpu_op", "aten::_foreach_add_", end - 1_800, end - 200),
            ]
            begin = end
        info = {"backend": "nccl", "rank": rank, "world_size": ranks}
        trace = {"distributedInfo": info, "traceEvents": events}
        (folder / f"rank{rank}.json").write_text(json.dumps(trace), encoding="utf-8")


class Diff(program.Program):
    def setUp(self) -> None:
        super().setUp()
        write_run(self.folder / "old", True, seed=1)
        write_run(self.folder / "new", False, seed=2)
        write_run(self.folder / "again", True, seed=3)

    def diff(self, *words: str) -> dict[str, Any]:
        done = self.call("diff", "--format", "json", *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def changes(self, comparison: dict[str, Any], kind: str) -> dict[str, dict[str, Any]]:
        return {c["name"]: c for c in comparison["changes"] if c["kind"] == kind}

    def assert_adds_up(self, comparison: dict[str, Any]) -> None:
        parts = [c["delta_ms"] for c in comparison["changes"]]
        parts += [comparison["smaller"]["delta_ms"], comparison["unlisted_delta_ms"]]
        self.assertAlmostEqual(sum(parts), comparison["delta_ms"], delta=1e-3)

    def test_a_compiled_function_that_is_gone_is_named(self) -> None:
        comparison = self.diff("old", "new")
        self.assertEqual((comparison["verdict"], comparison["confidence"]), ("slower", "medium"))
        self.assertAlmostEqual(comparison["delta_ms"], 16.2, delta=1)
        self.assert_adds_up(comparison)
        gone = self.changes(comparison, "vanished")
        self.assertEqual(set(gone), {"CompiledFunction", "triton_fused_addmm_gelu_0"})
        self.assertEqual(gone["CompiledFunction"]["functions"], 2)
        self.assertIn("CompiledFunction", gone["triton_fused_addmm_gelu_0"]["launched_by"])
        new = self.changes(comparison, "appeared")
        self.assertIn("ampere_sgemm_128x64_tn", new)
        self.assertIn("aten::linear", new)
        for change in (*gone.values(), new["ampere_sgemm_128x64_tn"]):
            self.assertTrue(change["significant"], change)

    def test_a_run_and_its_repetition_are_the_same(self) -> None:
        comparison = self.diff("old", "again")
        self.assertEqual((comparison["verdict"], comparison["changes"]), ("same", []))
        self.assert_adds_up(comparison)

    def test_a_run_and_itself_differ_by_nothing(self) -> None:
        comparison = self.diff("old", "old")
        self.assertEqual((comparison["verdict"], comparison["delta_ms"]), ("same", 0))

    def test_json_is_as_its_schema_says(self) -> None:
        check = load_schema_check()
        path = program.ROOT / "docs" / "compare-schema.json"
        schema = json.loads(path.read_text(encoding="utf-8"))
        for after in ("new", "again", "old"):
            self.assertEqual(list(check.check(schema, self.diff("old", after), schema)), [])
        spoiled = self.diff("old", "new")
        spoiled["changes"][0]["kind"] = "exploded"
        self.assertNotEqual(list(check.check(schema, spoiled, schema)), [])

    def test_text_and_page_are_as_agreed(self) -> None:
        for name in ("text", "html"):
            done = self.call("diff", "--format", name, "old", "new")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.golden(f"diff.{name}", done.stdout)
        self.golden("diff-same.text", self.call("diff", "old", "again").stdout)

    def test_fingerprints_say_what_traces_say(self) -> None:
        for run in ("old", "new"):
            (self.folder / f"{run}.fp").mkdir()
            for rank in range(3):
                target = f"{run}.fp/rank{rank}.ptfp"
                done = self.call("summarize", f"{run}/rank{rank}.json", "-o", target)
                self.assertEqual(done.returncode, 0, done.stderr)
        of_files, of_traces = self.diff("old.fp", "new.fp"), self.diff("old", "new")
        self.assertEqual(of_files["changes"], of_traces["changes"])

    def test_several_paths_are_divided_by_vs(self) -> None:
        words = ["old/rank0.json", "old/rank1.json", "--vs", "new/rank0.json", "new/rank1.json"]
        comparison = self.diff(*words)
        self.assertEqual(comparison["before"]["workers"], 2)
        self.assertEqual(comparison["after"]["workers"], 2)
        self.assertEqual(comparison["after"]["label"], "new/rank0.json and 1 more")

    def test_files_of_one_rank_are_repeats(self) -> None:
        write_run(self.folder / "later", False, seed=4)
        comparison = self.diff("old", "again", "--vs", "new", "later")
        self.assertEqual(comparison["before"]["windows"], 2)
        self.assertEqual(comparison["tested_over"], ["windows"])
        self.assertEqual(comparison["verdict"], "slower")

    def test_the_exit_status_is_3_only_for_slower_jobs(self) -> None:
        self.assertEqual(self.call("diff", "--exit-code", "old", "new").returncode, 3)
        self.assertEqual(self.call("diff", "--exit-code", "new", "old").returncode, 0)
        self.assertEqual(self.call("diff", "--exit-code", "old", "again").returncode, 0)
        self.assertEqual(self.call("diff", "old", "new").returncode, 0)

    def test_wrong_calls_exit_with_2_and_say_what_was_expected(self) -> None:
        for name, words in USAGE.items():
            with self.subTest(name=name):
                text = self.fails(2, self.call(*words))
                self.assertIn("--help", text)
                self.golden(f"{name}.txt", text)

    def test_a_run_without_a_usable_file_is_said_and_nothing_else(self) -> None:
        (self.folder / "bad.json").write_text("{")
        text = self.fails(1, self.call("diff", "bad.json", "new"))
        self.assertIn("nothing to compare", text)
        text = self.fails(1, self.call("diff", "old", "nowhere"))
        self.assertIn("nowhere", text)

    def test_a_bad_file_is_reported_and_the_rest_compared(self) -> None:
        (self.folder / "old" / "rank3.json").write_text("{")
        done = self.call("diff", "old", "new")
        self.assertEqual(done.returncode, 1)
        self.assertIn("rank3.json", done.stderr)
        self.assertIn("CompiledFunction", done.stdout)


if __name__ == "__main__":
    unittest.main()
