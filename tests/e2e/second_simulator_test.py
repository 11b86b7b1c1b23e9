#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Physics of the second simulator, and the judgment of its jobs."""

import dataclasses
import json
import pathlib
import random
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/second_simulator"))

try:
    import numpy
except ImportError:
    print("skipped: numpy is missing")
    sys.exit(77)  # skipped, for tests/run

import faults  # noqa: E402
import kineto  # noqa: E402
import program  # noqa: E402
import spec as specs  # noqa: E402
import verdicts  # noqa: E402


def small(kind="ddp", seed=4, **changes):
    spec = specs.draw(seed, kind, random.Random(seed))
    return dataclasses.replace(spec, iterations=3, warmup=False, odd_ranks=(), **changes)


def members_of(played):
    found = {}
    for work in played.engine.done:
        if work.collective is not None:
            found.setdefault(work.collective.name, []).append(work)
    return found


class Physics(unittest.TestCase):
    def test_a_collective_ends_on_all_members_together_after_the_last_arrival(self):
        for kind in specs.KINDS:
            played = program.play(small(kind), faults.Fault())
            groups = members_of(played)
            self.assertTrue(groups, kind)
            for works in groups.values():
                ends = [work.end for work in works]
                self.assertLess(max(ends) - min(ends), 2.0)
                self.assertGreater(min(ends), max(work.start for work in works))

    def test_work_of_a_stream_never_overlaps_and_follows_its_launch(self):
        played = program.play(small("tp"), faults.Fault())
        last = {}
        for work in sorted(played.engine.done, key=lambda one: one.start):
            self.assertGreater(work.start, work.launched)
            self.assertGreaterEqual(work.start, last.get((work.rank, work.stream), 0.0))
            last[work.rank, work.stream] = work.end

    def test_a_seed_makes_the_same_job_each_time(self):
        one, other = (program.play(small("pptp"), faults.Fault()) for _ in range(2))
        for rank, played in one.ranks.items():
            self.assertEqual(played.steps, other.ranks[rank].steps)

    def test_a_pause_of_one_rank_delays_all_and_costs_what_it_lasts(self):
        spec = small("ddp", sync_every=1)
        fault = faults.Fault()
        for iteration in range(3):
            fault.stall(1, iteration, faults.Stall("log", 50_000.0))
        whole = program.play(spec, faults.Fault()).iteration_us
        late = program.play(spec, fault)
        self.assertAlmostEqual(late.iteration_us - whole, 50_000.0, delta=2_500.0)
        begins = [rank.steps[-2] for rank in late.ranks.values()]
        self.assertLess(max(begins) - min(begins), 60_000.0)

    def test_a_slow_card_costs_its_group_twice_the_time_and_its_sisters_nothing(self):
        dice = random.Random(3)
        while True:
            spec = specs.draw(3, "tp", dice)
            if faults.is_spread(spec):
                break
        fault = faults.Fault(nics={0: 0.5})
        times = {}
        for name, works in members_of(program.play(spec, fault)).items():
            transfer = works[0].collective
            if transfer.group.kind == "dp":
                slow = 0 in transfer.group.ranks
                times.setdefault(slow, []).append(transfer.end - transfer.start)
            self.assertTrue(name)
        means = {slow: sum(some) / len(some) for slow, some in times.items()}
        self.assertAlmostEqual(means[True] / means[False], 2.0, delta=0.25)

    def test_without_an_uneven_cut_the_same_work_takes_less(self):
        spec = small("pp")
        uneven = faults.uneven(spec, random.Random(1), 0.0)
        even = program.play(spec, faults.Fault(**uneven.cured)).iteration_us
        self.assertLess(even, program.play(spec, uneven).iteration_us)


