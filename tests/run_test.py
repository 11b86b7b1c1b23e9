# SPDX-License-Identifier: Apache-2.0
"""The driver's own counting: no test is lost, and which failures get a second try."""

import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import sys
import tempfile
import textwrap
import threading
import time
import unittest

SUITE = """
    import pathlib, unittest
    MARK = pathlib.Path(__file__).with_name("tries")
    class Case(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            cls.wanted = 1
        def test_good(self):
            pass
        def test_second(self):
            tries = len(MARK.read_text()) if MARK.exists() else 0
            MARK.write_text("x" * (tries + 1))
            self.assertEqual(tries, self.wanted)
        def test_bad(self):
            self.assertEqual({"a": 1}, {"a": 2})
        def test_parts(self):
            for part in range(3):
                with self.subTest(part=part):
                    self.assertEqual(part, 0)
        def test_skipped(self):
            self.skipTest("not here")
"""

PARTS = """
    import unittest
    class One(unittest.TestCase):
        def test_a(self):
            pass
        def test_b(self):
            pass
    class Two(unittest.TestCase):
        def test_c(self):
            pass
    if __name__ == "__main__":
        unittest.main()
"""


def load_runner():
    loader = importlib.machinery.SourceFileLoader(
        "tests_run", str(pathlib.Path(__file__).with_name("run"))
    )
    spec = importlib.util.spec_from_loader("tests_run", loader)
    runner = importlib.util.module_from_spec(spec)
    sys.modules["tests_run"] = runner
    loader.exec_module(runner)
    return runner


RUNNER = load_runner()


def run_suite(real_time):
    """Counts, exit status and last lines of the suite above."""
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder, "sample_suite")
        place.mkdir()
        (place / f"sample_{'slow' if real_time else 'fast'}_test.py").write_text(
            textwrap.dedent(SUITE)
        )
        root, RUNNER.ROOT = RUNNER.ROOT, pathlib.Path(folder)
        path, modules = list(sys.path), set(sys.modules)
        score, pool, out = RUNNER.Score(), RUNNER.Pool(2), io.StringIO()
        try:
            with contextlib.redirect_stdout(out):
                RUNNER.add_python(score, pool, "sample_suite", real_time)
                pool.drain()
                score.try_again()
                status = score.finish()
        finally:
            RUNNER.ROOT, sys.path[:] = root, path
            for name in set(sys.modules) - modules:
                del sys.modules[name]
    return score.counts, status, out.getvalue()


def count_tries(first, second):
    """Counts and last lines of a program whose two runs had these results."""
    score = RUNNER.Score()
    results = [{name: RUNNER.Result(word) for name, word in run.items()} for run in (first, second)]
    with contextlib.redirect_stdout(io.StringIO()):
        score.add_all(results[0], lambda: results[1])
        score.try_again()
    return score.counts, [line.partition(":")[0] for line in score.told]


