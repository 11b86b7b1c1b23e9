# SPDX-License-Identifier: Apache-2.0
"""The hook into torch, in real processes: what it records is what torch's own profiler says.

PERFTRACKER_PROBE is the library made of torchops_probe.c; PERFTRACKER_PYTHON names an
interpreter with torch (.venv/bin/python), PERFTRACKER_OLD_PYTHON one with an old torch.
"""

import collections
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
from typing import Any, Dict, List, Optional, Tuple

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import warm  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(HERE))
JOB = os.path.join(HERE, "jobs", "torchops_job.py")
PYTHON = os.environ.get("PERFTRACKER_PYTHON", os.path.join(ROOT, ".venv", "bin", "python"))
OLD_PYTHON = os.environ.get("PERFTRACKER_OLD_PYTHON", "/usr/bin/python3")
KNOWN = ((1, 13), (2, 15))  # the first and the last


def numbers(version: str) -> Tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def torch_of(python: str) -> List[str]:
    """Version and folder of an interpreter's torch; empty without one that was tried."""
    try:
        run = subprocess.run(
            [
                python,
                "-W",
                "ignore",
                "-c",
                "import torch; print(torch.__version__, torch.__file__)",
            ],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return []
    version, path = run.stdout.split()
    known = KNOWN[0] <= numbers(version) <= KNOWN[1]
    return [version, os.path.dirname(path)] if known else []


def compile_comms(folder: str, torch: List[str]) -> Optional[str]:
    """The fake of NCCL's back end. None without a C++ compiler or the headers of torch."""
    include = os.path.join(torch[1], "include")
    library = os.path.join(folder, "param_comms.so")
    command = ["g++", "-shared", "-fPIC", "-O1", "-w", "-o", library]
    command.append("-std=c++20" if torch[0].startswith("2.") else "-std=c++17")
    for place in (include, "/usr/include"):  # Debian's torch has its headers there
        command += ["-I" + place, "-I" + place + "/torch/csrc/api/include"]
    command += [os.path.join(HERE, "jobs", "param_comms.cc"), "-L" + torch[1] + "/lib"]
    command += ["-lc10", "-ltorch_cpu", "-Wl,-rpath," + torch[1] + "/lib"]
    if shutil.which("g++") is None or subprocess.run(command, capture_output=True).returncode:
        return None
    return library


def count_names(paths: Dict[str, int]) -> Dict[str, int]:
    counts: Dict[str, int] = collections.Counter()
    for path, count in paths.items():
        counts[path.split("/")[-1]] += count
    return counts


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class TorchOpsTest(unittest.TestCase):
    python = PYTHON

    @classmethod
    def setUpClass(cls) -> None:
        cls.torch = torch_of(cls.python)
        if not cls.torch:
            raise unittest.SkipTest("no torch that was tried in " + cls.python)
        code = "import torch; print(torch._C._GLIBCXX_USE_CXX11_ABI)"
        words = [cls.python, "-W", "ignore", "-c", code]
        abi = subprocess.run(words, capture_output=True, text=True, check=True)
        # Nothing is read of the objects where strings have another size.
        cls.hook_only = "True" not in abi.stdout

    def start(self, name: str, **env: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [self.python, JOB, name],
            env={**os.environ, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def result(self, process: Any) -> Any:
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, err)
        return json.loads(out.splitlines()[-1])  # gloo of torch 2.8 prints lines before

    def run_job(self, name: str, **env: str) -> Any:
        """In a fork: see warm.py."""
        return self.result(warm.start(self.python, [JOB, name], {**os.environ, **env}))

    def assert_same_operators(self, found: Any) -> None:
        """Names and nesting; the profiler of old versions has whole microseconds: names only."""
        ours, torch = found["ours"], found["torch"]
        if self.torch[0].startswith("1."):
            ours, torch = count_names(ours), count_names(torch)
        self.maxDiff = None
        self.assertEqual(ours, torch)

    def test_the_check_shows_whether_the_hook_works(self) -> None:
        found = self.run_job("check")
        self.assertEqual((found["right"], found["again"]), ("", ""))
        for wrong in ("nothing", "other", "twice"):
            self.assertIn("torch.empty(0) was not seen", found[wrong])

    def test_versions_that_are_not_known_are_refused(self) -> None:
        found = self.run_job("versions")
        for version in ("2.16.0+cu130", "3", "", "x.y"):
            self.assertIn("torch %s has not been tried" % version, found[version])
        self.assertEqual((found["2.13.0+cpu"], found["forced"]), ("", ""))

    def test_a_step_has_the_operators_that_the_profiler_sees(self) -> None:
        found = self.run_job("step")
        self.assert_same_operators(found)
        self.assertGreater(sum(found["ours"].values()), 100)
        self.assertTrue(any("AddmmBackward0/aten::mm" in path for path in found["ours"]))
        annotations = {name for name, kind in found["kinds"].items() if kind == 38}
        self.assertEqual(
            annotations, {"forward", "Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad"}
        )
        self.assertGreater(found["shortest"], 0)
        self.assertEqual(found["nested"], 0)

    def test_operators_have_the_elements_of_their_tensors(self) -> None:
        found = self.run_job("elements")
        for part in ("first", "last"):
            of = [tuple(op) for op in found[part]]
            if self.hook_only:
                self.assertEqual({op[1] for op in of}, {-1})
                continue
            self.assertEqual([op for op in of if op[0] == "aten::mm"], [("aten::mm", 800)] * 2)
            for known in (
                ("aten::addmm", 830),
                ("aten::conv2d", 519),
                ("aten::cat", -1),  # a list
                ("aten::zeros", -1),  # no tensor
            ):
                self.assertIn(known, of)
            dense = {op[1] for op in of if op[0] == "aten::to_dense"}
            self.assertEqual(dense, {-1})  # of a sparse tensor

    def test_a_backward_pass_on_another_thread_is_seen_there(self) -> None:
        found = self.run_job("threads")
        self.assert_same_operators(found)
        self.assertEqual(found["elsewhere"], 0)

    def test_names_may_be_temporaries(self) -> None:
        expected = ["scope %d %s" % (i, "x" * (i % 50)) for i in range(200)]
        self.assertEqual(self.run_job("names"), expected)

    def test_only_collectives_are_written_without_a_window(self) -> None:
        self.assertEqual(self.run_job("nothing_without_window"), {"ops": 0, "collectives": 0})

    def test_torch_has_no_callback_of_what_is_not_watched(self) -> None:
        self.assertEqual(self.run_job("hooks"), [False, True, False, True, False, False])

    def test_operators_that_throw_end(self) -> None:
        found = self.run_job("exceptions")
        self.assertEqual(found["failed"], 100)
        for path in ("throws", "throws/aten::mm", "aten::add"):
            self.assertEqual(found["paths"][path], 100)

    def test_the_hook_comes_and_goes_while_operators_run(self) -> None:
        found = self.run_job("on_off")
        self.assertGreaterEqual(found["rounds"], 20)
        self.assertLessEqual({"round", "aten::add", "aten::sum"}, set(found["names"]))
        self.assertFalse([n for n in found["names"] if n != "round" and n[:6] != "aten::"])
        self.assertEqual(found["last"], ["aten::_to_copy", "aten::empty_strided", "aten::copy_"])

    def test_a_forked_child_writes_nothing(self) -> None:
        found = self.run_job("fork")
        self.assertEqual(found["status"], 0)
        self.assertIn("parent", found["names"])
        self.assertNotIn("aten::mul", found["names"])
        self.assertEqual(found["collectives"], [])

    def test_deep_nesting_is_counted(self) -> None:
        found = self.run_job("nesting")
        self.assertGreater(found["nested"], 0)
        self.assertEqual(found["scopes"], 64 + 1)

    def test_two_ranks_agree_on_their_collectives(self) -> None:
        port = str(free_port())
        env = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
        ranks = [self.result(p) for p in [self.start("ddp", RANK=r, **env) for r in "01"]]
        gradients = 4 * (1000 * 10 + 10)
        sizes = [-1] * 11 if self.hook_only else [gradients] * 10 + [7 * 8]
        both: List[List[Dict[str, Any]]] = []
        for rank in ranks:
            fields = ("tid", "name", "start", "end", "bytes", "seq", "size", "group", "collective")
            fields += ("first_rank", "rank_stride")
            found = [dict(zip(fields, c, strict=True)) for c in rank["collectives"]]
            reduced = [c for c in found if c["name"] == "gloo:all_reduce"]
            self.assertEqual([c["bytes"] for c in reduced], sizes)
            self.assertEqual([c["name"] for c in found][-1], "gloo:barrier")
            self.assertEqual({c["collective"] for c in reduced}, {"all_reduce"})
            self.assertEqual({c["rank_stride"] for c in found}, {0})
            for c in found:
                self.assertLess(0, c["start"])
                self.assertLess(c["start"], c["end"])
                self.assertLess(c["end"], rank["now"])
            self.assertEqual(rank["nested"], 0)
            both.append(reduced)
        for mine, other in zip(*both, strict=True):
            # Of one host: one clock. What one rank ended before the other began is no all_reduce.
            self.assertLess(mine["start"], other["end"])
            self.assertLess(other["start"], mine["end"])

    def test_a_collective_s_description_is_read_or_unknown(self) -> None:
        if self.hook_only:
            self.skipTest("the layout of this torch is not known")
        with tempfile.TemporaryDirectory() as folder:
            library = compile_comms(folder, self.torch)
            if library is None:
                self.skipTest("no C++ compiler, or no headers of torch")
            found = self.run_job("comms", PERFTRACKER_PARAM_COMMS=library)
        old, version = self.torch[0].startswith("1."), numbers(self.torch[0])
        if (2, 0) <= version < (2, 4):
            self.skipTest("such a torch describes collectives in other words")
        seq = 42 if version >= (2, 12) else -1
        groups = ("default_pg", "a group with quite a long name")
        self.assertEqual(len(found["right"]), 2)
        for collective, group, elements in zip(found["right"], groups, (1000, 5), strict=True):
            known = [2 * elements, *((-1, 0, "") if old else (seq, 8, group)), "allreduce"]
            known += [0, 0] if old else [16, 2]
            self.assertEqual(collective[1], "nccl:all_reduce")
            self.assertEqual(collective[4:], known)
            self.assertLess(collective[2], collective[3])
        self.assertEqual(len(found["shifts"]), 71)
        for by, collective in zip(found["shifts"], found["wrong"], strict=True):
            self.assertEqual(collective[4:], [-1, -1, 0, "", "all_reduce", 0, 0], by)


class OldTorchOpsTest(TorchOpsTest):
    python = OLD_PYTHON


if __name__ == "__main__":
    unittest.main()
