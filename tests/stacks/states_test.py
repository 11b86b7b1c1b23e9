# SPDX-License-Identifier: Apache-2.0
"""`perftracker stacks` on native processes in all states that a process can be in."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from support import PROGRAM, TARGET, Stacks, call, field, names  # noqa: E402

FREEZER = pathlib.Path("/sys/fs/cgroup/freezer")
UNIFIED = pathlib.Path("/sys/fs/cgroup")


class States(Stacks):
    def wait_for_state(self, pid: int, letters: str) -> None:
        until = time.monotonic() + 60
        while field(pid, "State")[0] not in letters:
            self.assertLess(time.monotonic(), until, field(pid, "State"))
            time.sleep(0.01)

    def test_threads_have_their_frames_states_and_waits(self) -> None:
        process = self.target("threads")
        threads = self.threads(process.pid)
        spinner, sleeper = threads["spinner-1"], threads["sleeper"]
        holder, waiter = threads["holder"], threads["waiter"]
        self.has_in_order(names(spinner), ["spin_inner", "spin_outer"])
        self.assertEqual(spinner["state"], "R")
        self.assertEqual(names(sleeper).count("sleep_inner"), 4)
        self.has_in_order(names(sleeper), ["sleep_inner", "sleep_outer"])
        self.assertIn("nanosleep", sleeper["call"])
        self.has_in_order(names(holder), ["hold_inner", "hold_outer"])
        self.has_in_order(names(waiter), ["wait_inner", "wait_outer"])
        self.assertEqual(waiter["call"], "futex")
        self.assertEqual(waiter["mutex_owner"], holder["tid"])
        for thread in threads.values():
            self.assertTrue(thread["complete"], thread)
        self.assertEqual(spinner["role"], "spinner")
        self.assertEqual(field(process.pid, "TracerPid"), "0")

    def test_the_text_names_the_owner_of_a_mutex(self) -> None:
        process = self.target("threads")
        holder = self.threads(process.pid)["holder"]["tid"]
        done = call(process.pid)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"sleeping in futex (mutex held by thread {holder})", done.stdout)
        self.assertIn("wait_inner (stacks_target)", done.stdout)

    def test_blocked_threads_are_not_stopped(self) -> None:
        process = self.target("many", 20)
        for thread in self.read_one(process.pid)["threads"]:
            self.assertTrue(thread["complete"], thread)
            self.assertFalse(thread["stopped"], thread)

    def test_equal_threads_are_one_paragraph(self) -> None:
        process = self.target("many", 40)
        text = call(process.pid).stdout
        self.assertIn("(40 in all) sleeper: sleeping in", text)
        self.assertEqual(text.count("sleep_outer"), 1)

    def test_a_stopped_process_stays_stopped(self) -> None:
        process = self.target("threads")
        process.send_signal(signal.SIGSTOP)
        self.wait_for_state(process.pid, "T")
        for _ in range(5):
            threads = self.threads(process.pid)
            self.has_in_order(names(threads["spinner-1"]), ["spin_inner", "spin_outer"])
            self.has_in_order(names(threads["sleeper"]), ["sleep_inner", "sleep_outer"])
            self.assertEqual(threads["sleeper"]["state"], "T")
            self.assertEqual(field(process.pid, "State")[0], "T")
        process.send_signal(signal.SIGCONT)
        self.wait_for_state(process.pid, "RS")

    def test_a_traced_process_is_read_and_keeps_its_tracer(self) -> None:
        process = self.target("threads")
        sleeper = self.threads(process.pid)["sleeper"]["tid"]
        tracer = self.target("trace", sleeper)
        threads = self.threads(process.pid)
        self.has_in_order(names(threads["sleeper"]), ["sleep_inner", "sleep_outer"])
        self.has_in_order(names(threads["spinner-1"]), ["spin_inner", "spin_outer"])
        self.assertEqual(field(sleeper, "TracerPid"), str(tracer.pid))

    def test_a_process_that_a_debugger_holds_is_read(self) -> None:
        process = self.target("many", 2)
        tracer = self.target("hold", process.pid)
        (found,) = self.read(process.pid)
        self.assertEqual(found["state"], "t")
        self.assertEqual(found["tracer"], tracer.pid)
        self.assertIn("main", names(found["threads"][0]))
        self.assertIn(f"traced by process {tracer.pid}", call(process.pid).stdout)

    def test_uninterruptible_sleep_in_vfork(self) -> None:
        process = self.target("vfork")
        self.wait_for_state(process.pid, "D")
        begin = time.monotonic()
        (thread,) = self.read_one(process.pid)["threads"]
        took_s = time.monotonic() - begin
        self.assertEqual(thread["state"], "D")
        self.assertFalse(thread["stopped"])
        self.has_in_order(names(thread), ["main"])
        self.assertTrue(thread["complete"], thread)
        self.assertLess(took_s, 30)
        self.assertEqual(field(process.pid, "State")[0], "D")
        child = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        os.kill(int(child), signal.SIGKILL)

    def test_a_frozen_process(self) -> None:
        process = self.target("threads")
        with self.frozen(process.pid):
            threads = self.threads(process.pid)
        self.has_in_order(names(threads["sleeper"]), ["sleep_inner", "sleep_outer"])
        self.assertTrue(threads["waiter"]["complete"], threads["waiter"])
        self.wait_for_state(process.pid, "RS")

    @contextlib.contextmanager
    def frozen(self, pid: int):
        old = FREEZER.is_dir()
        folder = (FREEZER if old else UNIFIED) / f"perftracker-test-{os.getpid()}"
        try:
            folder.mkdir()
            self.addCleanup(folder.rmdir)
            (folder / "cgroup.procs").write_text(str(pid))
        except OSError as error:
            self.skipTest(f"no control group can be made: {error}")
        control = folder / ("freezer.state" if old else "cgroup.freeze")
        control.write_text("FROZEN" if old else "1")
        try:
            yield
        finally:
            control.write_text("THAWED" if old else "0")
            process_group = (FREEZER if old else UNIFIED) / "cgroup.procs"
            process_group.write_text(str(pid))

    def test_a_process_whose_main_thread_has_ended(self) -> None:
        process = self.target("leader")
        threads = self.threads(process.pid)
        self.has_in_order(names(threads["sleeper"]), ["sleep_inner", "sleep_outer"])

    def test_a_zombie_is_told(self) -> None:
        process = self.target("zombie")
        line = self.fails(1, process.said[0])
        self.assertIn(f"is a zombie: it has ended, and its parent {process.pid}", line)

    def test_the_children_are_listed_and_read(self) -> None:
        process = self.target("zombie")
        child = int(process.said[0])
        (found,) = self.read(process.pid)
        self.assertEqual([c["pid"] for c in found["children"]], [child])
        done = call("--children", "--each", process.pid)
        self.assertIn(f"child {child}, a zombie", done.stdout)
        self.assertEqual(done.returncode, 1)

    def test_another_mount_namespace(self) -> None:
        script = 'mount -t tmpfs none "$1" && cp "$2" "$1/hidden" && exec "$1/hidden" threads'
        with tempfile.TemporaryDirectory() as folder:
            unshare = shutil.which("unshare")
            test = [unshare, "-m", "true"]
            if unshare is None or subprocess.run(test, stderr=subprocess.DEVNULL).returncode:
                self.skipTest("no mount namespace can be made")
            process = self.start(unshare, "-m", "sh", "-c", script, "sh", folder, TARGET)
            threads = self.threads(process.pid)
            self.assertFalse(os.path.exists(f"{folder}/hidden"))
            self.has_in_order(names(threads["sleeper"]), ["sleep_inner", "sleep_outer"])

    def test_a_deleted_program_has_names_where_the_kernel_permits(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            copy = shutil.copy(TARGET, folder)
            process = self.start(copy, "threads")
        (found,) = self.read(process.pid)
        sleeper = next(t for t in found["threads"] if t["name"] == "sleeper")
        if os.geteuid() == 0:
            self.has_in_order(names(sleeper), ["sleep_inner", "sleep_outer"])

    def test_a_replaced_program_has_no_wrong_names(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            copy = shutil.copy(TARGET, folder)
            process = self.start(copy, "threads")
            os.unlink(copy)
            shutil.copy("/bin/true", copy)
            threads = self.threads(process.pid)
        for name in names(threads["sleeper"]):
            self.assertNotRegex(name, "true|main")


class Unchanged(Stacks):
    def test_result_and_exit_status_are_as_without(self) -> None:
        alone = self.target("work", 0.3)
        expected = alone.communicate()[0]
        self.assertEqual(alone.returncode, 7)
        watched = self.target("work", 3)
        reads = 0
        while watched.poll() is None:
            reads += call("--format", "json", watched.pid).returncode == 0
        self.assertEqual(watched.communicate()[0], expected)
        self.assertEqual(watched.returncode, 7)
        self.assertGreater(reads, 5)

    def test_processes_that_end_while_they_are_read(self) -> None:
        seen = set()
        for i in range(60):
            process = subprocess.Popen([TARGET, "many", "5"], stdout=subprocess.PIPE)
            timer = subprocess.Popen(
                ["sh", "-c", f"sleep 0.{20 + i % 20:02}; kill -9 {process.pid}"]
            )
            time.sleep(0.2)
            done = call(process.pid)
            seen.add(done.returncode)
            self.assertIn(done.returncode, (0, 1), done.stderr)
            if done.returncode == 1:
                self.assertRegex(done.stderr, "ended while it was read|is a zombie|no process")
            timer.wait()
            process.communicate()
        self.assertTrue(seen)

    def test_a_reader_that_is_killed_leaves_nothing_stopped(self) -> None:
        process = self.target("threads")
        for i in range(40):
            reader = subprocess.Popen(
                [PROGRAM, "stacks", str(process.pid)], stdout=subprocess.DEVNULL
            )
            time.sleep(0.0005 * i)
            reader.kill()
            reader.wait()
        until = time.monotonic() + 60
        tids = [int(name) for name in os.listdir(f"/proc/{process.pid}/task")]
        while any(field(tid, "TracerPid") != "0" for tid in tids):
            self.assertLess(time.monotonic(), until)
            time.sleep(0.01)
        self.assertTrue(all(field(tid, "State")[0] in "RS" for tid in tids))
        self.has_in_order(names(self.threads(process.pid)["spinner-1"]), ["spin_inner"])


class Complaints(Stacks):
    def test_no_such_process(self) -> None:
        self.assertEqual(self.fails(1, 4194000), "there is no process 4194000: `ps -e` lists them")

    def test_wrong_arguments(self) -> None:
        self.assertIn("'x1' is not a process id", self.fails(2, "x1"))
        self.assertIn("which processes?", self.fails(2))
        self.assertIn("exclude each other", self.fails(2, "--native", "--python", 1))

    def test_a_thread_is_not_a_process(self) -> None:
        process = self.target("threads")
        tid = self.threads(process.pid)["sleeper"]["tid"]
        self.assertEqual(
            self.fails(1, tid), f"{tid} is a thread of process {process.pid}: give the process"
        )

    def test_a_kernel_thread(self) -> None:
        if not pathlib.Path("/proc/2/status").exists() or field(2, "PPid") != "0":
            self.skipTest("kernel threads are not visible")
        self.assertIn("is a thread of the kernel", self.fails(1, 2))

    @unittest.skipIf(os.geteuid() != 0, "needs another user")
    def test_a_process_of_another_user(self) -> None:
        process = self.target("threads")
        done = call(process.pid, user=65534, group=65534)
        self.assertEqual(done.returncode, 1)
        self.assertIn(
            f"process {process.pid} belongs to another user (uid 0): run perftracker as that "
            "user or as root",
            done.stderr,
        )

    def test_a_job_that_is_not_there(self) -> None:
        self.assertTrue(self.fails(1, "--job", "no-such-job"))

    def test_one_process_that_fails_does_not_hide_the_others(self) -> None:
        process = self.target("threads")
        done = call("--each", process.pid, 4194000)
        self.assertEqual(done.returncode, 1)
        self.assertIn("sleep_outer", done.stdout)
        self.assertIn("no process 4194000", done.stderr)


if __name__ == "__main__":
    unittest.main()
