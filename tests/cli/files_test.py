# SPDX-License-Identifier: Apache-2.0
"""Files in, reports out: formats, choices, bad files among good ones, full disks."""

from __future__ import annotations

import json
import os
import pathlib
import pty
import shutil
import struct
import subprocess
import unittest
from collections.abc import Callable
from typing import Any

import program


class Files(program.Program):
    def setUp(self) -> None:
        super().setUp()
        program.write_job(self.folder)

    def report(self, *words: str, status: int = 0) -> dict[str, Any]:
        done = self.call(words[0], "--format", "json", *words[1:])
        self.assertEqual(done.returncode, status, done.stderr)
        return json.loads(done.stdout)

    def test_the_report_is_as_agreed(self) -> None:
        for form in ("text", "json"):
            done = self.call("analyze", "--format", form, "job")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.golden(f"report.{form}", done.stdout)

    def test_a_healthy_job_is_as_agreed(self) -> None:
        program.write_job(self.folder, late_us=0)
        done = self.call("analyze", "--exit-code", "job")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.golden("healthy.text", done.stdout)

    def test_the_page_is_one_file_without_addresses(self) -> None:
        page = self.call("analyze", "--format", "html", "job").stdout
        self.assertTrue(page.startswith("<!"))
        self.assertTrue(page.rstrip().endswith("</html>"))
        self.assertNotIn("src=", page)
        self.assertNotIn("<link", page)

    def test_output_goes_where_asked_and_nowhere_else(self) -> None:
        for form in ("text", "json", "html"):
            done = self.call("analyze", "-f", form, "-o", f"report.{form}", "job")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
            there = (self.folder / f"report.{form}").read_text()
            printed = self.call("analyze", "-f", form, "job").stdout
            if form != "text":
                self.assertEqual(there, printed)
            else:
                self.assertEqual(there.splitlines()[:-1], printed.splitlines()[:-1])

    def write_run(self, name: str, profiles: int) -> None:
        """A folder as `perftracker run` leaves it, with a fingerprint per rank and profile."""
        for profile in range(1, profiles + 1):
            inner = self.folder / name / "fingerprints" / str(profile)
            inner.mkdir(parents=True)
            for rank in range(3):
                trace, file = f"job/rank{rank}.json", inner / f"rank{rank}.ptfp"
                self.assertEqual(self.call("summarize", trace, "-o", str(file)).returncode, 0)
        (self.folder / name / "fingerprints").mkdir(parents=True, exist_ok=True)
        (self.folder / name / "report-1.json").write_text("{}")

    def test_the_folder_of_a_run_stands_for_its_latest_profile(self) -> None:
        self.write_run("perftracker-out/20261123-120341-train", 11)
        (self.folder / "perftracker-out" / "latest").symlink_to("20261123-120341-train")
        expected = self.report("localize", "perftracker-out/latest/fingerprints/11")
        for word in ("latest", "perftracker-out", "perftracker-out/latest"):
            for command in ("localize", "analyze"):
                done = self.call(command, "--format", "json", word)
                self.assertEqual(json.loads(done.stdout), expected, word)
                self.assertEqual(
                    done.stderr, "perftracker: reading perftracker-out/latest/fingerprints/11\n"
                )

    def test_a_run_without_a_profile_is_not_taken_for_traces(self) -> None:
        self.write_run("out", 0)
        done = self.call("localize", "out")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("out: this run has made no profile", done.stderr)

    def test_a_file_named_latest_is_that_file(self) -> None:
        (self.folder / "latest" / "x").mkdir(parents=True)
        self.assertIn("latest: expected traces", self.call("analyze", "latest").stderr)

    def test_folders_in_a_folder_are_searched(self) -> None:
        for rank in range(3):
            into = self.folder / "nested" / f"rank{rank}"
            into.mkdir(parents=True)
            shutil.copy(self.folder / "job" / f"rank{rank}.json", into / "trace.json")
        self.assertEqual(self.report("analyze", "nested")["findings"][0]["ranks"], "1")

    def test_color_is_as_asked(self) -> None:
        self.assertIn("\033[", self.call("analyze", "--color", "always", "job").stdout)
        for color in ("auto", "never"):
            self.assertNotIn("\033[", self.call("analyze", "--color", color, "job").stdout)

    def test_the_exit_status_is_0_without_exit_code(self) -> None:
        self.assertEqual(self.call("analyze", "job").returncode, 0)
        self.assertEqual(self.call("analyze", "--exit-code", "job").returncode, 3)

    def test_only_chosen_ranks_are_compared(self) -> None:
        report = self.report("analyze", "--ranks", "1-2", "job")
        self.assertEqual(report["coverage"]["workers_analyzed"], 2)
        self.assertEqual(report["coverage"]["ranks_missing"], "")
        self.assertEqual(report["findings"][0]["ranks"], "1")

    def test_only_chosen_steps_are_analyzed(self) -> None:
        self.assertEqual(self.report("analyze", "--steps", "2-4", "job")["job"]["iterations"], 3)
        self.assertEqual(self.report("analyze", "job")["job"]["iterations"], 6)

    def change_trace(self, rank: int, change: Callable[[list[dict[str, Any]]], list]) -> None:
        path = self.folder / "job" / f"rank{rank}.json"
        trace = json.loads(path.read_text())
        trace["traceEvents"] = change(trace["traceEvents"])
        path.write_text(json.dumps(trace))

    def lengthen_first_steps(self) -> None:
        """Step 0 of 94 ms, the others of 34 ms."""

        def earlier(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
            for e in events:
                if e["name"] == "ProfilerStep#0":
                    e["ts"], e["dur"] = e["ts"] - 60_000, e["dur"] + 60_000
            return events

        for rank in range(3):
            self.change_trace(rank, earlier)

    def test_a_first_step_of_warmup_is_left_out_and_named(self) -> None:
        self.lengthen_first_steps()
        report = self.report("analyze", "job")
        self.assertEqual(report["job"]["iterations"], 5)
        self.assertAlmostEqual(report["job"]["iteration_ms"], 34)
        self.assertIn("the first step, before #1, is left out as warm-up", str(report["notes"]))
        self.assertEqual(self.report("analyze", "--steps", "0-5", "job")["job"]["iterations"], 6)

    def test_a_step_is_warmup_on_all_ranks_or_on_none(self) -> None:
        """Rank 2 has two steps, of which none can be told to be warm-up."""
        self.lengthen_first_steps()
        self.change_trace(2, lambda events: [e for e in events if e["ts"] < 1_068_000])
        report = self.report("analyze", "job")
        self.assertEqual(report["job"]["iterations"], 6)
        self.assertNotIn("warm-up", str(report["notes"]))
        self.assertEqual(report["findings"][0]["ranks"], "1")

    def test_small_gains_are_left_out(self) -> None:
        gain = self.report("analyze", "job")["findings"][0]["gain_pct"]
        less = self.report("analyze", "--min-gain", str(gain - 1), "job")
        more = self.report("analyze", "--min-gain", str(gain + 1), "job")
        self.assertEqual(less["findings"][0]["ranks"], "1")
        self.assertEqual(more["findings"], [])

    def test_an_expectation_file_is_used(self) -> None:
        program.write_job(self.folder, late_us=0)
        (self.folder / "expect.json").write_text('{"comm": {"beta": [0, 0]}}')
        self.assertEqual(self.report("analyze", "job")["findings"], [])
        strict = self.report("analyze", "--expect", "expect.json", "job")
        self.assertEqual(strict["findings"][0]["cause"], "slow-collective")

    def test_one_bad_file_costs_only_itself(self) -> None:
        (self.folder / "job" / "rank2.json").write_text('{"traceEvents": [{"ph": "X", "ts": tru')
        done = self.call("analyze", "job")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("rank2.json", done.stderr)
        self.golden("one-bad-file.text", done.stdout)
        report = self.report("analyze", "job", status=1)
        self.assertEqual(report["coverage"]["ranks_missing"], "2")
        self.assertEqual(report["findings"][0]["ranks"], "1")

    def test_a_number_without_a_value_costs_its_event_not_its_rank(self) -> None:
        path = self.folder / "job" / "rank2.json"
        events = json.loads(path.read_text())
        events["traceEvents"][1]["ts"] = float("nan")
        events["traceEvents"][4]["args"]["x"] = float("-inf")
        path.write_bytes(b"\xef\xbb\xbf" + json.dumps(events).encode())
        report = self.report("analyze", "job")
        self.assertEqual(report["coverage"]["workers_analyzed"], 3)
        self.assertIn("1 event without a usable time or name", report["notes"])
        self.assertEqual(report["findings"][0]["ranks"], "1")

    def test_files_that_are_no_traces_are_named_and_are_no_ranks(self) -> None:
        whole = self.report("analyze", "job")
        (self.folder / "job" / "report-1.json").write_text(json.dumps(whole))
        (self.folder / "job" / "config.json").write_text('{"lr": 0.1}')
        done = self.call("analyze", "--format", "json", "job")
        self.assertEqual((done.returncode, json.loads(done.stdout)), (0, whole))
        self.assertIn("left out: job/report-1.json: a report of PerfTracker", done.stderr)
        self.assertIn("left out: job/config.json: JSON without", done.stderr)
        done = self.call("analyze", "job/config.json")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn('config.json: expected a trace, found JSON without a "trace', done.stderr)

    def test_a_folder_without_traces_says_what_it_holds(self) -> None:
        (self.folder / "dumps").mkdir()
        (self.folder / "dumps" / "nccl_trace_rank_0").write_bytes(b"\x80\x04}\x94\x8c\tpg_config")
        done = self.call("analyze", "dumps")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("nccl_trace_rank_0: offset 15: expected a pickle, found its end", done.stderr)
        (self.folder / "other").mkdir()
        (self.folder / "other" / "memory.pickle").write_bytes(b"\x80\x04}\x94\x8c\x06segments")
        done = self.call("analyze", "other")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("expected traces", done.stderr)

    def test_a_damaged_file_adds_no_rank_to_a_job_of_known_size(self) -> None:
        (self.folder / "job" / "rank7.json").write_text('{"traceEvents": [{"ph": "X", "ts": tru')
        report = self.report("analyze", "job", status=1)
        self.assertEqual(report["coverage"]["ranks_missing"], "")
        self.assertEqual(report["job"]["world_size"], 3)

    def test_the_halves_say_what_the_whole_says(self) -> None:
        (self.folder / "prints").mkdir()
        for rank in range(3):
            done = self.call("summarize", f"job/rank{rank}.json", "-o", f"prints/rank{rank}.ptfp")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        halves = self.call("localize", "--format", "json", "prints").stdout
        self.assertEqual(halves, self.call("analyze", "--format", "json", "job").stdout)

    def test_a_fingerprint_and_its_trace_are_dumped_alike(self) -> None:
        self.call("summarize", "job/rank1.json", "-o", "rank1.ptfp")
        for form in ("text", "json"):
            of_print = self.call("dump", "--format", form, "rank1.ptfp")
            self.assertEqual(of_print.returncode, 0)
            self.assertEqual(
                of_print.stdout, self.call("dump", "-f", form, "job/rank1.json").stdout
            )
            self.golden(f"dump.{form}", of_print.stdout)

    def test_a_sidecar_beside_a_trace_is_read_with_it(self) -> None:
        event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1}
        trace = {"traceEvents": [{**event, "ts": 1, "dur": 1000}]}
        (self.folder / "rank0.json").write_text(json.dumps(trace))
        self.assertNotIn("sidecar", self.call("analyze", "rank0.json").stderr)
        (self.folder / "rank0.json.sidecar").write_bytes(b"no sidecar")
        done = self.call("analyze", "rank0.json")
        self.assertIn("rank0.json.sidecar", done.stdout + done.stderr)

    def test_a_sidecar_is_dumped(self) -> None:
        corpus = pathlib.Path(__file__).resolve().parent.parent / "corpus" / "sidecar"
        for form in ("text", "json"):
            done = self.call("dump", "--format", form, str(corpus / "example"))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.golden(f"sidecar.{form}", done.stdout)
        shutil.copy(corpus / "truncated", self.folder / "truncated.sidecar")
        done = self.call("dump", "truncated.sidecar")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("truncated.sidecar: byte 240: section 1: expected 4 records", done.stderr)

    def test_a_group_is_measured_by_the_links_it_talks_over(self) -> None:
        tracks = {"nvlink_tx": (0.7, "GPU 0 Counters"), "nic_tx": (0.6, "Host Counters")}
        events = [program.span("python_function", "train", 0, 10_000)]
        gather = program.span("kernel", "ncclDevKernel_AllGather", 1_000, 9_000, lane=20)
        gather["pid"] = 0
        gather["args"] = {"Process Group Ranks": "[0, 1]", "Group size": 2}
        for ms in range(10):
            for name, (value, pid) in tracks.items():
                sample = {name: value if ms > 1 else 0.0}
                events.append(
                    {"ph": "C", "name": name, "pid": pid, "tid": 0, "ts": ms * 1000, "args": sample}
                )
        info = {"rank": 0, "world_size": 4}
        text = json.dumps({"distributedInfo": info, "traceEvents": [*events, gather]})
        (self.folder / "rank0.json").write_text(text)
        for ranks, mu in (("0-1", 0.7), ("0,2", 0.6), (None, 0.6)):
            words = ("--host-ranks", ranks) if ranks else ()
            done = self.call("summarize", *words, "rank0.json", "-o", "rank0.ptfp")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            functions = json.loads(self.call("dump", "-f", "json", "rank0.ptfp").stdout)
            found = [f for f in functions["functions"] if "AllGather" in f["stack"][-1]]
            self.assertEqual([round(f["mu"], 6) for f in found], [mu])
        self.assertEqual(
            self.call("summarize", "--host-ranks", "x", "rank0.json", "-o", "x").returncode, 2
        )

    def test_a_sidecar_tells_whether_a_group_leaves_its_host(self) -> None:
        """NVLink, the only link with counters here, says nothing of a group that does."""
        sample = {"ph": "C", "name": "nvlink_tx", "pid": "GPU 0 Counters", "tid": 0}
        events = [program.span("python_function", "train", 0, 10_000)]
        for ms in range(10):
            events.append({**sample, "ts": ms * 1000, "args": {"nvlink_tx": 0.7 if ms > 1 else 0}})
        for name, size in (("AllGather", 2), ("AllReduce", 3)):
            kernel = program.span("kernel", "ncclDevKernel_" + name, 3_000, 8_000, lane=20 + size)
            ranks = str(list(range(size)))
            kernel |= {"pid": 0, "args": {"Process Group Ranks": ranks, "Group size": size}}
            events.append(kernel)
        info = {"distributedInfo": {"rank": 0, "world_size": 4}}
        (self.folder / "rank0.json").write_text(json.dumps({**info, "traceEvents": events}))
        for on_host, mus in ((0, [0.7, 0.7]), (2, [0.7, None])):
            header = struct.pack("<4IiI4q64s", 0x31435350, 1, 1, 1, 0, 16, 0, 0, 0, 0, b"host")
            sections = struct.pack("<32Q", *[376, 0] * 15, 376, 2)
            ranks = struct.pack("<iIiI", 0, on_host, 1, on_host)
            (self.folder / "rank0.json.sidecar").write_bytes(header + sections + ranks)
            done = self.call(
                "summarize", "--sidecar", "rank0.json.sidecar", "rank0.json", "-o", "rank0.ptfp"
            )
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            functions = json.loads(self.call("dump", "-f", "json", "rank0.ptfp").stdout)
            found = {f["stack"][-1]: f["mu"] for f in functions["functions"]}
            for name, mu in zip(("AllGather", "AllReduce"), mus, strict=True):
                self.assertEqual(found["ncclDevKernel_" + name], mu)

    def test_a_copy_of_a_file_is_told_and_used_once(self) -> None:
        whole = self.report("analyze", "job")
        shutil.copy(self.folder / "job" / "rank0.json", self.folder / "job" / "a-copy.json")
        doubled = self.report("analyze", "job")
        self.assertEqual(doubled["findings"], whole["findings"])
        self.assertEqual(doubled["job"]["world_size"], 3)
        self.assertIn("holds the same window as", " ".join(doubled["notes"]))

    def test_files_of_two_runs_are_refused_with_a_list(self) -> None:
        """Each is the run of another simulation, with the same ranks."""
        for seed in ("1", "2"):
            words = ("simulate", "-s", "healthy", "--workers", "4", "--seed", seed, "-o", seed)
            done = self.call(*words)
            self.assertEqual(done.returncode, 0, done.stderr)
        done = self.call("analyze", "job", "1")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("expected files of one job, found 2 sets", done.stderr)
        self.assertIn("world sizes of", done.stderr)
        for line in ("\n  set 1: ranks 0-", "\n  set 2: ranks 0-", "give the files of one set"):
            self.assertIn(line, done.stderr)

    def test_the_input_may_be_closed(self) -> None:
        words = [program.PROGRAM, "analyze", "job"]
        closed = ["sh", "-c", '"$@" <&-', "sh", *words]
        done = subprocess.run(closed, cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("ABNORMAL", done.stdout)

    def test_a_full_disk_is_an_error(self) -> None:
        if not pathlib.Path("/dev/full").exists():
            self.skipTest("no /dev/full")
        calls = [["analyze", "-f", form, "job"] for form in ("text", "json", "html")]
        calls += [["dump", "job/rank0.json"], ["dump", "-f", "json", "job/rank0.json"]]
        calls += [["--help"], ["analyze", "--help"]]
        for words in calls:
            with self.subTest(words=words), open("/dev/full", "w", encoding="utf-8") as full:
                done = self.call(*words, stdout=full)
                self.assertEqual(done.returncode, 1)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        done = self.call("analyze", "-o", "/dev/full", "job")
        self.assertEqual(done.returncode, 1)

    def test_colors_come_on_terminals_unless_refused(self) -> None:
        for extra, colored in (({}, True), ({"NO_COLOR": "1"}, False)):
            env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | extra
            mine, theirs = pty.openpty()
            done = self.call("analyze", "job", stdout=theirs, env=env)
            os.close(theirs)
            text = b""
            while True:
                try:
                    part = os.read(mine, 65536)
                except OSError:
                    break
                if not part:
                    break
                text += part
            os.close(mine)
            self.assertEqual(done.returncode, 0)
            self.assertEqual(b"\x1b[" in text, colored)
        self.assertNotIn("\x1b[", self.call("analyze", "job").stdout)


if __name__ == "__main__":
    unittest.main()
