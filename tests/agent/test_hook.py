# SPDX-License-Identifier: Apache-2.0
"""The hook in real training processes, against a fake daemon (daemon.py).

PERFTRACKER_PYTHON names the interpreter with torch (.venv/bin/python), and
PERFTRACKER_AGENT the built library.
"""

import collections
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from typing import Any, Dict, List, Optional

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

import daemon as d  # noqa: E402
import recorder as r  # noqa: E402
import warm  # noqa: E402

PYTHON = os.environ.get("PERFTRACKER_PYTHON", os.path.join(ROOT, ".venv", "bin", "python"))


def torch_version() -> str:
    try:
        run = subprocess.run(
            [PYTHON, "-c", "import importlib.metadata as m; print(m.version('torch'))"],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return run.stdout.strip()


TORCH = torch_version()
# Jobs that are about how a process starts, or what it imports: in a new one.
NEW = {
    "compiled.py",
    "fork_ranks.py",
    "imports_only.py",
    "injected.py",
    "jaxlike.py",
    "own_marks.py",
}
BARE_RUNS: Dict[Any, Any] = {}
SOURCES = {"agent": d.SOURCE_AGENT, "torch": d.SOURCE_TORCH}


class HookTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.daemon = d.Daemon(self.folder)
        self.addCleanup(self.daemon.kill)

    def run_job(
        self,
        name: str,
        *args: Any,
        env: Optional[Dict[str, str]] = None,
        launcher: Any = (),
        new: bool = False,
    ) -> "subprocess.CompletedProcess[str]":
        """In a new process where it is asked for or matters, else in a fork: see warm.py."""
        command = [os.path.join(HERE, "jobs", name), *map(str, args)]
        env = {**(self.daemon.environment() if env is None else env), "PYTHONWARNINGS": "ignore"}
        if TORCH and not (new or launcher or "LD_PRELOAD" in env or name in NEW):
            return warm.run(PYTHON, command, env, 240)
        return subprocess.run(
            [PYTHON, *launcher, *command], env=env, capture_output=True, text=True, timeout=240
        )

    def run_bare(self, name: str, *args: Any) -> "subprocess.CompletedProcess[str]":
        key = (name, args)  # the same for each test
        if key not in BARE_RUNS:
            BARE_RUNS[key] = self.run_job(name, *args, env=dict(os.environ))
        return BARE_RUNS[key]

    def only_worker(self) -> d.Worker:
        self.assertEqual(len(self.daemon.workers), 1)
        worker = self.daemon.workers[0]
        self.assertTrue(d.wait_for(lambda: worker.closed, 10))
        return worker

    def counts(self, worker: d.Worker) -> Dict[int, int]:
        return collections.Counter(mark.mark for mark in worker.marks())

    def run_until(
        self, condition: Any, *words: Any, launcher: Any = (), job: str = "until.py"
    ) -> d.Worker:
        """A job that trains until condition(its worker) is true; `printed` is its output."""
        stop = os.path.join(self.folder, "stop")
        held: List[bool] = []
        ordered = self.daemon.on_poll

        def poll(worker: d.Worker) -> None:
            if ordered is not None:
                ordered(worker)
            if not held and condition(worker):
                held.append(True)
                open(stop, "w").close()

        self.daemon.on_poll = poll
        run = self.run_job(job, stop, *words, launcher=launcher)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        worker = self.only_worker()
        self.printed = [int(word) for word in run.stdout.split()]
        self.assertEqual(self.printed[0], worker.step())
        return worker

    def order_when(self, step: int, start: int, **order: Any) -> None:
        """Orders a window at `start` from each worker that reached `step`."""
        ordered: List[int] = []

        def poll(worker: d.Worker) -> None:
            if worker.step() >= step and id(worker) not in ordered:
                ordered.append(id(worker))
                worker.order(1, start, **order)

        self.daemon.on_poll = poll

    def assert_unharmed(self, env: Dict[str, str], count: int = 300) -> None:
        bare = self.run_bare("plain.py", count, 0, 4)
        run = self.run_job("plain.py", count, 0, 4, env=env)
        self.assertEqual(
            (run.stdout, run.stderr, run.returncode), (bare.stdout, bare.stderr, bare.returncode)
        )

    def run_killing_when(self, condition: Any, count: int) -> None:
        """The daemon dies when condition(worker) is true; the job must not notice."""
        killed: List[int] = []

        def poll(worker: d.Worker) -> None:
            if not killed and condition(worker):
                killed.append(worker.step())
                self.daemon._stop = True  # no more answers; kill() closes all

        self.daemon.on_poll = poll
        bare = self.run_bare("plain.py", count, 0, 4)
        command = [os.path.join(HERE, "jobs", "plain.py"), str(count), "0", "4"]
        job = warm.start(PYTHON, command, self.daemon.environment())
        d.wait_for(lambda: bool(killed))
        self.daemon.kill()
        out, err = job.communicate(timeout=240)
        self.assertTrue(killed)
        self.assertEqual((out, err, job.returncode), (bare.stdout, bare.stderr, 4))


@unittest.skipUnless(TORCH, "no torch in %s: set PERFTRACKER_PYTHON" % PYTHON)
class Marks(HookTest):
    def test_a_plain_loop_is_marked_without_a_change_to_its_code(self) -> None:
        run = self.run_job("plain.py", 30, 0, 5, new=True)
        self.assertEqual(run.returncode, 5, run.stderr)
        worker = self.only_worker()
        counts = self.counts(worker)
        self.assertEqual(counts[d.DATALOADER], 31)  # the last call ends the loop
        self.assertEqual(counts[d.DATALOADER_END], 31)
        self.assertEqual(counts[d.OPTIMIZER_BEGIN], 30)
        self.assertEqual(counts[d.OPTIMIZER], 30)
        self.assertEqual(worker.step(), 30)
        self.assertEqual([m.type for m in worker.messages], [d.BYE])
        times = [mark.time_ns for mark in worker.marks()]
        self.assertEqual(times, sorted(times))
        ends = [mark for mark in worker.marks() if mark.mark == d.DATALOADER_END]
        self.assertTrue(all(0 < mark.value < 10**9 for mark in ends))

    def test_output_and_status_are_the_same_with_and_without(self) -> None:
        bare = self.run_bare("plain.py", 300, 0, 4)
        run = self.run_job("plain.py", 300, 0, 4)
        self.assertEqual(
            (run.stdout, run.stderr, run.returncode), (bare.stdout, bare.stderr, bare.returncode)
        )

    def test_data_loading_processes_are_no_workers(self) -> None:
        self.run_job("plain.py", 30, 2, 0)
        counts = self.counts(self.only_worker())
        self.assertEqual((counts[d.DATALOADER], counts[d.OPTIMIZER]), (31, 30))

    def test_both_ranks_under_torchrun_and_not_the_launcher(self) -> None:
        run = self.run_job(
            "ddp.py", 20, launcher=("-m", "torch.distributed.run", "--nproc-per-node=2")
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        hellos = sorted(
            (w.hello.rank, w.hello.local_rank, w.hello.world_size) for w in self.daemon.workers
        )
        self.assertEqual(hellos, [(0, 0, 2), (1, 1, 2)])
        self.assertEqual([w.step() for w in self.daemon.workers], [20, 20])

    def test_without_an_optimizer_the_outermost_backward_passes_count(self) -> None:
        run = self.run_job("by_hand.py")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        worker = self.only_worker()
        self.assertEqual(self.counts(worker)[d.BACKWARD], 30)
        self.assertEqual(worker.step(), 30)

    def test_replays_of_cuda_graphs_count_like_backward_passes(self) -> None:
        """Of torch's own class, on a double of what it calls: a real replay needs a GPU."""
        run = self.run_job("replayed.py")
        self.assertEqual((run.returncode, run.stdout), (0, "30 replays\n"), run.stderr)
        worker = self.only_worker()
        self.assertEqual(self.counts(worker)[d.BACKWARD], 30)
        self.assertEqual(worker.step(), 30)

    def test_closures_and_scalers_step_once_an_iteration(self) -> None:
        for form in ("lbfgs", "scaler", "own"):
            with self.subTest(form):
                self.daemon.workers.clear()
                run = self.run_job("lightning.py", form)
                self.assertEqual(run.returncode, 0, run.stderr)
                counts = self.counts(self.only_worker())
                self.assertEqual((counts[d.OPTIMIZER_BEGIN], counts[d.OPTIMIZER]), (20, 20))
        self.assertEqual(run.stdout, "stepped\n", "the last form skips some steps, not all")

    def test_before_torch_2_3_both_functions_that_run_the_engine_are_wrapped(self) -> None:
        """Of an autograd without the function that torch 2.3 has."""
        script = (
            "import types; from perftracker import _torch\n"
            "autograd = types.SimpleNamespace(backward=lambda x: x + 1, grad=lambda x: 1 / x)\n"
            "seen = []\n"
            "hooks = _torch.Hooks(*[lambda what, at=at: seen.append(at) for at in range(9)])\n"
            "_torch._wrap_backward(autograd, hooks)\n"
            "print(autograd.backward(1), autograd.grad(1), seen)\n"
        )
        env = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "python")}
        run = subprocess.run([PYTHON, "-c", script], env=env, capture_output=True, text=True)
        self.assertEqual(run.stdout, "2 1.0 [6, 7, 6, 7]\n", run.stderr)

    def test_scripts_still_call_what_is_wrapped(self) -> None:
        """TorchScript knows functions of torch by identity; else it compiles their source."""
        run = self.run_job("scripted.py", new=True)
        self.assertEqual((run.returncode, run.stdout), (0, "[2.0, 2.0, 2.0]\n"), run.stderr)

    def test_collectives_are_watched_in_a_group_of_several_ranks_only(self) -> None:
        """Else every node of a backward pass would pay for torch's hook."""
        run = self.run_job("groups.py", new=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        names = r.Recorder(self.only_worker()).collectives()
        self.assertEqual(names, ["gloo:grouped"])

    def test_collectives_of_gloo_have_the_group_whose_threads_end_them(self) -> None:
        run = self.run_job(
            "gloo_groups.py", launcher=("-m", "torch.distributed.run", "--nproc-per-node=4")
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        by_rank = {w.hello.rank: r.Recorder(w).groups() for w in self.daemon.workers}
        self.assertEqual(sorted(by_rank), [0, 1, 2, 3])
        for rank, groups in by_rank.items():
            shapes = {group[1:]: group.name for group in groups}
            self.assertEqual(len(shapes), 4 if rank != 2 else 3, shapes)
            self.assertIn((4, 0, 1), shapes)
            self.assertIn((2, rank // 2 * 2, 1), shapes)
            self.assertIn((2, rank % 2, 2), shapes)
            self.assertEqual((3, 0, 0) in shapes, rank != 2)
        for shape in (4, 0, 1), (2, 0, 1), (2, 1, 2), (3, 0, 0):
            members = [g.name for groups in by_rank.values() for g in groups if g[1:] == shape]
            self.assertEqual(len(members), shape[0])
            self.assertEqual(len(set(members)), 1, "a group has one name on all its ranks")

    def test_a_group_is_unknown_where_torchs_function_has_other_arguments(self) -> None:
        script = (
            "from perftracker._torch import group_of\n"
            "def old(group_size, group_rank, global_ranks_in_group, store, group_name=None): ...\n"
            "def older(world_size, rank, group_ranks, backend): ...\n"
            "print(group_of(old, (2, 0, [0, 2], None), {}, {7}))\n"
            "print(group_of(older, (2, 0, [0, 2], 'gloo'), {}, {7}))\n"
            "print(group_of(old, (2, 0, [0, 2], None), {'group_name': '3'}, set()))\n"
            "print(*group_of(old, (2, 0, [1, 3], None, '3'), {}, {7})[:4])\n"
        )
        env = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "python")}
        run = subprocess.run([PYTHON, "-c", script], env=env, capture_output=True, text=True)
        self.assertEqual(run.stdout, "None\nNone\nNone\n3 2 1 2\n", run.stderr)

    def test_optimizers_that_alternate_have_names_of_their_own(self) -> None:
        self.run_job("lightning.py", "alternating")
        steps = [m.detail for m in self.only_worker().marks() if m.mark == d.OPTIMIZER]
        self.assertEqual(len(set(steps)), 2)
        self.assertEqual(steps, steps[:2] * 10)

    def test_a_step_that_raises_is_no_step(self) -> None:
        run = self.run_job("lightning.py", "raising")
        self.assertEqual(run.returncode, 0, run.stderr)
        counts = self.counts(self.only_worker())
        self.assertEqual((counts[d.DATALOADER], counts[d.OPTIMIZER]), (21, 10))

    def test_loaders_inside_loaders_and_in_other_threads_do_not_count(self) -> None:
        run = self.run_job("nested.py")
        self.assertEqual(run.returncode, 0, run.stderr)
        counts = self.counts(self.only_worker())
        self.assertEqual((counts[d.DATALOADER], counts[d.OPTIMIZER]), (21, 20))

    def test_the_hook_breaks_no_graph_of_compiled_code(self) -> None:
        bare = self.run_bare("compiled.py")
        run = self.run_job("compiled.py")
        self.assertEqual((run.stdout, run.returncode), (bare.stdout, 0), run.stderr)
        self.assertEqual(run.stdout.count("breaks"), 3)
        marks = [mark.mark for mark in self.only_worker().marks()]
        ends = [at for at, mark in enumerate(marks) if mark == d.DATALOADER]
        self.assertEqual(len(ends), 3 * 21)
        self.assertEqual(marks[: ends[21]].count(d.OPTIMIZER), 20, "of the uncompiled step")

    def test_a_forked_child_is_silent(self) -> None:
        run = self.run_job("forking.py")
        self.assertEqual(run.returncode, 0, run.stderr)
        worker = self.only_worker()
        self.assertEqual(worker.step(), 40)
        self.assertEqual([m.type for m in worker.messages], [d.BYE])

    def test_ranks_forked_before_the_first_mark_are_workers(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        run = self.run_job("fork_ranks.py", port)
        self.assertEqual((run.stdout, run.returncode), ("done\n", 0), run.stderr)
        workers = sorted(self.daemon.workers, key=lambda w: w.hello.rank)
        hellos = [(w.hello.rank, w.hello.local_rank, w.hello.world_size) for w in workers]
        self.assertEqual(hellos, [(0, 0, 2), (1, 1, 2)])
        for worker in workers:
            self.assertTrue(d.wait_for(lambda at=worker: at.closed, 10))
            counts = self.counts(worker)
            # The first batch came before the first step, which marks the training thread.
            self.assertEqual((counts[d.DATALOADER], counts[d.OPTIMIZER]), (20, 20))
            self.assertEqual([m.type for m in worker.messages], [d.BYE])

    def test_a_process_that_only_imports_torch_never_shows(self) -> None:
        run = self.run_job("imports_only.py")
        self.assertEqual(run.stdout, "3.0\n", run.stderr)
        self.assertEqual(self.daemon.workers, [])

    def test_a_package_of_the_users_with_our_name_is_left_alone(self) -> None:
        os.mkdir(os.path.join(self.folder, "perftracker"))
        with open(os.path.join(self.folder, "perftracker", "__init__.py"), "w") as file:
            file.write("mine = 1\n")
        with open(os.path.join(self.folder, "job.py"), "w") as file:
            file.write("import perftracker\nimport torch\nassert perftracker.mine\n")
        run = self.run_job(os.path.join(self.folder, "job.py"), new=True)
        self.assertEqual(run.returncode, 0, run.stderr)


class WithoutTorch(HookTest):
    """In any Python that PERFTRACKER_PYTHON names."""

    def test_iterations_are_marked_by_hand_without_torch(self) -> None:
        run = self.run_job("own_marks.py")
        self.assertEqual(run.stdout.split(), ["fresh", "active", "20"], run.stderr)
        self.assertEqual(self.counts(self.only_worker())[d.ITERATION], 20)

    def test_calls_of_compiled_functions_of_jax_are_steps(self) -> None:
        run = self.run_job("jaxlike.py", 50)
        self.assertEqual(
            run.stdout.splitlines(),
            [
                "ValueError 7",
                "TypeError update() got an unexpected keyword argument 'wrong'",
                "150 True active",
            ],
            run.stderr,
        )
        marks = self.counts(self.only_worker())
        # The first calls are not counted: a script that trains nothing has few.
        self.assertEqual(marks[d.OPTIMIZER], 100 - 4)
        self.assertEqual(marks[d.OPTIMIZER_BEGIN], 100 - 4 + 2)

    def test_without_a_daemon_compiled_functions_are_left_alone(self) -> None:
        env = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "python"), "PERFTRACKER_SOCKET": ""}
        run = self.run_job("jaxlike.py", 50, env=env)
        self.assertEqual(run.stdout.splitlines()[-1], "150 True inert", run.stderr)

    def run_marked_by_hand(self, before: str = "") -> d.Worker:
        """A window is ordered at once; its iterations have a region."""
        self.daemon.on_poll = lambda worker: worker.order(1, 0, 10**8)
        with open(os.path.join(self.folder, "job.py"), "w") as file:
            file.write(
                before + "import perftracker, time\n"
                "for _ in range(200):\n"
                "    with perftracker.region('work'): time.sleep(0.002)\n"
                "    perftracker.step()\n"
                "print(perftracker.status()['state'])\n"
            )
        run = self.run_job(os.path.join(self.folder, "job.py"), new=True)
        self.assertEqual((run.stdout, run.stderr), ("active\n", ""))
        return self.only_worker()

    def test_marks_by_hand_have_windows_of_python_stacks(self) -> None:
        worker = self.run_marked_by_hand()
        self.assertEqual([m.text for m in worker.got(d.BEGUN)], ["agent"])
        self.assertEqual(len(worker.got(d.DONE)), 1)

    def test_a_device_that_torch_does_not_use_is_not_recorded(self) -> None:
        driver = os.path.join(self.folder, "libcuda.so.1")
        with open(driver, "w") as file:
            file.write("a driver")
        worker = self.run_marked_by_hand(
            "import mmap; f = open(%r, 'rb'); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)\n"
            % driver
        )
        self.assertIn("torch is not loaded", worker.got(d.MISSED)[0].text)


@unittest.skipUnless(TORCH, "no torch in %s: set PERFTRACKER_PYTHON" % PYTHON)
class Windows(HookTest):
    def trace(self, message: d.Message) -> Any:
        with open(message.text) as file:
            return json.load(file)

    def order_twice(self) -> None:
        orders = iter([(1, 100), (2, 500)])
        waiting = [next(orders)]

        def poll(worker: d.Worker) -> None:
            answered = len(worker.got(d.DONE))
            if waiting and worker.step() > 20 and answered == waiting[0][0] - 1:
                number, start = waiting.pop()
                start = max(start, worker.step() + 50)
                worker.order(number, start, 10**7, 8, 20, source=d.SOURCE_TORCH)
                waiting.extend(order for order in [next(orders, None)] if order)

        self.daemon.on_poll = poll

    def test_a_window_begins_and_ends_at_the_ordered_steps(self) -> None:
        self.order_when(50, 200, window_ns=0, least=10, source=d.SOURCE_TORCH)
        run = self.run_job("plain.py", 1000, 0, 0)
        worker = self.only_worker()
        self.assertEqual([m.type for m in worker.messages], [d.BEGUN, d.DONE, d.BYE], run.stderr)
        begun, done, _ = worker.messages
        self.assertEqual((begun.order_id, begun.step), (1, 200))
        trace = self.trace(done)
        steps = [e for e in trace["traceEvents"] if e["name"].startswith("ProfilerStep#")]
        self.assertEqual(
            sorted(e["name"] for e in steps), ["ProfilerStep#%d" % n for n in range(201, 210)]
        )  # the first is a trial
        categories = collections.Counter(e.get("cat") for e in trace["traceEvents"])
        self.assertGreater(categories["python_function"], 100)
        self.assertGreater(categories["cpu_op"], 100)
        # The trace's clock, mapped by the message's pair of times, holds the window.
        first = min(float(e["ts"]) for e in steps) * 1e3 + trace["baseTimeNanoseconds"]
        begun_wall = begun.wall_ns
        self.assertLess(abs(first - begun_wall), 1e9)
        self.assertGreater(done.stall_ns, 0)
        self.assertEqual(os.path.basename(done.text), "p%d-1.json" % worker.hello.pid)

    def test_calls_of_python_that_would_hold_the_job_up_are_left_out(self) -> None:
        self.order_when(50, 200, window_ns=0, least=10, source=d.SOURCE_TORCH)
        run = self.run_job("costly.py")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        trace = self.trace(self.only_worker().got(d.DONE)[0])
        categories = collections.Counter(e.get("cat") for e in trace["traceEvents"])
        self.assertEqual(categories["python_function"], 0)
        self.assertGreater(categories["cpu_op"], 100)

    def test_the_result_of_training_is_the_same_when_profiled(self) -> None:
        bare = self.run_bare("plain.py", 300, 0, 4)
        for source in SOURCES:
            with self.subTest(source):
                self.daemon.workers.clear()
                self.order_when(50, 150, window_ns=10**8, source=SOURCES[source])
                run = self.run_job("plain.py", 300, 0, 4)
                self.assertEqual(
                    (run.stdout, run.stderr, run.returncode), (bare.stdout, bare.stderr, 4)
                )
                self.assertEqual(len(self.only_worker().got(d.DONE)), 1)

    def test_no_range_of_the_job_outlives_the_window(self) -> None:
        """torch notes its end in the profile in which it began, freed by then."""
        self.order_twice()
        run = self.run_job("ranges.py")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout, "as it was True True\nas it was True 1\n")
        done = self.only_worker().got(d.DONE)
        self.assertEqual(len(done), 2)
        events = self.trace(done[0])["traceEvents"]
        self.assertEqual([e["cat"] for e in events if e["name"] == "long"], ["user_annotation"])

    def test_all_ranks_begin_at_the_same_step(self) -> None:
        self.order_when(50, 150, window_ns=5 * 10**7, least=5, source=d.SOURCE_TORCH)
        ranks = os.path.join(ROOT, "tests", "live", "ranks.py")
        run = self.run_job("ddp.py", 300, launcher=(ranks, "2"))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(
            [[m.step for m in w.got(d.BEGUN)] for w in self.daemon.workers], [[150], [150]]
        )
        names = sorted(os.path.basename(w.got(d.DONE)[0].text) for w in self.daemon.workers)
        self.assertEqual(names, ["0-1.json", "1-1.json"])
        for worker in self.daemon.workers:
            trace = self.trace(worker.got(d.DONE)[0])
            self.assertEqual(trace["distributedInfo"]["rank"], worker.hello.rank)

    def test_an_order_for_a_step_that_is_past_is_missed(self) -> None:
        self.order_when(100, 50, window_ns=10**8)
        self.run_job("plain.py", 300, 0, 0)
        worker = self.only_worker()
        self.assertEqual([m.type for m in worker.messages], [d.MISSED, d.BYE])
        self.assertIn("past", worker.messages[0].text)

    def test_a_canceled_order_is_forgotten(self) -> None:
        def poll(worker: d.Worker) -> None:
            if worker.step() < 50 and worker.head()[4] >= 10:
                worker.order(1, 200, 10**8)
                worker.cancel()

        self.daemon.on_poll = poll
        self.run_job("plain.py", 300, 0, 0)
        self.assertEqual([m.type for m in self.only_worker().messages], [d.BYE])

    def test_a_program_that_ends_inside_its_window_saves_what_there_is(self) -> None:
        self.order_when(50, 200, window_ns=10**12, source=d.SOURCE_TORCH)
        run = self.run_job("plain.py", 250, 0, 9)
        self.assertEqual(run.returncode, 9, run.stderr)
        worker = self.only_worker()
        self.assertEqual([m.type for m in worker.messages], [d.BEGUN, d.DONE, d.BYE])
        self.assertGreater(len(self.trace(worker.messages[1])["traceEvents"]), 100)
        self.assertGreater(worker.messages[1].window_ns, 0)

    def test_a_second_order_makes_a_second_trace(self) -> None:
        self.order_twice()
        self.run_job("plain.py", 6000, 0, 0)
        worker = self.only_worker()
        self.assertEqual(
            [m.type for m in worker.messages], [d.BEGUN, d.DONE, d.BEGUN, d.DONE, d.BYE]
        )
        self.assertEqual([m.order_id for m in worker.got(d.DONE)], [1, 2])

    def test_the_users_own_profiler_goes_first(self) -> None:
        for form, steps, types in (
            ("early", 1000, [d.MISSED, d.BYE]),
            ("late", 1000, [d.BEGUN, d.MISSED, d.BYE]),
            ("warming", 1000, [d.MISSED, d.BYE]),
            ("warming", 10, [d.MISSED, d.BYE]),
        ):
            with self.subTest(form, steps=steps):
                self.daemon.workers.clear()
                self.order_when(10, 50, window_ns=0, least=steps, source=d.SOURCE_TORCH)
                run = self.run_job("user_profiler.py", form)
                self.assertEqual((run.returncode, run.stdout), (0, "events True\n"), run.stderr)
                worker = self.only_worker()
                self.assertEqual([m.type for m in worker.messages], types)
                self.assertIn("profiler", worker.got(d.MISSED)[0].text)