class Files(unittest.TestCase):
    def test_samples_hold_the_busy_time_of_their_period(self):
        edges = numpy.array([0.0, 10.0, 20.0, 30.0])
        parts = [(5.0, 15.0, 0.5), (12.0, 25.0, 1.0)]
        used = numpy.diff(kineto.cumulate(parts, edges))
        self.assertEqual([round(value, 6) for value in used], [2.5, 10.5, 5.0])

    def test_there_is_one_file_a_rank_but_for_the_missing(self):
        spec = small("ddp", compressed=False)
        played = program.play(spec, faults.Fault(missing=frozenset({1})))
        with tempfile.TemporaryDirectory() as folder:
            kineto.write(played, pathlib.Path(folder))
            names = sorted(path.name for path in pathlib.Path(folder).iterdir())
            self.assertEqual(len(names), spec.world - 1)
            document = json.loads((pathlib.Path(folder) / names[0]).read_text())
        self.assertEqual(document["distributedInfo"]["world_size"], spec.world)
        kernels = [one for one in document["traceEvents"] if one.get("cat") == "kernel"]
        self.assertTrue(all(one["dur"] > 0 for one in kernels))


def report_of(ranks, cause, verdict="abnormal", scope="some"):
    finding = {
        "ranks": ranks,
        "cause": cause,
        "scope": scope,
        "function": {"name": "train.py: log_metrics"},
        "gain_pct": 20.0,
    }
    return {"verdict": verdict, "reason": "", "findings": [finding] if ranks else []}


class Judging(unittest.TestCase):
    def setUp(self):
        truth = faults.Truth([frozenset({2})], ["host-stall"], [])
        self.fault = faults.Fault(truths=[truth])

    def judge(self, report):
        return verdicts.judge("python", 1, self.fault, 22.0, report)

    def test_the_right_rank_and_cause_are_right(self):
        said = self.judge(report_of("2", "host-stall"))
        self.assertTrue(said.first and said.any)
        self.assertEqual((said.false, said.wrong_rank, said.gain_error), (0, False, 2.0))

    def test_another_rank_or_cause_is_false(self):
        said = self.judge(report_of("1", "host-stall"))
        self.assertTrue(said.wrong_rank)
        self.assertEqual((said.first, said.false), (False, 1))
        said = self.judge(report_of("2", "gpu-slow"))
        self.assertEqual((said.first, said.wrong_rank, said.false), (False, False, 1))

    def test_silence_is_a_false_healthy(self):
        self.assertTrue(self.judge(report_of("", "", "healthy")).false_healthy)
        self.assertFalse(self.judge(report_of("", "", "inconclusive")).false_healthy)

    def test_what_a_job_takes_by_design_is_no_accusation(self):
        said = self.judge(report_of("0-3", "slow-collective", scope="all"))
        self.assertEqual((said.by_design, said.false, said.wrong_rank), (1, 0, False))

    def test_uneven_inputs_of_all_are_by_design_only_where_experts_have_them(self):
        report = report_of("0-3", "load-imbalance", scope="all")
        self.assertEqual(self.judge(report).false, 1)
        said = verdicts.judge("python", 1, self.fault, 22.0, report, uneven_inputs=True)
        self.assertEqual((said.by_design, said.false, said.first), (1, 0, False))

    def test_a_slow_card_is_asked_for_where_samples_show_it(self):
        dice = random.Random(3)
        spec = next(
            one for one in iter(lambda: specs.draw(3, "tp", dice), None) if faults.is_spread(one)
        )
        spec = dataclasses.replace(spec, pulse_us=4000.0, counters_us=500.0)
        transfer = faults.reduction_us(spec)
        long, short = (
            dataclasses.replace(spec, comm=spec.comm * us / transfer) for us in (2e3, 500)
        )
        self.assertEqual(faults.nic_truth(long, 0, 0.5).answers, [frozenset({0})])
        self.assertGreater(len(faults.nic_truth(short, 0, 0.5).answers), 1)

    def test_a_rank_without_a_file_is_not_replaced_by_another(self):
        self.fault.missing = frozenset({2})
        self.assertTrue(self.judge(report_of("", "", "incomplete")).first)
        self.assertFalse(self.judge(report_of("", "", "healthy")).first)
        self.assertFalse(self.judge(report_of("1", "host-stall")).first)


if __name__ == "__main__":
    unittest.main()
