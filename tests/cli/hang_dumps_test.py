# SPDX-License-Identifier: Apache-2.0
"""`analyze` on dumps of a job that hangs: NCCL's flight recorder, py-spy, gdb, damaged ones."""

from __future__ import annotations

import json
import os
import pathlib
import pickle
import random
import subprocess
import tempfile
import unittest

from program import PROGRAM

TRACES = pathlib.Path(os.environ.get("PERFTRACKER_TRACES", "/nonexistent"))
GROUP = ("0", "default_pg")


def entry(number: int, name: str = "nccl:all_reduce", state: str = "scheduled", size: int = 64):
    return {
        "record_id": number, "pg_id": 0, "process_group": GROUP, "collective_seq_id": number,
        "p2p_seq_id": 0, "op_id": number, "profiling_name": name, "state": state,
        "input_sizes": [[size]], "is_p2p": False, "thread_id": str(2**63 + number),
        "time_created_ns": 1758581237535563290, "retired": False, "timeout_ms": 180000,
        "frames": [
            {"name": name, "filename": "/v/site-packages/torch/distributed/c10d.py", "line": 7},
            {"name": "synchronize", "filename": "/home/me/train.py", "line": 31},
        ],
    }  # fmt: skip


def transfer(number: int, own: int, peer: int, sends: bool, state: str = "scheduled") -> dict:
    word = f"send {own}->{peer}" if sends else f"recv {own}<-{peer}"
    return {**entry(5, f"nccl:{word}", state), "is_p2p": True, "p2p_seq_id": number}


def dump(entries: list, ranks: int = 4) -> dict:
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(ranks)))}}
    return {"version": "2.9", "pg_config": config, "pg_status": {}, "entries": entries}


PYSPY = """Process {pid}: python train.py
Python v3.11.2 (/usr/bin/python3.11)

Thread {pid} (idle): "MainThread"
    {frames}
Thread 99 (idle): "Thread-1"
    wait (threading.py:327)
    run (threading.py:982)
"""
WAITS = "all_reduce (torch/distributed/d.py:2500)\n    main (train.py:31)"
SLEEPS = "read_shard (data.py:12)\n    Arguments:\n        name: 'x'\n    main (train.py:30)"

GDB = """[New LWP 99]
[Thread debugging using libthread_db enabled]

Thread 2 (Thread 0x7f01 (LWP 99) "pt_autograd_0"):
#0  0x00007f in pthread_cond_wait () from /lib/libc.so.6
#1  0x00007f in torch::autograd::ReadyQueue::pop() () from /v/libtorch_cpu.so

Thread 1 (Thread 0x7f00 (LWP {pid}) "python"):
#0  0x00007f in __futex_wait (a=1) at futex.c:12
#1  0x00007f in {function} (this=0x1, t=std::map<int, long> = {{...}}) from /v/libtorch_cpu.so
#2  0x00007f in _PyEval_EvalFrameDefault () from /usr/lib/libpython3.11.so
"""


