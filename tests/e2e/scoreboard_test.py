# SPDX-License-Identifier: Apache-2.0
"""The judge of the scoreboard can say each of its words."""

from __future__ import annotations

import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def load_scoreboard():
    """Its modules have short names, which other folders of bench use too."""
    folder, kept = str(ROOT / "bench" / "scoreboard"), sys.modules.pop("judge", None)
    sys.path.insert(0, folder)
    try:
        import figure
        import foreign
        import jobs
        import judge
        import table
    finally:
        sys.path.remove(folder)
        sys.modules.pop("judge")
        if kept is not None:
            sys.modules["judge"] = kept
    return figure, foreign, jobs, judge, table


figure, foreign, jobs, judge, table = load_scoreboard()


def simulated(**changes: object) -> dict:
    one = {"scenario": "nic", "seed": 14, "cost_pct": 20.0, "first": True, "wrong_rank": False}
    one |= {"findings": 1, "false": 0, "by_design": 0, "verdict": "abnormal", "truth": "3"}
    return one | {"said": "slow-link on 3"} | changes


def run(**changes: object) -> dict:
    judged = {"word": "right", "cost_pct": 50.0, "said": "rank 1"} | changes.pop("judged", {})
    one = {"program": "ddp", "fault": "lock", "record": "plain", "ranks": 2, "judged": judged}
    return one | changes


class Foreign(unittest.TestCase):
    """The part on jobs of others says what is wrong, and leaves the rest of the page alone."""

    def write(self, folder: str, name: str, value: dict) -> pathlib.Path:
        path = pathlib.Path(folder) / name
        path.write_text(json.dumps(value))
        return path

    def test_what_is_wrong_is_counted_and_listed(self) -> None:
        jobs_of_it = [
            simulated(),
            simulated(seed=16, first=False, wrong_rank=True, false=1, said="gpu-slow on 5"),
            simulated(seed=18, first=False, cost_pct=1.0),  # costs too little to be asked for
            simulated(seed=20, truth="healthy", cost_pct=0.0, findings=0, verdict="healthy"),
        ]
        runs = [
            run(),
            run(fault="gc", judged={"word": "wrong rank", "said": "rank 0|1"}),
            run(ranks=1, fault="imbalance", judged={"word": "false healthy"}),
            run(judged={"word": "false healthy", "cost_pct": 3.0}),
        ]
        with tempfile.TemporaryDirectory() as folder:
            second = self.write(folder, "second.json", {"jobs": jobs_of_it})
            part = foreign.section([second], self.write(folder, "runs.json", {"runs": runs}))
        self.assertIn("| 14 to 20 | 4 | 1 of 2 (50.0 %) | 66.7 % | 0 | 1 | 0 of 1 |", part)
        self.assertIn("gpu-slow on 5", part)
        self.assertIn("| all | 2 | 1 | 1 | 0 | 50.0 % |", part)
        self.assertIn("rank 0/1", part)

    def test_the_rest_of_the_page_stays(self) -> None:
        page = foreign.replace("# Head\n", foreign.BEGIN + "\nold\n")
        self.assertEqual(foreign.kept(page), foreign.BEGIN + "\nold\n")
        new = foreign.replace(page, foreign.BEGIN + "\nnew\n")
        self.assertTrue(new.startswith("# Head\n"))
        self.assertNotIn("old", new)
        self.assertEqual(foreign.replace("# Head\n", ""), "# Head\n")


def fault(**changes: object) -> dict:
    one = {
        "cause": "slow-link",
        "causes_accepted": ["slow-link"],
        "functions_accepted": ["nccl"],
        "ranks": "2-3",
        "ranks_possible": "2-3",
        "when": "always",
        "size": 0.5,
        "gain_pct": 5.0,
        "alone_pct": 5.0,
    }
    return {**one, **changes}


def truth(*faults: dict) -> dict:
    verdict = "abnormal" if any(one["alone_pct"] >= 1 for one in faults) else "healthy"
    return {"verdict": verdict, "faults": list(faults)}


def said(ranks: str, function: str = "ncclAllReduce", cause: str = ""):
    return judge.Finding(function, judge.parse_ranks(ranks), cause)


