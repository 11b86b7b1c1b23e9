# SPDX-License-Identifier: Apache-2.0
"""`perftracker run` as if it were not there: status, output, signals, and its own death."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from live import PROGRAM, LiveTest, children  # noqa: E402

TRAPS = (
    "trap 'echo got-%s; exit 7' %s; echo ready; i=0; "
    "while [ $i -lt 300 ]; do sleep 0.1; i=$((i+1)); done"
)


def setUpModule() -> None:  # noqa: N802 - unittest's name
    """A shell starts background jobs with INT and QUIT ignored, and no child can trap those."""
    for name in ("INT", "QUIT"):
        number = getattr(signal, "SIG" + name)
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


class Through(LiveTest):
    def test_the_exit_status_is_the_commands(self) -> None:
        for status in (0, 1, 3, 255):
            self.assertEqual(self.run_job("--", "sh", "-c", f"exit {status}").returncode, status)

    def test_death_by_a_signal_is_128_and_its_number(self) -> None:
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM):
            done = self.run_job("--", "sh", "-c", f"kill -{int(number)} $$")
            self.assertEqual(done.returncode, 128 + number)

    def test_a_missing_command_is_127_and_an_invalid_one_126(self) -> None:
        self.assertEqual(self.run_job("--", "/nonexistent/command").returncode, 127)
        self.assertEqual(self.run_job("--", "/etc/passwd").returncode, 126)

    def test_standard_input_and_output_pass_byte_for_byte(self) -> None:
        data = os.urandom(1 << 20)
        done = self.run_job("--", "cat", stdin=data)
        self.assertEqual(done.stdout, data)

    def test_standard_error_of_the_command_passes_too(self) -> None:
        data = os.urandom(1 << 16)
        done = self.run_job("--quiet", "--", "sh", "-c", "cat >&2", stdin=data)
        self.assertEqual(done.stderr, data)

    def test_arguments_and_environment_are_the_commands_own(self) -> None:
        script = 'printf "%s|" "$@" "$PT_TEST"'
        self.env["PT_TEST"] = "a b"
        done = self.run_job("--", "sh", "-c", script, "sh", "--out", "x y", "")
        self.assertEqual(done.stdout, b"--out|x y||a b|")

    def test_a_signal_to_perftracker_reaches_the_command(self) -> None:
        old = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # "nohup make test" ignores it
        self.addCleanup(signal.signal, signal.SIGHUP, old)
        for name in ("TERM", "INT", "HUP", "USR1", "USR2", "QUIT"):
            with (
                self.subTest(signal=name),
                self.job("--quiet", "--", "sh", "-c", TRAPS % (name, name)) as job,
            ):
                self.assertEqual(job.stdout.readline(), b"ready\n")
                job.send_signal(getattr(signal, "SIG" + name))
                out, _ = job.communicate(timeout=30)
                self.assertEqual((out, job.returncode), (f"got-{name}\n".encode(), 7))

    def test_an_ignored_signal_stays_ignored(self) -> None:
        program = "import signal; print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)"
        old = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            done = self.run_job("--", sys.executable, "-c", program)
        finally:
            signal.signal(signal.SIGHUP, old)
        self.assertEqual(done.stdout, b"True\n")

    def test_a_parent_that_ignores_sigchld_gets_the_status_of_the_job(self) -> None:
        """The kernel discards the job's status; the command inherits SIGCHLD as it was."""
        program = "import signal; print(signal.getsignal(signal.SIGCHLD) == 1); exit(3)"
        done = subprocess.run(
            self.command("--", sys.executable, "-c", program),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self.env, timeout=60,
            preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
        )  # fmt: skip
        self.assertEqual(done.stdout, b"True\n")
        self.assertEqual(done.returncode, 3)

    def test_no_signal_stays_blocked_in_the_command(self) -> None:
        done = self.run_job("--", "grep", "SigBlk", "/proc/self/status")
        self.assertEqual(done.stdout.split(), [b"SigBlk:", b"0000000000000000"])

    def test_stop_and_continue_reach_the_command(self) -> None:
        with self.job("--quiet", "--", "sh", "-c", "echo ready; sleep 2; exit 5") as job:
            self.assertEqual(job.stdout.readline(), b"ready\n")
            command = children(job.pid)[-1]
            job.send_signal(signal.SIGTSTP)
            self.await_state(job.pid, "T")
            self.assertEqual(self.state(command), "T")
            job.send_signal(signal.SIGCONT)
            self.assertEqual(job.wait(timeout=30), 5)

    def state(self, pid: int) -> str:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]

    def await_state(self, pid: int, state: str) -> None:
        for _ in range(100):
            if self.state(pid) == state:
                return
            time.sleep(0.05)
        self.fail(f"process {pid} is in state {self.state(pid)}")

    def test_a_killed_daemon_leaves_the_command_and_its_status_alone(self) -> None:
        script = "echo ready; sleep 1; echo done; exit 9"
        with self.job("--", "sh", "-c", script) as job:
            self.assertEqual(job.stdout.readline(), b"ready\n")
            daemon, command = children(job.pid)
            self.assertIn(b"perftracker", pathlib.Path(f"/proc/{daemon}/cmdline").read_bytes())
            self.assertNotEqual(daemon, command)
            os.kill(daemon, signal.SIGKILL)
            out, err = job.communicate(timeout=30)
            self.assertEqual((out, job.returncode), (b"done\n", 9))
            self.assertIn(b"the job runs unwatched", err)

    def test_a_daemon_that_hangs_delays_neither_the_command_nor_its_status(self) -> None:
        script = "echo ready; sleep 1; echo done; exit 9"
        with self.job("--quiet", "--", "sh", "-c", script) as job:
            self.assertEqual(job.stdout.readline(), b"ready\n")
            daemon, command = children(job.pid)
            os.kill(daemon, signal.SIGSTOP)
            self.assertEqual(job.stdout.readline(), b"done\n")
            for _ in range(100):
                if command not in children(job.pid):
                    break
                time.sleep(0.05)
            job.terminate()  # the last report is not worth the wait
            self.assertEqual(job.wait(timeout=30), 9)

    def test_a_killed_supervisor_leaves_the_command_running(self) -> None:
        mark = self.folder / "mark"
        with self.job("--", "sh", "-c", f"echo ready; sleep 1; echo end > {mark}") as job:
            self.assertEqual(job.stdout.readline(), b"ready\n")
            job.kill()
            for _ in range(100):
                if mark.exists():
                    return
                time.sleep(0.05)
        self.fail("the command did not go on")

    def test_without_a_place_to_write_the_command_still_runs(self) -> None:
        self.out.write_text("a file, no directory")
        done = self.run_job("--", "sh", "-c", "echo out; exit 4")
        self.assertEqual((done.stdout, done.returncode), (b"out\n", 4))
        self.assertIn(b"the job runs unwatched", done.stderr)

    def test_without_its_package_there_is_no_daemon_and_the_command_runs(self) -> None:
        alone = self.folder / "bin" / "perftracker"
        alone.parent.mkdir()
        shutil.copy(PROGRAM, alone)
        self.env["PERFTRACKER_AGENT"] = "/dev/null"  # found
        self.env.pop("PERFTRACKER_PYTHONPATH", None)
        words = ("--metrics", "0", "--out", self.out, "--", "sh", "-c", "echo out; exit 4")
        done = subprocess.run(
            [alone, "run", *words],
            capture_output=True, env=self.env, timeout=60,
        )  # fmt: skip
        self.assertEqual((done.stdout, done.returncode), (b"out\n", 4))
        self.assertIn(b"the Python package was not found", done.stderr)
        self.assertIn(b"the job runs unwatched", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertFalse(self.out.exists())

    def test_a_missing_folder_of_gpu_samples_is_reported(self) -> None:
        for folder, expected in ((self.folder / "later", True), (self.folder, False)):
            done = self.run_job("--gpu-samples", str(folder), "--", "true")
            self.assertEqual(done.returncode, 0)
            self.assertEqual(b"event=no-gpu-samples" in done.stderr, expected, done.stderr)

    def test_a_prepared_directory_of_others_is_refused_and_the_command_runs(self) -> None:
        (self.folder / "perftracker").mkdir(mode=0o777)
        (self.folder / "perftracker").chmod(0o777)
        done = self.run_job("--", "sh", "-c", "exit 4")
        self.assertEqual(done.returncode, 4)
        self.assertIn(b"0700", done.stderr)

    def test_a_job_without_training_gets_no_accusation(self) -> None:
        self.run_job("--", "sh", "-c", "exit 0")
        report = self.report()
        self.assertEqual((report["verdict"], report["findings"]), ("inconclusive", []))
        self.assertIn("import perftracker", report["reason"])

    def test_wrong_use_is_status_2_and_says_where_help_is(self) -> None:
        for words in (
            (),
            ("--window", "x", "true"),
            ("--slowdown", "nan", "true"),
            ("--bad", "true"),
        ):
            done = self.ask("run", *words)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn("--help", done.stderr)

    def test_nothing_stays_behind(self) -> None:
        self.run_job("--", "true")
        self.assertEqual(list((self.folder / "perftracker").iterdir()), [])
