# SPDX-License-Identifier: Apache-2.0
"""The ways to load the agent into a training process, and the job's behavior if the agent fails.

Each job is run with and without the agent: output, exit status and number of steps must
be the same. As test_hook.py; PERFTRACKER_HIDER and PERFTRACKER_INJECT name what
hide_symbols.c and inject.c were built to.
"""

import collections
import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import threading
import unittest
from typing import Any, Dict, Iterator, List

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(os.path.dirname(HERE)), "python")]

import daemon as d  # noqa: E402
import recorder as r  # noqa: E402
from perftracker import _signals  # noqa: E402
from test_hook import PYTHON, SOURCES, TORCH, HookTest  # noqa: E402

AGENT = os.environ.get("PERFTRACKER_AGENT", "")
HIDER = os.environ.get("PERFTRACKER_HIDER", "")
INJECT = os.environ.get("PERFTRACKER_INJECT", "")
STEPS = 1000
OPERATORS = 1  # enum flight_source
NOBODY = 65534
# DISABLE_CUPTI_LAZY_REINIT and TEARDOWN_CUPTI, of which the job has set the second to 1.
KEPT = [
    "2.0.1+cu118 - 1",
    "2.1.2+cu118 1 1",
    "2.2.0+cu121 1 0",
    "2.7.1+cu128 1 0",
    "2.8.0+cu118 1 0",
    "2.8.0+cu126 - 1",
    "2.10.0+cu130 - 1",
    "2.10.0+rocm7.0 - 1",
    "forbidden 1 0",
    "no graphs - 1",
    "no inductor - 1",
    "moved - 1",
    "odd - 1",
]


class FailOpenTest(HookTest):
    def window_now(self, **order: Any) -> None:
        """Orders a window from each worker as soon as it trains."""
        self.order_when(5, 0, **{"window_ns": 2 * 10**7, "least": 10, **order})

    def look_at_windows(self) -> None:
        """Reads the operators when a window is done: its memory is freed 10 s later."""
        self.operators: Dict[int, Dict[str, int]] = {}
        ordered = self.daemon.on_poll

        def poll(worker: d.Worker) -> None:
            if ordered is not None:
                ordered(worker)
            begun = worker.got(d.BEGUN)
            is_agents = begun and begun[0].text == "agent"
            if is_agents and worker.got(d.DONE) and id(worker) not in self.operators:
                self.operators[id(worker)] = r.Recorder(worker).operators()

        self.daemon.on_poll = poll

    def assert_same(
        self, name: str, *args: Any, env: Any = None, bare: Any = None
    ) -> List[d.Worker]:
        """The workers, after a check that the job ends as without the agent."""
        bare = bare or self.run_bare(name, *args)
        self.look_at_windows()
        run = self.run_job(name, *args, env=env)
        self.assertEqual(
            (run.stdout, run.stderr, run.returncode), (bare.stdout, bare.stderr, bare.returncode)
        )
        for worker in self.daemon.workers:
            self.assertTrue(d.wait_for(lambda worker=worker: worker.closed, 10))
        return self.daemon.workers

    def assert_recorded(self, workers: List[d.Worker], steps: int = STEPS) -> None:
        """One worker, all its steps, and its window by the agent's own collectors."""
        self.assertEqual([worker.step() for worker in workers], [steps])
        self.assertEqual([m.type for m in workers[0].messages], [d.BEGUN, d.DONE, d.BYE])
        self.assertEqual(workers[0].messages[0].text, "agent")
        self.assertGreater(self.operators[id(workers[0])]["aten::linear"], 0)

    def environment(self, **more: str) -> Dict[str, str]:
        """Of a job with only the daemon's socket: no package, no library."""
        env = {**os.environ, "PERFTRACKER_SOCKET": self.daemon.path, **more}
        env.pop("PERFTRACKER_AGENT", None)
        return env

    def outcome(self, command: List[str], env: Dict[str, str], **options: Any) -> Any:
        run = subprocess.run(
            command, env={**os.environ, **env}, capture_output=True, text=True, **options
        )
        return run.returncode, run.stdout, run.stderr