@unittest.skipUnless(TORCH, "no torch in %s: set PERFTRACKER_PYTHON" % PYTHON)
class OwnWindows(HookTest):
    """Windows that the agent's own collectors record."""

    def types(self, worker: d.Worker) -> List[int]:
        return [message.type for message in worker.messages]

    def look_when_done(self, look: Any, launcher: Any = ()) -> Any:
        """The result of look(worker), taken as soon as the worker says that it is done."""
        looks: List[Any] = []

        def condition(worker: d.Worker) -> bool:
            if not looks and worker.got(d.DONE):
                looks.append(look(worker))
            return bool(looks)

        return self.run_until(condition, launcher=launcher), looks[0]

    def test_the_recorder_holds_operators_samples_and_marks(self) -> None:
        # At most so many steps that their operators fit the ring: no daemon reads it here.
        self.order_when(50, 200, window_ns=10**8, least=20, most=300, source=d.SOURCE_AGENT)
        worker, (operators, samples, marks) = self.look_when_done(
            lambda w: (r.Recorder(w).operators(), r.Recorder(w).samples(), w.marks())
        )
        self.assertEqual(self.types(worker), [d.BEGUN, d.DONE, d.BYE])
        begun, done = worker.messages[:2]
        self.assertEqual((begun.text, begun.step, done.text), ("agent", 200, ""))
        self.assertEqual(begun.order_id, done.order_id)
        steps = done.step - begun.step
        self.assertGreaterEqual(steps, 20)
        for name in ("aten::linear", "AddmmBackward0"):
            self.assertLessEqual(abs(operators[name] - steps), 1, operators)
        inside = [m for m in marks if begun.mono_ns <= m.time_ns <= done.mono_ns]
        stepped = sum(m.mark == d.OPTIMIZER for m in inside)
        self.assertLessEqual(abs(stepped - steps), 1)
        recorder = r.Recorder(worker)
        taken = [s for s in samples if s.detail & r.SAMPLE_WINDOW]
        self.assertEqual({s.tid for s in taken} & {recorder.raw.training_tid}, {worker.hello.pid})
        self.assertGreater(len(taken), 10)
        self.assertTrue(any("train_one" in recorder.stack(s.extra) for s in taken))

    def test_automatic_is_the_agent_where_there_is_no_device(self) -> None:
        self.order_when(10, 0, window_ns=0, least=5)
        worker = self.run_until(lambda w: w.got(d.DONE) or w.got(d.MISSED))
        self.assertEqual([m.text for m in worker.messages[:2]], ["agent", ""])

    def test_threads_that_have_left_lose_no_samples(self) -> None:
        """Their states are freed until the list of threads is read again."""
        self.order_when(5, 10, window_ns=10**9, least=20, source=d.SOURCE_AGENT)
        worker = self.run_until(lambda w: w.got(d.DONE) or w.got(d.MISSED), job="visitors.py")
        self.assertEqual([m.text for m in worker.messages[:2]], ["agent", ""])
        recorder = r.Recorder(worker)
        others = {s.tid for s in recorder.samples()} - {recorder.raw.training_tid}
        self.assertGreater(len(others), 3, "threads that came were sampled")
        self.assertLess(recorder.raw.drops[r.DROPS_UNREADABLE], 10)

    def test_exact_tracing_records_each_call(self) -> None:
        self.order_when(50, 100, window_ns=0, least=30, most=30, source=d.SOURCE_AGENT, exact=1)

        def calls(worker: d.Worker) -> int:
            recorder = r.Recorder(worker)
            frames = [f.extra for f in recorder.window() if f.kind == r.PYTHON]
            names = [recorder.string(recorder.raw.frames[frame][1]) for frame in frames]
            return names.count("train_one")

        worker, count = self.look_when_done(calls)
        self.assertEqual(self.types(worker), [d.BEGUN, d.DONE, d.BYE])
        self.assertLessEqual(abs(count - 30), 1)

    def test_exact_tracing_beside_a_profiler_is_left_out_and_says_why(self) -> None:
        self.order_when(50, 100, window_ns=0, least=30, most=30, source=d.SOURCE_AGENT, exact=1)
        profiler = ("-m", "cProfile", "-o", os.devnull)
        worker, (why, samples) = self.look_when_done(
            lambda w: (r.Recorder(w).absent().get(r.SOURCE_EXACT), r.Recorder(w).samples()),
            profiler,
        )
        self.assertEqual(self.types(worker), [d.BEGUN, d.DONE, d.BYE])
        self.assertIn("another tool traces calls", why)
        self.assertTrue(any(s.detail & r.SAMPLE_WINDOW for s in samples))

    def test_after_a_window_its_pages_are_gone_and_nothing_is_recorded(self) -> None:
        self.order_when(50, 100, window_ns=2 * 10**8, least=20, source=d.SOURCE_AGENT)
        sizes: List[int] = []
        heads: List[Any] = []

        def condition(worker: d.Worker) -> bool:
            if not worker.got(d.DONE):
                return False
            if not sizes:
                sizes.append(r.memory_bytes(worker))
                heads.extend([worker.step(), r.Recorder(worker).window_heads()])
                worker.taken(1)
            smaller = r.memory_bytes(worker) <= sizes[0] - 64 * 1024
            return smaller and worker.step() > heads[0] + 200

        worker = self.run_until(condition)
        recorder = r.Recorder(worker)
        self.assertEqual(recorder.window_heads(), heads[1])
        self.assertLess(r.memory_bytes(worker), r.WINDOW_AT)
        done_ns = worker.got(d.DONE)[0].mono_ns
        late = [s for s in recorder.samples() if s.time_ns > done_ns]
        ticks = {s.time_ns for s in late if s.detail & r.SAMPLE_WINDOW}
        self.assertLessEqual(len(ticks), 1)  # the one that was under way

    def test_a_job_that_hangs_in_a_pause_of_an_overhead_check_is_profiled(self) -> None:
        stop = os.path.join(self.folder, "stop")
        begin_s = time.monotonic()
        seen: List[bool] = []

        def poll(worker: d.Worker) -> None:
            if worker.step() > 0 and not seen:
                seen.append(False)
                worker.measure_overhead(1, worker.step() + 20, 10**9, 2)  # off, without an end
            if worker.step() < 300 or seen[-1]:
                return
            recorder = r.Recorder(worker)
            stacks = (recorder.stack(s.extra) for s in recorder.samples())
            seen.append(any("stands_here" in stack for stack in stacks))
            if seen[-1] or time.monotonic() - begin_s > 60:
                open(stop, "w").close()

        self.daemon.on_poll = poll
        run = self.run_job("standing.py", 300, stop)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertTrue(seen[-1])
        worker = self.only_worker()
        first_ns, last_ns = (worker.marks()[at].time_ns for at in (200, -1))
        paused = [s for s in r.Recorder(worker).samples() if first_ns < s.time_ns < last_ns]
        self.assertEqual(paused, [])

    def test_a_program_that_ends_inside_its_window(self) -> None:
        self.order_when(50, 200, window_ns=10**12, source=d.SOURCE_AGENT)
        run = self.run_job("plain.py", 250, 0, 9)
        self.assertEqual((run.returncode, run.stderr), (9, ""))
        worker = self.only_worker()
        self.assertEqual(self.types(worker), [d.BEGUN, d.DONE, d.BYE])
        self.assertGreater(worker.messages[1].window_ns, 0)
        self.assertLessEqual(abs(r.Recorder(worker).operators()["aten::addmm"] - 100), 3)

    def test_children_forked_inside_a_window_are_silent(self) -> None:
        self.order_when(1, 0, window_ns=10**12, source=d.SOURCE_AGENT)
        run = self.run_job("epochs.py")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        worker = self.only_worker()
        self.assertEqual(self.types(worker), [d.BEGUN, d.DONE, d.BYE])
        self.assertEqual(worker.step(), 200)
        operators = r.Recorder(worker).operators()
        self.assertIn("aten::addmm", operators)
        self.assertNotIn("aten::triu", operators)

    def scene(self, name: str) -> Any:
        """What `name` of jobs/scenes.py does happens inside a window that the job's end ends."""
        self.daemon.workers.clear()
        self.order_when(1, 0, window_ns=10**12, source=d.SOURCE_AGENT)
        return self.run_job("scenes.py", name), self.only_worker()

    def test_a_collection_of_garbage_is_marked(self) -> None:
        run, worker = self.scene("collect")
        self.assertEqual((run.stdout, run.stderr), ("profiling True\n", ""))
        marks = [m for m in worker.marks() if m.mark == d.GC]
        self.assertIn(2, {m.detail for m in marks})
        self.assertTrue(all(m.value >= 100000 for m in marks))

    def test_a_region_is_in_the_window_from_whichever_thread(self) -> None:
        for name in ("region", "thread"):
            with self.subTest(name):
                run, worker = self.scene(name)
                self.assertEqual((run.returncode, run.stderr), (0, ""))
                recorder = r.Recorder(worker)
                found = [a for a in recorder.window() if a.kind == r.ANNOTATION]
                own = [a for a in found if recorder.string(a.extra) == "a region"]
                self.assertEqual(len(own), 1)
                in_main = own[0].tid == recorder.raw.training_tid
                self.assertEqual(in_main, name == "region")

    def test_the_ways_out_of_a_window(self) -> None:
        for name, status, types in (
            ("fail", 1, [d.BEGUN, d.DONE, d.BYE]),
            ("die", -9, [d.BEGUN]),
            ("leave", 3, [d.BEGUN]),
            ("execute", 0, [d.BEGUN]),
            ("fork_and_exit", 0, [d.BEGUN, d.DONE, d.BYE]),
            ("unload", 0, [d.BEGUN, d.DONE, d.BYE]),
        ):
            with self.subTest(name):
                run, worker = self.scene(name)
                self.assertEqual(run.returncode, status, run.stderr)
                self.assertEqual(self.types(worker), types)
                self.assertGreater(r.Recorder(worker).operators()["aten::linear"], 0)

    def test_the_users_own_profiler_and_the_agent_both_record(self) -> None:
        for form in ("early", "late"):
            with self.subTest(form):
                self.daemon.workers.clear()
                self.order_when(10, 50, window_ns=0, least=50, source=d.SOURCE_AGENT)
                run = self.run_job("user_profiler.py", form)
                self.assertEqual(run.stdout, "events True\n", run.stderr)
                worker = self.only_worker()
                self.assertEqual(self.types(worker), [d.BEGUN, d.DONE, d.BYE])
                self.assertGreater(r.Recorder(worker).operators()["aten::linear"], 40)

    def test_a_second_copy_and_a_second_start_change_nothing(self) -> None:
        run = self.run_job("twice.py")
        self.assertEqual(run.stdout.split(), ["-114", "30", "disabled"], run.stderr)
        worker = self.only_worker()
        counts = self.counts(worker)
        self.assertEqual((counts[d.DATALOADER], counts[d.OPTIMIZER]), (33, 30))

    def test_what_a_signal_raises_inside_the_hook_reaches_the_job(self) -> None:
        for form, line in (
            ("interrupt", "KeyboardInterrupt 7 disabled"),
            ("exit", "SystemExit 7 disabled"),
        ):
            with self.subTest(form):
                self.daemon.workers.clear()
                self.order_when(5, 20, window_ns=10**7)
                run = self.run_job("interrupted.py", form)
                self.assertEqual((run.stdout.strip(), run.stderr, run.returncode), (line, "", 0))
                self.assertIn("interrupted", self.only_worker().got(d.MISSED)[0].text)