class Dumps(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="pt-dumps-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_analyze(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PROGRAM, "analyze", *words, str(self.folder)],
            capture_output=True, text=True, timeout=120,
            env={**os.environ, "PERFTRACKER_STORE": "none"},
        )  # fmt: skip

    def finding(self, words: tuple[str, ...] = ()) -> dict:
        done = self.run_analyze("--format", "json", *words)
        report = json.loads(done.stdout)
        self.assertEqual(report["trigger"]["kind"], "blocked")
        self.assertEqual(len(report["findings"]), 1, report)
        return report["findings"][0]

    def write(self, dumps: list[dict], protocol: int = 2) -> None:
        for rank, content in enumerate(dumps):
            (self.folder / f"_dump_{rank}").write_bytes(pickle.dumps(content, protocol))

    def test_the_rank_that_has_nothing_open_has_not_entered(self) -> None:
        for protocol in (2, 3, 4, 5):
            self.write([dump([entry(8)])] * 3 + [dump([])], protocol)
            finding = self.finding()
            self.assertEqual((finding["id"], finding["ranks"]), ("PT-906", "3"))
            self.assertIn("in no collective", finding["evidence"][0])

    def test_json_says_the_same(self) -> None:
        for rank in range(4):
            content = dump([entry(8)] if rank != 1 else [])
            (self.folder / f"rank{rank}.json").write_text(json.dumps(content))
        self.assertEqual(self.finding()["ranks"], "1")

    def test_a_pipeline_waits_for_the_stage_that_sends_nothing(self) -> None:
        for stuck in range(3):
            stages = []
            for rank in range(4):
                done = [transfer(7, rank, rank - 1, False, "completed")] if rank > 0 else []
                if rank > stuck:  # receives from the stage before it
                    done.append(transfer(8 + rank, rank, rank - 1, False))
                if rank < stuck:  # gave the next one all it had, and waits for gradients
                    done.append(transfer(8 + rank, rank, rank + 1, False))
                stages.append(dump(done))
            self.write(stages)
            finding = self.finding()
            self.assertEqual(
                (finding["cause"], finding["ranks"]), ("collective-not-entered", str(stuck))
            )

    def test_stages_that_wait_for_each_other_or_for_a_batch_accuse_none(self) -> None:
        ring = [dump([transfer(8, rank, (rank + 1) % 4, False)]) for rank in range(4)]
        batch = [transfer(8, 1, 0, False), transfer(8, 1, 2, True)]
        for stages in (ring, [dump([])] + [dump(batch)] * 3):
            self.write(stages)
            done = self.run_analyze("--format", "json")
            self.assertEqual(json.loads(done.stdout)["findings"], [])

    def test_a_ring_with_ended_collectives_is_compared_by_numbers(self) -> None:
        ended = [entry(n, state="completed") for n in range(3, 8)]
        self.write([dump([*ended, entry(8)])] * 3 + [dump(ended)])
        finding = self.finding()
        self.assertEqual((finding["id"], finding["ranks"]), ("PT-906", "3"))
        self.assertIn("called by train.py(31): synchronize", finding["evidence"][1])

    def test_a_rank_whose_peers_have_finished_has_a_gpu_that_does_not(self) -> None:
        self.write([dump([entry(8), entry(9)])] * 2 + [dump([entry(7), entry(8), entry(9)])])
        finding = self.finding(("--world-size", "3"))
        self.assertEqual((finding["id"], finding["ranks"]), ("PT-914", "2"))
        self.assertIn("finished number 6, its peers number 7", finding["evidence"][0])

    def test_another_operation_or_size_is_a_mismatch(self) -> None:
        for other in (entry(8, "nccl:broadcast"), entry(8, size=65)):
            self.write([dump([entry(8)])] * 3 + [dump([other])])
            finding = self.finding()
            self.assertEqual((finding["id"], finding["ranks"]), ("PT-915", "3"))

    def test_all_alike_names_the_lowest_collective_and_no_rank(self) -> None:
        self.write([dump([entry(8), entry(9)])] * 4)
        report = json.loads(self.run_analyze("--format", "json").stdout)
        self.assertEqual((report["verdict"], report["findings"]), ("stuck", []))
        self.assertIn("number 9 of group 0 (default_pg)", report["reason"])

    def test_old_dumps_are_lists(self) -> None:
        rows = [{"seq_id": 5, "profiling_name": "nccl:all_reduce", "state": "scheduled",
                 "pg_id": 0, "input_sizes": [[3]]}]  # fmt: skip
        late = [{**rows[0], "seq_id": 4}]
        for rank in range(4):
            content = late if rank == 2 else rows
            path = self.folder / f"nccl_trace_rank_{rank}"
            path.write_bytes(pickle.dumps({"entries": content, "version": "1.0"}, 2))
        self.assertEqual(self.finding()["ranks"], "2")

    def test_py_spy_text_and_json(self) -> None:
        for rank in range(3):
            frames = SLEEPS if rank == 1 else WAITS
            text = PYSPY.format(pid=100 + rank, frames=frames)
            (self.folder / f"py-spy-rank{rank}.txt").write_text(text)
        threads = [{"pid": 103, "thread_id": 1, "thread_name": "MainThread", "os_thread_id": 103,
                    "active": False, "owns_gil": False,
                    "frames": [{"name": "all_reduce", "line": 2500, "short_filename": "d.py",
                                "filename": "/v/site-packages/torch/distributed/d.py"},
                               {"name": "main", "filename": "train.py", "line": 31}]}]  # fmt: skip
        (self.folder / "py-spy-rank3.json").write_text(json.dumps(threads))
        finding = self.finding()
        self.assertEqual(finding["ranks"], "1")
        self.assertEqual(finding["function"]["name"], "data.py(12): read_shard")

    def test_a_rank_that_waits_for_its_loader(self) -> None:
        loads = "select (selectors.py:415)\n    _try_get_data (torch/utils/data/dataloader.py:1291)"
        for rank in range(4):
            text = PYSPY.format(pid=100 + rank, frames=loads if rank == 3 else WAITS)
            (self.folder / f"py-spy-rank{rank}.txt").write_text(text)
        finding = self.finding()
        self.assertEqual((finding["id"], finding["ranks"]), ("PT-904", "3"))

    def test_gdb(self) -> None:
        for rank in range(4):
            function = "read_shard" if rank == 2 else "c10d::ProcessGroupGloo::AsyncWork::wait"
            text = GDB.format(pid=100 + rank, function=function)
            (self.folder / f"gdb_{rank}.txt").write_text(text)
        finding = self.finding()
        self.assertEqual(finding["ranks"], "2")

    def test_files_of_several_kinds_are_joined_by_rank(self) -> None:
        self.write([dump([entry(8)])] * 2 + [dump([])] + [dump([entry(8)])])
        text = PYSPY.format(pid=102, frames=SLEEPS)
        (self.folder / "py-spy-rank2.txt").write_text(text)
        finding = self.finding()
        self.assertEqual((finding["id"], finding["ranks"]), ("PT-906", "2"))
        self.assertEqual(finding["function"]["name"], "data.py(12): read_shard")

    def test_the_text_has_the_tree(self) -> None:
        self.test_py_spy_text_and_json()
        text = self.run_analyze().stdout
        self.assertIn("read_shard (data.py:12)", text)
        self.assertIn("@1|0,2-3", text)

    def test_a_pickle_that_wants_to_run_code_is_refused(self) -> None:
        class Evil:
            def __reduce__(self) -> tuple:
                return os.system, (f"touch {folder}/ran",)

        folder = self.folder
        for protocol in (2, 4):
            content = {"version": "2.9", "pg_config": {}, "entries": [Evil()]}
            (self.folder / "_dump_0").write_bytes(pickle.dumps(content, protocol))
            done = self.run_analyze()
            self.assertEqual(done.returncode, 1)
            self.assertIn("_dump_0: offset ", done.stderr)
            self.assertIn("expected a pickle of data alone, found", done.stderr)
            self.assertFalse((self.folder / "ran").exists())

    def test_damaged_dumps_end_with_one_line(self) -> None:
        good = pickle.dumps(dump([entry(n) for n in range(3)]), 2)
        chance = random.Random(1)
        for _ in range(60):
            data = bytearray(good)
            for _ in range(chance.randrange(1, 4)):
                data[chance.randrange(40, len(data))] = chance.randrange(256)
            if chance.randrange(3) == 0:
                del data[chance.randrange(60, len(data)) :]
            (self.folder / "_dump_0").write_bytes(data)
            done = self.run_analyze()
            self.assertIn(done.returncode, (0, 1))
            self.assertLessEqual(len(done.stderr.splitlines()), 2, done.stderr)

    def test_dumps_and_traces_are_not_mixed(self) -> None:
        self.write([dump([entry(8)])])
        (self.folder / "trace.json").write_text('{"traceEvents": []}')
        done = self.run_analyze()
        self.assertEqual(done.returncode, 1)
        self.assertIn("give one kind at a time", done.stderr)

    @unittest.skipUnless(TRACES.is_dir(), "PERFTRACKER_TRACES names no folder of traces")
    def test_two_real_incidents(self) -> None:
        for name, ranks, cause in (
            ("lock_gil_1st", "9,14", "PT-906"),
            ("gpu_error_1st", "12,14", "PT-914"),
        ):
            self.folder = TRACES / "flight_recorder" / name
            finding = self.finding()
            self.assertEqual((finding["id"], finding["ranks"]), (cause, ranks))


if __name__ == "__main__":
    unittest.main()