@unittest.skipUnless(TORCH, "no torch in %s: set PERFTRACKER_PYTHON" % PYTHON)
class Ways(FailOpenTest):
    def test_preloaded(self) -> None:
        self.window_now(source=d.SOURCE_AGENT)
        env = self.environment(LD_PRELOAD=AGENT)
        self.assert_recorded(self.assert_same("plain.py", STEPS, 0, 4, env=env))

    def test_preloaded_into_the_processes_of_a_loader(self) -> None:
        env = self.environment(LD_PRELOAD=AGENT)
        workers = self.assert_same("plain.py", 100, 2, 4, env=env)
        self.assertEqual([worker.step() for worker in workers], [100])

    def test_preloaded_and_named_by_the_environment_in_two_copies(self) -> None:
        copy = os.path.join(self.folder, "libperftracker-agent.so")
        shutil.copy(AGENT, copy)
        self.window_now(source=d.SOURCE_AGENT)
        env = {**self.daemon.environment(), "LD_PRELOAD": copy}
        self.assert_recorded(self.assert_same("plain.py", STEPS, 0, 4, env=env))

    def test_injected_as_by_the_driver_of_cuda(self) -> None:
        for when in ("before", "during", "after", "thread"):
            with self.subTest(when):
                self.daemon.workers.clear()
                env = self.environment(CUDA_INJECTION64_PATH=AGENT)
                if when in ("after", "thread"):  # only the injection attaches the agent
                    env["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
                run = self.run_job("injected.py", when, 60, env=env)
                self.assertEqual((run.returncode, run.stderr), (4, ""))
                self.assertEqual(run.stdout, self.run_bare("plain.py", 60, 0, 4).stdout)
                self.assertEqual([worker.step() for worker in self.daemon.workers], [60])

    def test_injected_without_a_daemon_nothing_is_imported(self) -> None:
        program = (
            "import ctypes, os, sys\n"
            "print(ctypes.CDLL(os.environ['CUDA_INJECTION64_PATH']).InitializeInjection())\n"
            "print([n for n in sys.modules if 'perftracker' in n], len(sys.path))\n"
        )
        run = self.outcome([PYTHON, "-c", program], {"CUDA_INJECTION64_PATH": AGENT})
        bare = self.outcome([PYTHON, "-c", "import sys; print(len(sys.path))"], {})
        self.assertEqual(run, (0, "1\n[] " + bare[1], ""))


class OtherPrograms(FailOpenTest):
    """What LD_PRELOAD reaches besides Python is left alone."""

    def assert_alone(self, *command: str, **options: Any) -> None:
        if shutil.which(command[0]) is None:
            return
        bare = self.outcome(list(command), {}, **options)
        for bind in ("", "1"):  # all symbols at the start
            env = {"LD_PRELOAD": AGENT, "LD_BIND_NOW": bind, "PERFTRACKER_SOCKET": "/x"}
            self.assertEqual(self.outcome(list(command), env, **options), bare, command)

    def test_shells_compilers_and_programs_without_a_dynamic_linker(self) -> None:
        self.assert_alone("true")
        self.assert_alone("sh", "-c", "echo $PYTHONPATH; ls | grep -c . ; exit 3")
        self.assert_alone("cc", "-x", "c", "-E", "/dev/null")
        self.assert_alone("/sbin/ldconfig", "--version")
        self.assert_alone(INJECT, AGENT)

    def test_programs_that_run_as_another_user(self) -> None:
        if os.getuid() != 0:
            self.skipTest("not root")
        self.assert_alone("su", "--help", user=NOBODY)

    def test_python_that_takes_no_environment(self) -> None:
        self.assert_alone(PYTHON, "-I", "-c", "import sys; print(sys.path)")

    def test_python_finds_the_package_once_and_behind_no_empty_entry(self) -> None:
        program = (
            "import os; print(os.environ['PYTHONPATH'], flush=True);"
            "os.system('env | grep PYTHONPATH')"
        )
        package = os.path.join(os.path.dirname(os.path.dirname(HERE)), "python")
        for old, new in (("", package), ("/a:/b", package + ":/a:/b"), (package, package)):
            env = {"LD_PRELOAD": AGENT, "PERFTRACKER_SOCKET": "/x", "PYTHONPATH": old}
            run = self.outcome([PYTHON, "-c", program], env)
            self.assertEqual(run, (0, new + "\nPYTHONPATH=" + new + "\n", ""))

    def test_without_a_daemon_the_environment_stays(self) -> None:
        program = "import os; print('PYTHONPATH' in os.environ)"
        env = {"LD_PRELOAD": AGENT}
        self.assertEqual(self.outcome([PYTHON, "-c", program], env), (0, "False\n", ""))


@unittest.skipUnless(TORCH, "no torch in %s: set PERFTRACKER_PYTHON" % PYTHON)
class TakenAway(FailOpenTest):
    def assert_limited_same(self, what: str, *more: Any) -> List[d.Worker]:
        bare = self.run_bare("limited.py", "nothing", STEPS)
        return self.assert_same("limited.py", what, STEPS, *more, bare=bare)

    def assert_no_worker(self, what: str, *more: Any) -> None:
        self.assertEqual(self.assert_limited_same(what, *more), [])

    def test_no_memory_file(self) -> None:
        self.assert_no_worker("memfd_create")

    def test_no_file_of_the_recorders_size(self) -> None:
        self.assert_no_worker("file_size")

    def test_no_descriptor(self) -> None:
        self.assert_no_worker("files")

    def test_no_address_space_for_the_recorder(self) -> None:
        self.assert_no_worker("memory", 16 << 20)

    def test_no_address_space_for_the_helper_thread(self) -> None:
        """Somewhere above the recorder's size; whether it starts or not, the job trains."""
        for more in (2560 << 10, 3 << 20):
            with self.subTest(more):
                self.daemon.workers.clear()
                self.window_now()
                self.assert_limited_same("memory", r.RECORDER_BYTES + more)

    def test_no_process_vm_readv(self) -> None:
        self.window_now(source=d.SOURCE_AGENT)
        workers = self.assert_limited_same("process_vm_readv")
        self.assert_recorded(workers)
        self.assertGreater(len(r.Recorder(workers[0]).samples()), 0)

    def test_no_files_of_its_own_in_proc(self) -> None:
        os.chmod(self.folder, 0o777)
        os.chmod(self.daemon.path, 0o777)
        self.window_now(source=d.SOURCE_AGENT)
        self.assert_recorded(self.assert_limited_same("proc"))

    def test_the_job_closes_all_descriptors_and_reuses_their_numbers(self) -> None:
        """Nothing is written into its sockets, and no child of it closes its files."""
        for what, source in (("sockets", "agent"), ("sockets", "torch"), ("files", "agent")):
            with self.subTest(what, source=source):
                self.daemon.workers.clear()
                self.window_now(source=SOURCES[source])
                worker = self.assert_same("closes.py", what, 20, 300)[0]
                self.assertGreaterEqual(worker.step(), 20)
                self.assertEqual(worker.got(d.BYE), [])

    @unittest.skipUnless(HIDER, "PERFTRACKER_HIDER is not set")
    def test_a_symbol_of_python_is_missing(self) -> None:
        env = {**self.daemon.environment(), "LD_PRELOAD": HIDER}
        env["PERFTRACKER_HIDE"] = "PyCFunction_NewEx"
        workers = self.assert_same("plain.py", STEPS, 0, 4, env=env)
        self.assertEqual([m.type for w in workers for m in w.messages], [d.MISSED])

    @unittest.skipUnless(HIDER, "PERFTRACKER_HIDER is not set")
    def test_a_symbol_of_torch_is_missing(self) -> None:
        self.window_now(source=d.SOURCE_AGENT)
        env = {**self.daemon.environment(), "LD_PRELOAD": HIDER}
        env["PERFTRACKER_HIDE"] = "RecordFunction"
        worker = self.assert_same("plain.py", STEPS, 0, 4, env=env)[0]
        self.assertEqual([m.type for m in worker.messages], [d.MISSED, d.BYE])
        self.assertIn(OPERATORS, r.Recorder(worker).absent())

    def test_the_disk_is_full(self) -> None:
        self.window_now(source=d.SOURCE_TORCH)
        with self.small_disk() as path:
            env = {**self.daemon.environment(), "PERFTRACKER_DIR": path}
            worker = self.assert_same("plain.py", 2 * STEPS, 0, 4, env=env)[0]
            self.assertEqual([m.type for m in worker.messages], [d.BEGUN, d.MISSED, d.BYE])
            self.assertEqual(os.listdir(path), [])

    @contextlib.contextmanager
    def small_disk(self) -> Iterator[str]:
        path = os.path.join(self.folder, "small")
        os.mkdir(path)
        mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", path]
        if os.getuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
            self.skipTest("no file system can be mounted")
        try:
            yield path
        finally:
            subprocess.run(["umount", "-l", path], check=True)


@unittest.skipUnless(TORCH, "no torch in %s: set PERFTRACKER_PYTHON" % PYTHON)
class Moments(FailOpenTest):
    def test_the_daemon_dies_between_two_windows(self) -> None:
        self.window_now()

        def done(worker: d.Worker) -> bool:
            if worker.step() > 5 and worker.head()[7] == 0 and not worker.got(d.BEGUN):
                worker.order(1, 0, 10**7)
            return bool(worker.got(d.DONE))

        self.run_killing_when(done, 2 * STEPS)

    def test_the_worker_hangs_in_its_window(self) -> None:
        stopped: List[int] = []

        def poll(worker: d.Worker) -> None:
            if worker.step() > 5 and not stopped:
                stopped.append(worker.hello.pid)
                worker.order(1, 0, 10**12, source=d.SOURCE_AGENT)
            elif worker.got(d.BEGUN) and len(stopped) == 1:
                stopped.append(worker.hello.pid)
                os.kill(worker.hello.pid, signal.SIGSTOP)
                threading.Timer(0.3, os.kill, (worker.hello.pid, signal.SIGCONT)).start()

        self.daemon.on_poll = poll
        self.assert_recorded(self.assert_same("plain.py", STEPS, 0, 4))
        self.assertEqual(len(stopped), 2)

    def test_the_daemon_hangs_in_a_window(self) -> None:
        for source in SOURCES:
            with self.subTest(source):
                self.daemon.workers.clear()
                self.window_now(source=SOURCES[source])
                ordered = self.daemon.on_poll

                def poll(worker: d.Worker, ordered: Any = ordered) -> None:
                    ordered(worker)
                    self.daemon.deaf = worker.step() > 5

                self.daemon.on_poll = poll
                bare = self.run_bare("plain.py", 2 * STEPS, 0, 4)
                run = self.run_job("plain.py", 2 * STEPS, 0, 4)
                self.daemon.on_poll = None
                self.daemon.deaf = False
                self.assertEqual(
                    (run.stdout, run.stderr, run.returncode), (bare.stdout, bare.stderr, 4)
                )
                self.assertEqual(
                    [m.type for m in self.only_worker().messages], [d.BEGUN, d.DONE, d.BYE]
                )

    def scene(self, name: str, **order: Any) -> Any:
        self.daemon.workers.clear()
        self.order_when(1, 0, window_ns=10**12, source=d.SOURCE_AGENT, **order)
        return self.run_job("scenes.py", name), self.only_worker()

    def test_sigterm_in_a_window(self) -> None:
        for name, status, types in (
            ("terminate", -signal.SIGTERM, [d.BEGUN]),
            ("terminate_with_handler", 5, [d.BEGUN, d.DONE, d.BYE]),
        ):
            with self.subTest(name):
                run, worker = self.scene(name)
                self.assertEqual((run.returncode, run.stderr), (status, ""))
                self.assertEqual([m.type for m in worker.messages], types)

    def test_the_interpreter_ends_while_its_threads_are_sampled(self) -> None:
        for attempt in range(2):
            with self.subTest(attempt):
                run, worker = self.scene("end_while_sampled", hz=5000)
                self.assertEqual((run.returncode, run.stderr), (6, ""))
                tids = collections.Counter(s.tid for s in r.Recorder(worker).samples())
                self.assertGreater(len(tids), 2)

    def test_a_signals_exception_reaches_the_job_from_any_line(self) -> None:
        run = self.run_job("alarms.py", self.folder)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout, r"\Alines [1-9][0-9][0-9]\n\Z")

    def test_cupti_stays_where_torch_would_keep_it_for_cuda_graphs(self) -> None:
        """The variables that torch of that version sets, and the job's own where it sets none."""
        run = self.run_job("graphs.py")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(run.stdout.splitlines(), KEPT)


