# SPDX-License-Identifier: Apache-2.0
"""Calls that cannot work: what is said, where, and the exit status."""

from __future__ import annotations

import unittest

import program

USAGE = {
    "no-command": [],
    "wrong-command": ["anlyze", "job"],
    "analyze.nothing": ["analyze"],
    "wrong-scenario": ["simulate", "--scenario", "nicbond", "-o", "x"],
    "unlike-command": ["train"],
    "analyze.flag-value": ["analyze", "--verbose=3", "job"],
    "analyze.letter": ["analyze", "-x", "job"],
    "run.ambiguous": ["run", "--min", "--", "true"],
    "localize.nothing": ["localize"],
    "summarize.nothing": ["summarize"],
    "dump.nothing": ["dump"],
    "summarize.no-output": ["summarize", "job/rank0.json"],
    "summarize.two": ["summarize", "job/rank0.json", "job/rank1.json", "-o", "x.ptfp"],
    "summarize.keep": ["summarize", "--keep", "x.flight", "job/rank0.json", "-o", "x.ptfp"],
    "summarize.flight-fd": ["summarize", "--flight-fd", "three", "-o", "x.ptfp"],
    "summarize.flight-trace": ["summarize", "--flight-fd", "3", "job/rank0.json", "-o", "x.ptfp"],
    "analyze.option": ["analyze", "--formt", "json", "job"],
    "analyze.no-value": ["analyze", "job", "--format"],
    "analyze.format": ["analyze", "--format", "yaml", "job"],
    "analyze.ranks": ["analyze", "--ranks", "3-1", "job"],
    "analyze.ranks-word": ["analyze", "--ranks", "all", "job"],
    "analyze.steps": ["analyze", "--steps", "6-4", "job"],
    "analyze.steps-huge": ["analyze", "--steps", "99999999999999999999", "job"],
    "analyze.min-gain": ["analyze", "--min-gain", "-1", "job"],
    "analyze.min-gain-word": ["analyze", "--min-gain", "nan", "job"],
    "analyze.jobs": ["analyze", "--jobs", "0", "job"],
    "analyze.seed": ["analyze", "--seed", "1x", "job"],
    "analyze.world-size": ["analyze", "--world-size", "0", "job"],
    "analyze.expect": ["analyze", "--expect", "nowhere.json", "job"],
    "analyze.expect-malformed": ["analyze", "--expect", "bad.json", "job"],
    "dump.format": ["dump", "--format", "html", "job/rank0.json"],
    "dump.top": ["dump", "--top", "-4", "job/rank0.json"],
    "summarize.rank": ["summarize", "--rank", "-2", "job/rank0.json", "-o", "x.ptfp"],
    "status.word": ["status", "/nope"],
    "status.format": ["status", "--format", "html"],
    "profile.word": ["profile", "now"],
    "profile.window": ["profile", "--window", "long"],
    "profile.timeout": ["profile", "--timeout", "0"],
    "doctor.option": ["doctor", "--nope"],
    "run.no-value": ["run", "--gpu-samples", "--", "true"],
    "run.exact-torch": ["run", "--source", "torch", "--exact", "--", "true"],
    "run.no-folder": ["run", "--gpu-samples", "job/rank0.json", "--", "true"],
    "summarize.steps": ["summarize", "--steps", "four", "job/rank0.json", "-o", "x.ptfp"],
}

FAILED = {
    "missing-file": ["analyze", "nowhere/rank0.json"],
    "empty-folder": ["analyze", "empty"],
    "dump.missing": ["dump", "nowhere.ptfp"],
    "summarize.missing": ["summarize", "nowhere.json", "-o", "x.ptfp"],
    "summarize.no-folder": ["summarize", "job/rank0.json", "-o", "nowhere/x.ptfp"],
    "analyze.no-folder": ["analyze", "job", "-o", "nowhere/report.json"],
    "analyze.no-such-rank": ["analyze", "job", "--ranks", "7"],
    "malformed": ["analyze", "bad.json"],
    "dump.malformed": ["dump", "bad.json"],
    "foreign-fingerprint": ["localize", "foreign.ptfp"],
}


class Texts(program.Program):
    def setUp(self) -> None:
        super().setUp()
        program.write_job(self.folder)
        (self.folder / "empty").mkdir()
        (self.folder / "empty" / "notes.txt").write_text("no trace\n")
        (self.folder / "bad.json").write_text('{"traceEvents": [{"ph": "X", "ts": tru')
        (self.folder / "foreign.ptfp").write_bytes(b"PTFP\xff\xff\xff\xff and no more")

    def test_wrong_calls_exit_with_2_and_say_what_was_expected(self) -> None:
        for name, words in USAGE.items():
            with self.subTest(name=name):
                done = self.call(*words)
                if name == "no-command":
                    self.assertEqual(done.returncode, 2)
                    continue
                text = self.fails(2, done)
                self.assertIn("--help", text)
                self.golden(f"{name}.txt", text)

    def test_what_cannot_be_done_exits_with_1_and_one_line(self) -> None:
        for name, words in FAILED.items():
            with self.subTest(name=name):
                text = self.fails(1, self.call(*words))
                self.golden(f"{name}.txt", text)
                self.assertLessEqual(len(text.splitlines()), 2)

    def test_verbose_prints_findings_in_full(self) -> None:
        self.assertNotIn("scores ", self.call("analyze", "job").stdout)
        self.assertIn("scores ", self.call("analyze", "--verbose", "job").stdout)

    def test_help_of_a_command_is_its_help(self) -> None:
        self.assertEqual(self.call("help", "run").stdout, self.call("run", "--help").stdout)
        self.assertEqual(self.call("help").stdout, self.call("--help").stdout)
        self.assertEqual(self.call("help", "rnu").returncode, 2)

    def test_version_is_one_line(self) -> None:
        self.assertEqual(self.call("run", "--version").stdout, self.call("--version").stdout)
        self.assertRegex(self.call("--version").stdout, r"^perftracker \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    unittest.main()
