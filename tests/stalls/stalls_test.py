#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`perftracker stalls` on real processes: each cause that can be made here is named.

Other work of the machine may starve a target, and is named, too: tests ask for the cause that they
made, and for the absence only of causes that no load makes. Each cause recurs all the time, so that
no test depends on when the window begins.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import platform
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = os.environ.get("PERFTRACKER_PROGRAM", str(ROOT / "build/src/cmd/perftracker"))
TARGET = str(pathlib.Path(__file__).with_name("target.py"))
UNPRIVILEGED = 65534  # a user id that owns nothing
# Reads of smaps no longer block from some later kernel on.
LAST_KERNEL_SEEN = (6, 18)


def ask(*words: object, user: int | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, "stalls", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        user=user,
    )


class StallsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.folder = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.folder.chmod(0o755)

    def start(self, *words: object, user: int | None = None) -> subprocess.Popen[str]:
        # The interpreter of the tests may lie where another user cannot read.
        python = sys.executable if user is None else "/usr/bin/python3"
        process = subprocess.Popen(
            [python, "-S", TARGET, *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            user=user,
        )

        def end() -> None:
            process.kill()
            process.communicate()

        self.stack.callback(end)
        self.assertEqual(process.stdout.readline().strip(), "ready")
        return process

    def watch(self, *words: object, user: int | None = None) -> dict:
        done = ask("--format", "json", *words, user=user)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def find(self, answer: dict, cause: str) -> dict:
        found = [f for f in answer["findings"] if f["cause"] == cause]
        self.assertTrue(found, f"no {cause} in {json.dumps(answer, indent=1)}")
        return found[0]

    def need(self, answer: dict, source: str) -> None:
        if source not in answer["sources"]:
            self.skipTest(f"the kernel permits no {source} here: {answer['not_seen']}")

    def test_starvation_names_the_busy_processes(self) -> None:
        target = self.start("busy")
        cpu = max(os.sched_getaffinity(0))
        hogs = [self.start("busy") for _ in range(3)]
        for process in (target, *hogs):
            os.sched_setaffinity(process.pid, {cpu})
        answer = self.watch("--pid", target.pid, "--seconds", 2)
        finding = self.find(answer, "cpu_starvation")
        self.assertTrue(finding["matters"])
        self.need(answer, "cpus")
        named = {culprit["pid"] for culprit in finding["culprits"]}
        self.assertTrue(named & {hog.pid for hog in hogs}, finding)
        self.assertNotIn(target.pid, named)

    def test_starvation_without_privileges_is_told_by_the_kernels_sum(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("needs root, to become another user")
        with contextlib.suppress(PermissionError):
            if ask("--help", user=UNPRIVILEGED).returncode == 0:
                target = self.start("busy", user=UNPRIVILEGED)
                cpu = max(os.sched_getaffinity(0))
                hogs = [self.start("busy") for _ in range(2)]
                for process in (target, *hogs):
                    os.sched_setaffinity(process.pid, {cpu})
                answer = self.watch("--pid", target.pid, "--seconds", 2, user=UNPRIVILEGED)
                finding = self.find(answer, "cpu_starvation")
                self.assertTrue(finding["matters"])
                self.assertTrue(finding["culprits_likely"])
                self.assertGreater(finding["total_ms"], 200)
                self.assertTrue(answer["not_seen"])
                return
        self.skipTest("another user may not start the program in this folder")

    def test_a_reader_of_smaps_is_named(self) -> None:
        target = self.start("mapper", 400)
        reader = self.start("reader", target.pid, 0.5)
        answer = self.watch("--pid", target.pid, "--seconds", 4)
        self.need(answer, "wakers")
        kernel = tuple(int(word) for word in platform.release().split(".")[:2])
        causes = {finding["cause"] for finding in answer["findings"]}
        if "mmap_lock" not in causes and kernel > LAST_KERNEL_SEEN:
            self.skipTest(f"kernel {platform.release()} reads smaps without the lock")
        finding = self.find(answer, "mmap_lock")
        self.assertEqual(finding["culprits"][0]["pid"], reader.pid)
        self.assertIn("reader", finding["culprits"][0]["command"])
        self.assertIn(finding["culprit_function"] or "", SMAPS_FUNCTIONS)

    def test_a_stopped_process_names_the_sender(self) -> None:
        target = self.start("busy")
        over = threading.Event()

        def stop_again() -> None:
            while not over.wait(0.1):
                os.kill(target.pid, signal.SIGSTOP)
                over.wait(0.1)
                os.kill(target.pid, signal.SIGCONT)

        thread = threading.Thread(target=stop_again)
        thread.start()
        try:
            answer = self.watch("--pid", target.pid, "--seconds", 2)
        finally:
            over.set()
            thread.join()
            os.kill(target.pid, signal.SIGCONT)
        finding = self.find(answer, "stopped")
        self.assertTrue(finding["matters"])
        self.need(answer, "wakers")
        self.assertEqual(finding["culprits"][0]["pid"], os.getpid())

    def test_a_process_stopped_all_the_time_is_stopped(self) -> None:
        target = self.start("busy")
        os.kill(target.pid, signal.SIGSTOP)
        os.waitpid(target.pid, os.WUNTRACED)
        for words in ((), ("--proc-only",)):
            answer = self.watch("--pid", target.pid, "--seconds", 0.5, *words)
            self.assertTrue(self.find(answer, "stopped")["matters"])
        with open(f"/proc/{target.pid}/stat", encoding="ascii") as file:
            self.assertEqual(file.read().rpartition(")")[2].split()[0], "T")

    def test_the_holder_of_the_gil_is_named(self) -> None:
        target = self.start("gil")
        answer = self.watch("--pid", target.pid, "--seconds", 2)
        self.need(answer, "stacks")
        finding = self.find(answer, "gil")
        self.assertTrue(finding["matters"])
        self.need(answer, "wakers")
        self.assertTrue(finding["culprits"][0]["own_process"])
        self.assertNotEqual(finding["culprits"][0]["tid"], target.pid)
        self.assertIn("nanosleep", finding["culprit_did"])

    def test_garbage_collection_is_a_cause(self) -> None:
        target = self.start("collect", "often")
        answer = self.watch("--pid", target.pid, "--seconds", 4)
        finding = self.find(answer, "garbage_collection")
        self.assertEqual((finding["kind"], finding["matters"]), ("stall", True))
        self.assertEqual((finding["threads"], finding["culprits"]), ([target.pid], []))
        target.terminate()
        pauses = json.loads(target.communicate(timeout=60)[0])
        truth_ms = 1000 * sum(end - begin for begin, end in pauses)
        self.assertLess(finding["total_ms"], truth_ms + 40 * len(pauses))  # two looks each

    def test_a_program_that_does_not_collect_has_no_collections(self) -> None:
        target = self.start("collect", "never")
        answer = self.watch("--pid", target.pid, "--seconds", 2)
        self.assertNotIn("garbage_collection", {f["cause"] for f in answer["findings"]})

    def test_a_wait_for_an_own_thread_is_no_stall(self) -> None:
        target = self.start("waiter")
        answer = self.watch("--pid", target.pid, "--seconds", 2)
        self.need(answer, "wakers")
        finding = self.find(answer, "futex")
        self.assertEqual((finding["kind"], finding["matters"]), ("wait", False))
        self.assertTrue(finding["culprits"][0]["own_process"])
        self.assertNotIn("gil", {f["cause"] for f in answer["findings"] if f["matters"]})

    def test_a_disk_is_told_with_the_file(self) -> None:
        path = self.folder / "data"
        target = self.start("fsync", path)
        with open("/proc/mounts", encoding="utf-8") as file:
            kinds = {line.split()[1]: line.split()[2] for line in file}
        place = max((m for m in kinds if str(path).startswith(m)), key=len)
        if kinds[place] in ("tmpfs", "ramfs"):
            self.skipTest(f"{place} is memory, not a disk")
        answer = self.watch("--pid", target.pid, "--seconds", 2)
        self.need(answer, "stacks")
        files = {f["file"] for f in answer["findings"] if f["cause"] == "disk"}
        self.assertIn(str(path), files)

    def make_cgroup(self) -> pathlib.Path:
        """A cgroup with a tenth of a CPU."""
        name = f"perftracker-test-{os.getpid()}"
        v1, v2 = pathlib.Path("/sys/fs/cgroup/cpu"), pathlib.Path("/sys/fs/cgroup")
        try:
            if v1.is_dir():
                group = v1 / name
                group.mkdir()
                self.stack.callback(group.rmdir)
                (group / "cpu.cfs_period_us").write_text("100000")
                (group / "cpu.cfs_quota_us").write_text("10000")
            else:
                group = v2 / name
                group.mkdir()
                self.stack.callback(group.rmdir)
                (group / "cpu.max").write_text("10000 100000")
        except OSError as error:
            self.skipTest(f"cgroups can't be written here: {error}")
        return group

    def test_a_cpu_limit_comes_before_starvation(self) -> None:
        group = self.make_cgroup()
        target = self.start("busy")
        (group / "cgroup.procs").write_text(str(target.pid))
        try:
            answers = [
                self.watch("--pid", target.pid, "--seconds", 2, *words)
                for words in ((), ("--proc-only",))
            ]
        finally:
            (group.parent / "cgroup.procs").write_text(str(target.pid))
        for answer in answers:
            finding = self.find(answer, "quota")
            self.assertTrue(finding["matters"])
            self.assertEqual((finding["quota_us"], finding["quota_period_us"]), (10000, 100000))
            self.assertEqual(finding["culprits"], [])
            self.assertGreater(finding["throttled_periods"], 0)

    def test_an_idle_process_has_no_stall_of_its_own(self) -> None:
        answer = self.watch("--pid", self.start("idle").pid, "--seconds", 1)
        told = {f["cause"] for f in answer["findings"] if f["matters"]}
        self.assertLessEqual(told, {"cpu_starvation", "cpu_idle", "steal", "interrupts"})

    def test_the_process_is_as_before(self) -> None:
        target = self.start("digest")
        self.watch("--pid", target.pid, "--seconds", 0.5)
        with open(f"/proc/{target.pid}/status", encoding="ascii") as file:
            self.assertIn("TracerPid:\t0\n", file.read())
        watched, _ = target.communicate("x\n", timeout=60)
        alone, _ = self.start("digest").communicate("x\n", timeout=60)
        self.assertEqual((watched, target.returncode), (alone, 0))

    def test_a_recording_gives_the_same_answer(self) -> None:
        path = self.folder / "r.stalls"
        target = self.start("busy")
        first = ask("--pid", target.pid, "--seconds", 0.5, "--record", path, "--format", "json")
        self.assertEqual(first.stdout, ask(path, "--format", "json").stdout)
        timeline = json.loads(ask(path, "--format", "timeline").stdout)
        names = [e["args"]["name"] for e in timeline["traceEvents"] if e["ph"] == "M"]
        self.assertIn("CPUs", names)
        for event in timeline["traceEvents"]:
            self.assertGreaterEqual(event.get("dur", 0), 0)
        self.assertIn("process", ask(path).stdout)
        self.assertIn(ask(path, "--exit-code").returncode, (0, 3, 4))

    def test_what_is_wrong_is_one_line(self) -> None:
        broken = self.folder / "broken"
        broken.write_text("perftracker-stalls 1\nwindow 1 2\n", encoding="ascii")
        for words, status, text in (
            (("--pid", 4194000, "--seconds", 0.1), 1, "process 4194000: there is no such process"),
            ((self.folder / "none",), 1, "No such file"),
            ((broken,), 1, f"{broken}:21: expected as many numbers as the word has"),
            ((), 2, "which process? Give --pid, --job or a recording"),
            (("--pid", "x"), 2, "'x' is not a process id"),
            (("--pid", 1, broken), 2, "a recording excludes"),
            (("--pid", 1, "--seconds", 0), 2, "0.1 to 600 seconds"),
        ):
            done = ask(*words)
            self.assertEqual((done.returncode, done.stdout), (status, ""), done)
            self.assertIn(text, done.stderr)
            self.assertLessEqual(len(done.stderr.splitlines()), 2)

    def test_a_process_that_ends_ends_the_window(self) -> None:
        target = self.start("busy")
        timer = threading.Timer(1, target.kill)
        timer.start()
        # As its parent does not wait for it, it is a zombie.
        answer = self.watch("--pid", target.pid, "--seconds", 200)
        timer.join()
        self.assertLess(answer["window_ms"], 190000)
        self.assertIn("the rest of the window: the process ended", answer["not_seen"])


SMAPS_FUNCTIONS = (
    "smap_gather_stats",
    "smaps_pte_range",
    "show_smap",
    "m_stop",
    "m_next",
    "m_start",
)

if __name__ == "__main__":
    unittest.main()