class Contrary:
    """As a handler that answers no question about itself."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __call__(self, number: int, frame: Any) -> None:
        raise TimeoutError


class Handlers(unittest.TestCase):
    """Which of the errors that the hook catches are the job's."""

    def caught(self, action: Any) -> bool:
        try:
            action()
        except BaseException as error:
            return _signals.is_the_jobs(error)
        raise AssertionError("nothing was raised")

    def test_what_a_handler_raises_in_any_of_its_forms(self) -> None:
        def plain(number: int, frame: Any) -> None:
            raise TimeoutError

        def forgetful(number: int, frame: Any) -> None:
            del frame
            raise TimeoutError

        def replaced(number: int, frame: Any) -> None:
            signal.signal(number, signal.SIG_DFL)
            raise TimeoutError

        def gathers(*args: Any) -> None:
            signal.signal(args[0], signal.SIG_DFL)
            plain(0, None)

        def calls(number: int, frame: Any) -> None:
            plain(0, None)

        old = signal.getsignal(signal.SIGUSR1)
        self.addCleanup(signal.signal, signal.SIGUSR1, old)
        partial = functools.partial(lambda more, number, frame: plain(number, None), 1)
        for handler in (plain, forgetful, replaced, gathers, calls, partial, Contrary()):
            signal.signal(signal.SIGUSR1, handler)
            self.assertTrue(self.caught(lambda: signal.raise_signal(signal.SIGUSR1)), handler)

    def test_errors_not_raised_for_the_job(self) -> None:
        signal.signal(signal.SIGUSR1, Contrary())
        self.addCleanup(signal.signal, signal.SIGUSR1, signal.SIG_DFL)
        for action in (lambda: 1 / 0, lambda: open("/nowhere"), lambda: __import__("nowhere")):
            self.assertFalse(self.caught(action))
        self.assertTrue(self.caught(lambda: sys.exit(1)))


if __name__ == "__main__":
    unittest.main()