@unittest.skipUnless(TORCH, "no torch in %s: set PERFTRACKER_PYTHON" % PYTHON)
class Trouble(HookTest):
    def test_no_daemon_behind_the_socket(self) -> None:
        self.assert_unharmed({**self.daemon.environment(), "PERFTRACKER_SOCKET": "/nowhere/x"})

    def test_a_missing_or_invalid_library(self) -> None:
        for path in ("/nowhere/lib.so", os.path.abspath(__file__)):
            self.assert_unharmed({**self.daemon.environment(), "PERFTRACKER_AGENT": path})

    def test_the_daemon_dies_before_its_window(self) -> None:
        def ordered(worker: d.Worker) -> bool:
            if worker.step() <= 50:
                return False
            worker.order(1, worker.step() + 100, 10**7)
            return True

        self.run_killing_when(ordered, 2000)

    def test_the_daemon_dies_inside_a_window(self) -> None:
        for source in SOURCES:
            with self.subTest(source):
                self.daemon.kill()
                self.daemon = d.Daemon(tempfile.mkdtemp(dir=self.folder))

                def begun(worker: d.Worker, source: str = source) -> bool:
                    if worker.step() > 20 and worker.head()[7] == 0:
                        worker.order(1, 0, 2 * 10**8, source=SOURCES[source])
                    return bool(worker.got(d.BEGUN))

                self.run_killing_when(begun, 2000)

    def test_a_socket_that_is_not_read(self) -> None:
        """Each order is past, so that each is answered; later ones find the socket full."""
        numbers: Dict[int, int] = {}
        steps = 6000  # on a busy machine many pass between two polls

        def poll(worker: d.Worker) -> None:
            self.daemon.deaf = True
            if worker.step() > 1 and worker.step() != numbers.get(-1):
                numbers[-1] = worker.step()
                numbers[0] = numbers.get(0, 0) + 1
                if numbers[0] <= 400:
                    worker.order(numbers[0], 1, 10**7)
                else:  # a window that can't be announced
                    worker.order(numbers[0], 0, 10**7, source=d.SOURCE_AGENT)

        self.daemon.on_poll = poll
        self.assert_unharmed(self.daemon.environment(), steps)
        self.daemon.on_poll = None
        self.daemon.deaf = False
        worker = self.only_worker()
        self.assertEqual(worker.step(), steps)
        self.assertGreater(numbers[0], 420)
        self.assertEqual({m.type for m in worker.messages}, {d.MISSED})
        self.assertLess(len(worker.messages), 400)

    def test_a_trace_folder_that_cannot_be_written(self) -> None:
        self.order_when(50, 150, window_ns=10**7, source=d.SOURCE_TORCH)
        run = self.run_job(
            "plain.py", 600, 0, 4, env={**self.daemon.environment(), "PERFTRACKER_DIR": "/nowhere"}
        )
        self.assertEqual(run.returncode, 4, run.stderr)
        self.assertIn("failed", self.only_worker().got(d.MISSED)[0].text)


if __name__ == "__main__":
    unittest.main()
