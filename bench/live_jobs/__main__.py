# SPDX-License-Identifier: Apache-2.0
"""Judges perftracker on programs that it was not written for.

    .venv/bin/python bench/live_jobs --sample 60
    .venv/bin/python bench/live_jobs --healthy 40 --seconds 180
    .venv/bin/python bench/live_jobs --program before=/old/perftracker --program now=build/...
    .venv/bin/python bench/live_jobs --summary

Small programs in jobs/, written as the users of their frameworks write them, run under
`perftracker run` with default options. inject/ puts a fault into one of their functions. Results
are appended to OUT/results.jsonl; a bench that was interrupted goes on where it was.
README.md says what is counted.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import random
import signal
import sys
from collections.abc import Iterator
from typing import Any

import environment
import faults
import job
import judge
import programs
import recorded
import table

ROOT = job.ROOT
DEFAULT_PROGRAM = str(ROOT / "build" / "src" / "cmd" / "perftracker")
STRENGTHS = (1.0, 2.0, 0.4)
RECORDED_PACE_S = 0.1  # only for how long such a job may take
ALONE_S = 8.0
WARM_S = 12.0  # of healthy steps before a fault
MIN_STEPS = 300
RECORDED_AT = 60  # steps before the fault in a job of which only a trace is judged


class Bench:
    """The options, and the files of the folder OUT."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.out: pathlib.Path = options.out.absolute()
        self.results = self.out / "results.jsonl"
        self.pace_file = self.out / "pace.json"
        self.python = environment.make(self.out / "venv")
        self.builds = dict(text.split("=", 1) for text in options.program or [])
        if not self.builds:
            self.builds = {"now": DEFAULT_PROGRAM}
        chosen = options.programs.split(",") if options.programs else list(programs.BY_NAME)
        self.programs = [programs.BY_NAME[name] for name in chosen]
        missing = [p for p in self.programs if not environment.has(self.python, p.package)]
        self.skipped = [program.name for program in missing]
        self.programs = [program for program in self.programs if program not in missing]

    def records(self) -> list[dict[str, Any]]:
        lines = self.results.read_text().splitlines() if self.results.is_file() else []
        return [json.loads(line) for line in lines]

    def add(self, record: dict[str, Any]) -> None:
        with open(self.results, "a") as file:
            file.write(json.dumps(record) + "\n")

    def plan(self, program: programs.Program, fault: faults.Fault, build: str, **more: Any) -> Any:
        pace_s = more.pop("pace_s", None) or self.pace_of(program, fault)
        number = more.pop("number", 0)
        record = self.options.record if build else ""
        folder = (
            self.out / "runs" / f"{build or 'alone'}-{program.name}-{fault.name}-{number}{record}"
        )
        plan = job.Plan(
            program=program,
            fault=fault,
            build=build,
            binary=str(pathlib.Path(self.builds.get(build, "")).absolute()),
            python=str(self.python),
            folder=folder,
            pace_s=pace_s,
            strength=more.pop("strength", 0.0),
            fault_at=RECORDED_AT if record else max(MIN_STEPS, int(WARM_S / pace_s)),
            seconds=more.pop("seconds", self.options.seconds),
            neighbor=more.pop("neighbor", False),
            record=record,
        )
        assert not more, more
        return plan

    def pace_of(self, program: programs.Program, fault: faults.Fault) -> float:
        """A job that is recorded measures its pace itself before its fault begins."""
        known_later = self.options.record and not fault.from_start
        return RECORDED_PACE_S if known_later else self.pace_s(program)

    def pace_s(self, program: programs.Program) -> float:
        """Of the program alone, measured once."""
        known = json.loads(self.pace_file.read_text()) if self.pace_file.is_file() else {}
        if program.name not in known:
            plan = self.plan(program, faults.NONE, "", pace_s=1e-3, seconds=ALONE_S)
            record = job.run(plan._replace(seconds=ALONE_S))
            tenths = record["tenths_ms"][2:]
            if len(tenths) < 5:
                raise RuntimeError(f"{program.name} makes no steps: {record['log_tail']}")
            known[program.name] = 1e-3 * sorted(tenths)[len(tenths) // 2]
            self.pace_file.write_text(json.dumps(known, indent=1) + "\n")
            print(f"{program.name} alone: {1e3 * known[program.name]:.1f} ms", flush=True)
        return known[program.name]

    def measure_alone(self) -> int:
        """Of all programs; 1 if one of them does not run here."""
        failed = 0
        for program in self.programs:
            try:
                self.pace_s(program)
            except RuntimeError as error:
                failed = 1
                print(error, flush=True)
        return failed

    def cells(self) -> list[tuple[programs.Program, faults.Fault]]:
        """All that fit, in an order in which any beginning has all programs and all faults."""
        names = self.options.faults.split(",") if self.options.faults else list(faults.BY_NAME)
        chosen = [faults.BY_NAME[name] for name in names]
        dice = random.Random(self.options.seed)
        order = dice.sample(self.programs, len(self.programs))
        rows = {program.name: dice.sample(chosen, len(chosen)) for program in order}
        turns = range(len(chosen))
        cells = [(program, rows[program.name][turn]) for turn in turns for program in order]
        cells = [(program, fault) for program, fault in cells if faults.fits(fault, program)]
        if self.options.record:
            cells = [(p, fault) for p, fault in cells if faults.shows_in_trace(fault, p)]
        return cells[: self.options.sample] if self.options.sample else cells

    def faulty_plans(self) -> Iterator[tuple[job.Plan, int]]:
        for place, (program, fault) in enumerate(self.cells()):
            strength = self.options.strength or STRENGTHS[place % len(STRENGTHS)]
            for build in self.builds:
                yield self.plan(program, fault, build, strength=strength), 0

    def healthy_plans(self) -> Iterator[tuple[job.Plan, int]]:
        for number in range(self.options.healthy):
            program = self.programs[number % len(self.programs)]
            for build in self.builds:
                neighbor = number % 4 == 3
                plan = self.plan(program, faults.NONE, build, neighbor=neighbor, number=number)
                yield plan, number

    def run(self) -> None:
        plans = self.healthy_plans() if self.options.healthy else self.faulty_plans()
        done = {table.key(record) for record in self.records()} if not self.options.again else set()
        for plan, number in plans:
            about = {"build": plan.build, "program": plan.program.name, "fault": plan.fault.name}
            about |= {"record": plan.record}
            about |= {"strength": plan.strength, "neighbor": plan.neighbor, "number": number}
            if table.key(about) in done:
                continue
            record = job.run(plan) | {"number": number}
            self.add(record)
            said = judge.judge(record)
            pace = f"{record['before_ms']:.1f} -> {record['after_ms']:.1f} ms"
            words = f"{plan.build} {plan.program.name} {plan.fault.name} ({pace})"
            after = f" after {said.seconds:.0f} s" if said.seconds is not None else ""
            print(f"{words}: {said.word}{after}: {said.said[:200]}", flush=True)

    def report(self) -> str:
        if self.options.format == "text":
            return table.summary(self.records(), self.skipped)
        judged = [
            {**record, "judged": judge.judge(record)._asdict()}
            for record in table.latest(self.records())
        ]
        return json.dumps({"runs": judged, "skipped": self.skipped}, indent=1)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", help="names of programs.py, comma-separated")
    parser.add_argument("--faults", help="names of faults.py, comma-separated")
    parser.add_argument(
        "--program",
        action="append",
        metavar="NAME=PATH",
        help="a perftracker to judge; with several each run is made with each of them",
    )
    parser.add_argument("--healthy", type=int, default=0, metavar="N", help="run N healthy jobs")
    parser.add_argument("--seconds", type=float, default=30.0, help="after the fault, or healthy")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="the first N runs only")
    parser.add_argument("--strength", type=float, default=0.0, help="1: iterations twice as long")
    parser.add_argument(
        "--record",
        default="",
        metavar="HOW",
        help="judge `analyze` on traces by torch.profiler instead: steps or plain, +stacks",
    )
    parser.add_argument("--alone", action="store_true", help="only measure the healthy pace")
    parser.add_argument("--again", action="store_true", help="also what has a result already")
    parser.add_argument("--summary", action="store_true", help="only print the table")
    parser.add_argument(
        "--analyze-again",
        action="store_true",
        help="judge the traces that --record kept in OUT, by the (first) program of today",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the order of runs")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "out" / "live_jobs")
    return parser.parse_args()


def analyze_again(options: argparse.Namespace) -> int:
    binary = options.program[0].split("=", 1)[1] if options.program else DEFAULT_PROGRAM
    found = list(recorded.records(options.out.absolute(), binary))
    if options.format == "text":
        print(table.summary(found, []))
    else:
        judged = [{**record, "judged": judge.judge(record)._asdict()} for record in found]
        print(json.dumps({"runs": judged, "skipped": []}, indent=1))
    return 0


def main() -> int:
    options = parse_options()
    for number in (signal.SIGINT, signal.SIGTERM):  # a run that goes on is ended, too
        signal.signal(number, lambda *_: sys.exit(1))
    if options.analyze_again:
        return analyze_again(options)
    bench = Bench(options)
    if options.alone:
        return bench.measure_alone()
    if not options.summary:
        bench.run()
    print(bench.report())
    return 0


if __name__ == "__main__":
    sys.exit(main())