class Judge(unittest.TestCase):
    def first_is_right(self, of: dict, finding) -> bool:
        return judge.judge(truth(of), [finding]).top1

    def test_right_function_and_workers(self) -> None:
        self.assertTrue(self.first_is_right(fault(), said("2-3")))

    def test_right_cause_and_workers(self) -> None:
        one = judge.judge(truth(fault()), [said("2-3", "gemm", "slow-link")])
        self.assertTrue(one.top1)
        self.assertTrue(one.cause)

    def test_right_function_with_a_wrong_cause(self) -> None:
        one = judge.judge(truth(fault()), [said("2-3", cause="gpu-slow")])
        self.assertEqual((one.top1, one.cause), (True, False))

    def test_wrong_function(self) -> None:
        self.assertFalse(self.first_is_right(fault(), said("2-3", "gemm", "gpu-slow")))

    def test_few_workers_must_be_equal(self) -> None:
        for ranks in ("2", "1-3", "2-4", "5"):
            self.assertFalse(self.first_is_right(fault(), said(ranks)), ranks)

    def test_of_many_workers_one_in_ten_may_be_missed(self) -> None:
        many = fault(ranks="0-19", ranks_possible="0-19")
        self.assertTrue(self.first_is_right(many, said("0-18")))
        self.assertFalse(self.first_is_right(many, said("0-16")))

    def test_by_chance_half_of_the_hit_are_enough(self) -> None:
        chance = fault(ranks="1,4,6,7", ranks_possible="0-7", when="at random")
        self.assertTrue(self.first_is_right(chance, said("1,4")))
        self.assertTrue(self.first_is_right(chance, said("0-7")))
        self.assertFalse(self.first_is_right(chance, said("1")))
        self.assertFalse(self.first_is_right(chance, said("1,4,5")))

    def test_any_function_is_right_for_a_fault_of_no_function(self) -> None:
        any_function = fault(functions_accepted=[])
        self.assertTrue(self.first_is_right(any_function, said("2-3", "gemm")))

    def test_a_second_fault_counts_for_recall_only(self) -> None:
        two = truth(fault(), fault(ranks="5", ranks_possible="5", functions_accepted=["gemm"]))
        one = judge.judge(two, [said("5", "gemm"), said("2-3")])
        self.assertEqual((one.top1, one.wanted, one.found, one.true), (True, 2, 2, 2))
        one = judge.judge(two, [said("7"), said("2-3")])
        self.assertEqual((one.top1, one.found, one.findings, one.true), (False, 1, 2, 1))

    def test_a_part_of_the_hit_is_not_false_but_not_found(self) -> None:
        one = judge.judge(truth(fault()), [said("2")])
        self.assertEqual((one.found, one.true), (0, 1))

    def test_kinds_of_jobs(self) -> None:
        self.assertEqual(judge.judge(truth(), []).kind, "healthy")
        self.assertEqual(judge.judge(truth(fault(size=0.0, alone_pct=0.0)), []).kind, "healthy")
        weak = fault(gain_pct=0.5, alone_pct=0.5)
        self.assertEqual(judge.judge(truth(weak), []).kind, "weak")
        self.assertEqual(judge.judge(truth(fault()), []).kind, "faulty")

    def test_of_faults_that_hide_each_other_both_are_wanted(self) -> None:
        hidden = fault(gain_pct=0.0)
        self.assertEqual(judge.judge(truth(hidden, hidden), []).wanted, 2)


class Table(unittest.TestCase):
    def row(self, strength: float, findings: list, *faults: dict):
        judged = {table.OURS: judge.judge(truth(*faults), findings)}
        return table.Row("f", "", 8, "fingerprints", strength, 1, 5.0, "", judged)

    def test_smallest_strength_stops_at_the_first_gap(self) -> None:
        right, wrong = [said("2-3")], [said("7")]
        rows = [
            self.row(0.5, right, fault()),
            self.row(1.0, wrong, fault()),
            self.row(2.0, right, fault()),
        ]
        self.assertEqual(table.smallest_found(rows, table.OURS), "x2 (5.0 %)")

    def test_the_figure_has_a_dot_at_the_smallest_strength(self) -> None:
        found = figure.draw([self.row(x, [said("2-3")], fault()) for x in (0.5, 1.0)])
        missed = figure.draw([self.row(x, [], fault()) for x in (0.5, 1.0)])
        self.assertIn(f'cx="{figure.place(0.5, 0.5):.1f}"', found)
        self.assertNotIn(f'cx="{figure.place(0.5, 0.5):.1f}"', missed)
        self.assertEqual(found.count("<circle"), missed.count("<circle"))

    def test_alarms_and_abstentions(self) -> None:
        rows = [self.row(1.0, [said("1")]), self.row(1.0, []), self.row(1.0, [], fault())]
        line = table.overview(rows).splitlines()[-1]
        self.assertIn("1 of 2", line)
        self.assertIn("100.0 %", line)

    def test_errors_say_what_is_wrong(self) -> None:
        rows = [
            self.row(1.0, [said("1", cause="gpu-slow")]),
            self.row(1.0, [], fault()),
            self.row(1.0, [said("2")], fault()),
            self.row(1.0, [said("2-3"), said("7", "gemm")], fault()),
            self.row(1.0, [said("2-3", "gemm")], fault()),
            self.row(1.0, [said("2-3")], fault()),
        ]
        whys = [row.judged[table.OURS].why for row in rows]
        self.assertEqual(
            whys,
            [
                "says gpu-slow",
                "says nothing",
                "names it on too few workers",
                "also says gemm",
                "says gemm first",
                "",
            ],
        )
        self.assertEqual(table.errors(rows).count("--seed 1"), 5)


class Seeds(unittest.TestCase):
    def test_the_two_sets_have_no_seed_in_common(self) -> None:
        seeds = {
            which: {
                one.seed for one in jobs.families(which, ["nic-bond"], [8, 64, 512], (1.0,), 50)
            }
            for which in jobs.SETS
        }
        self.assertGreater(len(seeds["tune"]), 100)
        self.assertFalse(seeds["tune"] & seeds["judge"])


class Ranks(unittest.TestCase):
    def test_there_and_back(self) -> None:
        for text in ("", "3", "0-2,7", "1,3,5-6"):
            self.assertEqual(judge.format_ranks(judge.parse_ranks(text)), text)


if __name__ == "__main__":
    unittest.main()
