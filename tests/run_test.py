# SPDX-License-Identifier: Apache-2.0
"""The driver's own counting: what failed is told last, and who may try again."""

import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import sys
import tempfile
import textwrap
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