class Driver(unittest.TestCase):
    def test_one_try_where_time_plays_no_part(self):
        counts, status, out = run_suite(real_time=False)
        self.assertEqual(counts, {"passed": 1, "failed": 3, "skipped": 1})
        self.assertEqual(status, 1)
        self.assertEqual(out.splitlines()[-1], "1 passed, 3 failed, 1 skipped")

    def test_two_tries_of_real_time(self):
        counts, status, out = run_suite(real_time=True)
        self.assertEqual(counts, {"passed": 2, "failed": 2, "skipped": 1})
        self.assertEqual(status, 1)
        lines = out.splitlines()
        self.assertEqual(lines[-1], "2 passed, 2 failed, 1 skipped")
        told = sorted(line.partition("Case.")[0].split(":")[0] for line in lines[-4:-1])
        self.assertEqual(told, ["failed", "failed", "second try"])
        second = next(line for line in lines if line.startswith("second try"))
        self.assertRegex(second, r"Case\.test_second: AssertionError: 0 != 1$")

    def test_a_program_that_ends_badly_or_says_nothing(self):
        judged = RUNNER.judged("x", RUNNER.Outcome(139, "no word of a test"))
        self.assertEqual(judged["x"].word, "failed")
        self.assertEqual(RUNNER.last_words(judged["x"].detail), "exit status 139")
        text = "[       OK ] one\n[  ERROR   ] --- 0x1 != 0x2\n[  FAILED  ] two\n"
        judged = RUNNER.judged("x", RUNNER.Outcome(1, text))
        self.assertEqual(
            [judged[f"x: {name}"].word for name in ("one", "two")], ["passed", "failed"]
        )
        self.assertEqual(RUNNER.last_words(judged["x: two"].detail), "[  ERROR   ] --- 0x1 != 0x2")
        # All passed, and then it crashed.
        judged = RUNNER.judged("x", RUNNER.Outcome(139, "[       OK ] one\n"))
        self.assertEqual(sorted(r.word for r in judged.values()), ["failed", "passed"])
        text = "test_a (m.C.test_a) ... \n  test_a (m.C.test_a) (part=1) ... FAIL\n"
        text += "test_b (m.C.test_b)\nSays more. ... ok\nFAIL: test_a (m.C.test_a) (part=1)\n"
        judged = RUNNER.judged("x", RUNNER.Outcome(1, text))
        self.assertEqual(
            {name: result.word for name, result in judged.items()},
            {"x: test_a": "failed", "x: test_b": "passed"},
        )
        self.assertEqual(RUNNER.judged("x", RUNNER.Outcome(77, "no GPU"))["x"].word, "skipped")

    def test_a_failure_of_the_second_try_alone_is_counted(self):
        first = {"x: a": "failed", "x: b": "passed"}
        counts, told = count_tries(first, {"x: a": "passed", "x: b": "passed", "x": "failed"})
        self.assertEqual(counts, {"passed": 2, "failed": 1, "skipped": 0})
        self.assertEqual(told, ["second try", "failed"])
        counts, told = count_tries(first, {"x: a": "passed", "x: b": "failed"})
        self.assertEqual(counts["failed"], 1)

    def test_a_crash_that_does_not_repeat_is_a_second_try(self):
        """Its tests are counted by the run that had them."""
        counts, told = count_tries({"x": "failed"}, {"x: a": "passed", "x: b": "passed"})
        self.assertEqual(counts, {"passed": 2, "failed": 0, "skipped": 0})
        self.assertEqual(told, ["second try"])
        counts, told = count_tries({"x": "failed"}, {"x: a": "passed", "x: b": "failed"})
        self.assertEqual(counts, {"passed": 1, "failed": 2, "skipped": 0})
        counts, told = count_tries({"x": "failed"}, {})
        self.assertEqual((counts["failed"], told), (1, ["failed"]))

    def test_a_set_up_that_skips_or_fails_is_counted(self):
        text = "setUpClass (m.C) ... skipped 'no headers'\n\nRan 0 tests in 0.000s\n"
        judged = RUNNER.judged("x", RUNNER.Outcome(0, text))
        self.assertEqual({n: r.word for n, r in judged.items()}, {"x: setUpClass (m.C)": "skipped"})
        text = "setUpClass (m.C) ... ERROR\ntest_a (m.D.test_a) ... FAIL\nRan 1 test in 0.1s\n"
        judged = RUNNER.judged("x", RUNNER.Outcome(1, text))
        self.assertEqual([r.word for r in judged.values()], ["failed", "failed"])

    def test_a_result_that_was_not_read_is_a_failure(self):
        text = "test_a (m.C.test_a) ... ok\ntest_b (m.C.test_b) ... \nRan 2 tests in 0.1s\n"
        judged = RUNNER.judged("x", RUNNER.Outcome(0, text))
        self.assertEqual(
            {n: r.word for n, r in judged.items()}, {"x: test_a": "passed", "x": "failed"}
        )

    def test_a_program_in_parts_has_the_same_tests(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "parts_test.py")
            path.write_text(textwrap.dedent(PARTS))
            test = {"name": "parts", "cmd": [sys.executable, str(path)], "env": {}}
            test |= {"workdir": folder, "timeout": 30}
            whole = RUNNER.judged("x", RUNNER.run_test("build", test))
            self.assertEqual(len(whole), 3)
            for split, part_cnt in (("class", 2), ("method", 3)):
                parts = RUNNER.parts_of(test, split)
                self.assertEqual(len(parts), part_cnt)
                found = [
                    name
                    for words in parts
                    for name in RUNNER.judged(
                        "x", RUNNER.run_test("build", test | {"cmd": [*test["cmd"], *words]})
                    )
                ]
                self.assertEqual(sorted(found), sorted(whole))

    def test_pieces_of_a_suite_are_its_tests(self):
        costs, RUNNER.COSTS = RUNNER.COSTS, (RUNNER.Cost("sample_suite/*", 1, 1, "method"),)
        try:
            counts, status, _ = run_suite(real_time=True)
        finally:
            RUNNER.COSTS = costs
        self.assertEqual((counts, status), ({"passed": 2, "failed": 2, "skipped": 1}, 1))

    def test_no_more_work_runs_than_there_are_cpus(self):
        pool, running, most, taken = RUNNER.Pool(2), [], [], []
        lock = threading.Lock()

        def work(cpus):
            def run():
                with lock:
                    running.append(cpus)
                    most.append(sum(running))
                time.sleep(0.01)
                with lock:
                    running.remove(cpus)
                return cpus

            return run

        def take(cpus, _):
            taken.append(cpus)
            if len(taken) == 3:  # also work that comes while others run
                pool.add(RUNNER.Work(work(2), take, 1e9))

        for cpus in (2, 0.5, 0.5, 1, 1, 0.5):
            pool.add(RUNNER.Work(work(cpus), take, 1e9 if cpus == 2 else cpus))
        pool.aside(lambda: 0, lambda result: taken.append(result))
        pool.drain()
        self.assertEqual(sorted(taken), [0, 0.5, 0.5, 0.5, 1, 1, 2, 2])
        self.assertLessEqual(max(most), 2)

    def test_an_exception_of_the_work_is_raised(self):
        pool = RUNNER.Pool(1)
        pool.add(RUNNER.Work(lambda: 1 // 0, lambda *_: None))
        self.assertRaises(ZeroDivisionError, pool.drain)

    def test_what_a_sanitizer_reports_has_one_try(self):
        def may_try_again(text):
            return RUNNER.second_try("b", {"name": "n"}, RUNNER.Outcome(1, text)) is not None

        self.assertTrue(may_try_again("[  FAILED  ] one\n"))
        self.assertTrue(may_try_again("AssertionError: 3 != 4\n"))
        for text in (
            "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x1",
            "WARNING: ThreadSanitizer: data race (pid=7)",
            "src/base/vec.c:3:1: runtime error: signed integer overflow",
            "==7==ERROR: LeakSanitizer: detected memory leaks",
        ):
            self.assertFalse(may_try_again(text), text)


if __name__ == "__main__":
    unittest.main()
