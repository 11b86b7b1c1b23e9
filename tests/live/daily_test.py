# SPDX-License-Identifier: Apache-2.0
"""`perftracker run` as a user meets it every day: first and last line, log, folders, names."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from live import PROGRAM, QUICK, LiveTest  # noqa: E402


def logfmt(line: str) -> dict[str, str]:
    pairs = re.findall(r'([a-z_]+)=(?:"((?:[^"\\]|\\.)*)"|(\S*))', line)
    return {key: quoted or plain for key, quoted, plain in pairs}


class Daily(LiveTest):
    """Called in self.folder, where `perftracker-out` comes to be."""

    def call(self, *words: str, limit_s: float = 60) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PROGRAM, "run", *words],
            capture_output=True, text=True, cwd=self.folder, env=self.env, timeout=limit_s,
        )  # fmt: skip

    def on_terminal(self, *words: str) -> str:
        """What a user sees who runs it in a terminal, without the escapes for colors."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execve(PROGRAM, [PROGRAM, "run", *words], self.env)
        seen = b""
        with contextlib.suppress(OSError):  # EIO: the other side is closed
            while data := os.read(terminal, 65536):
                seen += data
        os.close(terminal)
        os.waitpid(pid, 0)
        return re.sub(r"\033\[[0-9;]*m", "", seen.decode()).replace("\r\n", "\n")

    def events(self, text: str) -> list[dict[str, str]]:
        lines = [line for line in text.splitlines() if " app=perftracker " in line]
        return [logfmt(line) for line in lines]

    def test_the_first_line_names_the_folder_and_the_last_one_the_report(self) -> None:
        events = self.events(self.call("--", "sh", "-c", "exit 0").stderr)
        folder = pathlib.Path(events[0]["dir"])
        self.assertEqual((events[0]["event"], events[0]["job"]), ("run", "sh"))
        self.assertEqual(folder.parent, self.folder.resolve() / "perftracker-out")
        self.assertEqual(events[-1]["event"], "finished")
        self.assertEqual(events[-1]["verdict"], "inconclusive")
        self.assertEqual(events[-1]["report"], str(folder / "report.html"))
        self.assertTrue((folder / "report.html").is_file())

    def test_a_log_line_has_a_time_with_its_zone(self) -> None:
        for event in self.events(self.call("--", "true").stderr):
            moment = datetime.datetime.fromisoformat(event["ts"])
            self.assertIsNotNone(moment.tzinfo)
            self.assertLess(abs(time.time() - moment.timestamp()), 3600)
            self.assertEqual(event["level"], "info")

    def test_the_log_as_json_is_json(self) -> None:
        done = self.call("--log-format", "json", "--", "sh", "-c", "exit 0")
        lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
        self.assertEqual((lines[0]["event"], lines[-1]["event"]), ("run", "finished"))
        self.assertEqual(lines[0]["app"], "perftracker")

    def test_quiet_says_nothing_about_a_job_without_findings(self) -> None:
        self.assertEqual(self.call("--quiet", "--", "true").stderr, "")

    def test_a_terminal_shows_sentences(self) -> None:
        lines = self.on_terminal("--", "sh", "-c", "echo hello").splitlines()
        first = next(line for line in lines if line.startswith("perftracker "))
        self.assertRegex(first, r"^perftracker \d\d:\d\d:\d\d watching job sh \(sh\); results in /")
        self.assertRegex(lines[-1], r"^perftracker \S+ verdict: inconclusive. Report: /.*html$")
        self.assertIn("hello", lines)

    def test_a_progress_bar_on_the_terminal_is_left_alone(self) -> None:
        """No line is rewritten between the steps of a bar like tqdm's."""
        bar = "for i in 1 2 3 4 5 6 7 8; do printf '\\r%s/8' $i >&2; sleep 0.15; done"
        seen = self.on_terminal("--", "sh", "-c", bar)
        self.assertIn("".join(f"\r{i}/8" for i in range(1, 9)), seen)
        self.assertNotIn("\033[K", seen)

    def test_two_runs_have_two_folders_and_latest_is_the_second(self) -> None:
        for _ in range(2):
            self.call("--job-name", "my job", "--", "true")
        base = self.folder / "perftracker-out"
        folders = sorted(path.name for path in base.iterdir() if not path.is_symlink())
        self.assertEqual(len(folders), 2)
        self.assertRegex(folders[0], r"^\d{8}-\d{6}-my-job")
        self.assertIn(os.readlink(base / "latest"), folders)
        report = json.loads((base / "latest" / "report.json").read_text())
        self.assertEqual(report["job"]["id"], "my-job")

    def test_a_folder_in_use_is_refused_and_the_job_there_is_unharmed(self) -> None:
        script = "echo ready; read line; exit 3"
        first = subprocess.Popen(
            self.command("--", "sh", "-c", script), env=self.env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.assertEqual(first.stdout.readline(), b"ready\n")
        before = sorted(path.name for path in self.out.iterdir())
        done = self.run_job("--", "sh", "-c", "echo started")
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertIn(f"process {first.pid}".encode(), done.stderr)
        self.assertEqual(sorted(path.name for path in self.out.iterdir()), before)
        first.communicate(b"\n", timeout=60)
        self.assertEqual(first.returncode, 3)
        self.assertEqual(self.report()["verdict"], "failed")

    def test_a_second_run_in_a_folder_keeps_the_results_of_the_first(self) -> None:
        self.run_job("--job-name", "first", "--", "true")
        (self.out / "notes.txt").write_text("mine")
        self.run_job("--job-name", "second", "--", "true")
        [earlier] = (self.out / "earlier").iterdir()
        self.assertEqual(json.loads((earlier / "report.json").read_text())["job"]["id"], "first")
        self.assertEqual(self.report()["job"]["id"], "second")
        self.assertEqual((self.out / "notes.txt").read_text(), "mine")

    def test_settings_come_from_a_file_and_the_environment(self) -> None:
        file = self.folder / "perftracker" / "run.conf"
        file.parent.mkdir(mode=0o700)
        file.write_text("job-name = filed\nlog-format = json\nquiet = no\n")
        self.env["PERFTRACKER_JOB_NAME"] = "from env"
        shown = self.call("--window", "5", "--show-settings").stdout
        self.assertRegex(shown, r"(?m)^job-name +from env +PERFTRACKER_JOB_NAME$")
        self.assertRegex(shown, rf"(?m)^log-format +json +{file}:2$")
        self.assertRegex(shown, r"(?m)^window +5 +command line$")
        self.assertRegex(shown, r"(?m)^slowdown +5 +default$")
        first = json.loads(self.call("--", "true").stderr.splitlines()[0])
        self.assertEqual(first["job"], "from-env")
        file.write_text("\nslow-down = 5\n")
        done = self.call("--", "echo", "started")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn(
            f"{file}:2:1: unknown setting 'slow-down': did you mean 'slowdown'?", done.stderr
        )

    def test_a_command_that_cannot_start_leaves_nothing_behind(self) -> None:
        for command, status in (("nonexistent-command", 127), ("/etc/passwd", 126)):
            with self.subTest(command=command):
                done = self.call("--metrics", "0", "--", command)
                self.assertEqual(done.returncode, status)
                self.assertIn(f"cannot-start command={command}", done.stderr)
                self.assertEqual([p.name for p in self.folder.iterdir()], ["perftracker"])
                self.assertEqual(list((self.folder / "perftracker").iterdir()), [])


class Jobs(LiveTest):
    """Several jobs at once: each by its name, its process or its folder."""

    def start(self, name: str, stack: contextlib.ExitStack) -> subprocess.Popen[bytes]:
        command = [PROGRAM, "run", "--job-name", name, "-o", str(self.folder / name), *QUICK]
        job = subprocess.Popen(
            [*command, *self.fake("--iterations", "100000", "--ms", "20")],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.env, process_group=0,
        )  # fmt: skip
        stack.callback(job.wait)
        stack.callback(self.kill, job)
        return job

    def kill(self, job: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)

    def listed(self) -> list[dict]:
        answer = self.ask("status", "--format", "json")
        return json.loads(answer.stdout)["jobs"] if answer.returncode == 0 else []

    def jobs(self) -> dict[str, dict]:
        return {job["name"]: job for job in self.listed()}

    def await_jobs(self, count: int) -> dict[str, dict]:
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline:
            jobs = self.jobs()
            if len(jobs) == count and all(job["iteration_ms"] > 0 for job in jobs.values()):
                return jobs
            time.sleep(0.1)
        raise AssertionError(f"no {count} jobs that train: {self.jobs()}")

    def test_each_job_is_listed_and_found_by_what_names_it(self) -> None:
        with contextlib.ExitStack() as stack:
            one, two = self.start("one", stack), self.start("two", stack)
            jobs = self.await_jobs(2)
            self.assertEqual((jobs["one"]["pid"], jobs["two"]["pid"]), (one.pid, two.pid))
            self.assertEqual(jobs["one"]["folder"], str(self.folder / "one"))
            table = self.ask("status").stdout.splitlines()
            self.assertEqual({line.split()[0] for line in table}, {"job", "one", "two"})
            for word in ("one", str(one.pid), str(self.folder / "one")):
                shown = self.ask("status", "--job", word).stdout
                self.assertRegex(shown, rf"^job one, process {one.pid}, runs for")
            missing = self.ask("status", "--job", "three")
            self.assertEqual(missing.returncode, 1)
            self.assertIn("no running job 'three'", missing.stderr)

    def test_a_name_that_several_jobs_have_is_refused(self) -> None:
        with contextlib.ExitStack() as stack:
            self.start("same", stack)
            command = [PROGRAM, "run", "--job-name", "same", "-o", str(self.out), "--", "sleep"]
            other = subprocess.Popen(
                [*command, "600"], env=self.env, stderr=subprocess.DEVNULL, process_group=0
            )
            stack.callback(other.wait)
            stack.callback(self.kill, other)
            deadline = time.monotonic() + 120
            while len(self.listed()) < 2 and time.monotonic() < deadline:
                time.sleep(0.1)
            answer = self.ask("profile", "--job", "same")
            self.assertEqual(answer.returncode, 1)
            self.assertIn("2 running jobs are named 'same'", answer.stderr)

    def test_a_profile_is_printed_for_the_one_who_asked(self) -> None:
        with contextlib.ExitStack() as stack:
            self.start("one", stack)
            self.await_jobs(1)
            page = str(self.folder / "one" / "report-1.html")
            text = self.ask("profile", "--window", "0.2")
            self.assertEqual(text.stdout.splitlines()[-1], page, text.stderr)
            self.assertRegex(text.stdout, r"(?m)^Job       one: 2 workers")
            file = self.folder / "asked.json"
            words = ("profile", "--window", "0.2", "--format", "json", "-o", str(file))
            written = self.ask(*words)
            deadline = time.monotonic() + 120
            while "try again" in written.stderr and time.monotonic() < deadline:
                time.sleep(0.1)  # the pace is measured anew behind a window
                written = self.ask(*words)
            self.assertEqual(written.returncode, 0, written.stderr)
            self.assertEqual(json.loads(file.read_text())["job"]["id"], "one")
            last = self.jobs()["one"]["report"]
            self.assertEqual(last, str(self.folder / "one" / "report-2.html"))

    def test_watching_the_status_ends_with_the_job(self) -> None:
        with contextlib.ExitStack() as stack:
            job = self.start("one", stack)
            self.await_jobs(1)
            watch = subprocess.Popen(
                [PROGRAM, "status", "--watch", "--job", "one"],
                env=self.env, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            self.assertRegex(watch.stdout.readline(), "^job one, ")
            job.terminate()
            out, _ = watch.communicate(timeout=240)
            self.assertEqual(watch.returncode, 0)
            self.assertIn("no running job 'one'", out)


if __name__ == "__main__":
    import unittest

    unittest.main()
