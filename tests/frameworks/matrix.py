# SPDX-License-Identifier: Apache-2.0
"""Writes docs/frameworks.md: what PerfTracker does in programs of many frameworks and styles.

    python3 tests/frameworks/matrix.py --python VENV/bin/python [--results OUT/results.jsonl]
    python3 tests/frameworks/matrix.py --render

Each program of bench/live_jobs runs twice (twice.py). The outcomes are kept in OUT as JSON lines,
so that programs can be tried one by one and on several days; the page is made of the latest of
each. With --results, the answers of bench/live_jobs are in it, too.
"""

from __future__ import annotations

import argparse
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from twice import BY_NAME, JOBS, LEARNING, PROGRAM, ROOT, Outcome, Program, run_twice  # noqa: E402

PAGE = ROOT / "docs" / "frameworks.md"
STEPS = 100
VERSIONS = """
import importlib.metadata, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        found[name] = ""
print(json.dumps(found))
"""
HEAD = """# Frameworks

Written by `tests/frameworks/matrix.py`, not by hand. Each program of `bench/live_jobs` runs
without PerfTracker and then under `perftracker run`, on CPUs. *Works*: both runs have the same exit
status, every optimizer step leaves the same bits in the weights of every rank, all ranks are seen,
and PerfTracker counts the iterations that the program has. *In part* says what of this is missing.
*Same weights* is the number of optimizer steps that were compared, over all ranks; programs
without an optimizer of torch have none. *Iterations* are those that PerfTracker had counted when
the program had done so many; an iteration is learned first, which takes up to {learning}.

"""
COUNTED = """
*Iterations of another length.* An iteration of PerfTracker is one pass through steps of a fixed
order: batches of an accumulation, critic and generator. Steps of one optimizer in bursts of random
number are one iteration each, so `rl`, which steps two to five times after its episodes, has about
three times as many as it calls iterations. Marks do not show whether the pause between two bursts
is a rollout, which begins an iteration, or an evaluation or a checkpoint between plain steps, which
does not; and workers agree on where a window begins by counting steps. Pauses that take more than a
fifth of the time from the beginning on are a phase: steps after a pause are compared with each
other, not with steps inside a burst, and a window has the mean number of steps between two pauses
for each iteration it was to have. A program that calls `perftracker.step()` has the iterations it
means.
"""
FAULTS = """
*Faults* are runs of `bench/live_jobs` with a fault in one rank or all, of which the right rank and
function were named, of those that cost more than 10 %.
"""


def versions(python: str, names: list[str]) -> dict[str, str]:
    words = [python, "-c", VERSIONS, *names]
    return json.loads(subprocess.check_output(words, text=True))


def missing(outcome: Outcome, program: Program) -> list[str]:
    """What keeps a program from the word "works"."""
    found = []
    if outcome.statuses[0]:
        return [f"the program itself failed without PerfTracker (exit {outcome.statuses[0]})"]
    if outcome.statuses[1]:
        found.append(f"exit {outcome.statuses[1]} with PerfTracker")
    if outcome.weights[0] != outcome.weights[1]:
        found.append("other weights")
    if outcome.ranks_seen != program.ranks:
        found.append(f"{outcome.ranks_seen} of {program.ranks} ranks seen")
    if not outcome.counted:
        found.append("no iteration found")
    elif not outcome.true_length:
        found.append("iterations of another length")
    return found


def word_of(outcome: Outcome, lacks: list[str]) -> str:
    if not lacks:
        return "works"
    return ("not judged: " if outcome.statuses[0] else "in part: ") + ", ".join(lacks)


def measure(program: Program, python: str, torch: str) -> dict[str, Any]:
    found = versions(python, [program.package]) if program.package else {}
    record: dict[str, Any] = {
        "program": program.name,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "framework": f"{program.package} {found[program.package]}" if program.package else "torch",
        "torch": torch,
    }
    if program.package and not found[program.package]:
        return record | {"framework": program.package, "word": "not tried: not installed"}
    with tempfile.TemporaryDirectory(prefix="pt-fw-") as folder:
        outcome = run_twice(program, python, pathlib.Path(folder), STEPS)
    lacks = missing(outcome, program)
    if lacks:
        print(outcome.log, file=sys.stderr)
    return record | {
        "word": word_of(outcome, lacks),
        "compared": outcome.compared,
        "counted": outcome.counted,
        "iterations": outcome.iterations,
    }


def answers(path: pathlib.Path | None) -> dict[str, str]:
    """By program, of those whose results are there: "3 of 4"."""
    if path is None or not path.is_file():
        return {}
    sys.path.insert(0, str(JOBS))
    from judge import BROKEN, RIGHT, judge

    latest = {}
    for line in path.read_text().splitlines():
        record = json.loads(line)
        latest[(record["program"], record["fault"], record["strength"])] = record
    counts: dict[str, list[int]] = {}
    for (name, fault, _), record in latest.items():
        judgment = judge(record)
        if fault != "none" and judgment.required and judgment.word != BROKEN:
            count = counts.setdefault(name, [0, 0])
            count[0] += judgment.word == RIGHT
            count[1] += 1
    return {name: f"{right} of {tried}" for name, (right, tried) in counts.items()}


def title_of(program: Program) -> str:
    text = (JOBS / "jobs" / program.file).read_text()
    return text.split('"""')[1].splitlines()[0].rstrip(".")


def row(program: Program, record: dict[str, Any], faults: dict[str, str]) -> str:
    counted = f"{record['counted']} of {record['iterations']}" if record.get("counted") else ""
    cells = (
        f"`{program.name}`",
        title_of(program),
        program.ranks,
        record["framework"],
        record["word"],
        record.get("compared") or "",
        counted,
        faults.get(program.name, ""),
        record["date"],
    )
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def page(records: dict[str, dict[str, Any]], faults: dict[str, str]) -> str:
    names = ("program", "what it is", "ranks", "framework", "PerfTracker", "same weights")
    names += ("iterations", "faults", "date")
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    blank = {"framework": "", "word": "not tried", "date": ""}
    for program in BY_NAME.values():
        lines.append(row(program, records.get(program.name, blank), faults))
    used = sorted({record["torch"] for record in records.values()})
    text = HEAD.format(learning=LEARNING) + "\n".join(lines) + "\n" + COUNTED + FAULTS
    return text + f"torch: {', '.join(used)}.\n"


def latest(path: pathlib.Path) -> dict[str, dict[str, Any]]:
    lines = path.read_text().splitlines() if path.is_file() else []
    return {record["program"]: record for record in map(json.loads, lines)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=str(ROOT / ".venv/bin/python"), help="has frameworks")
    parser.add_argument("--programs", help="names, comma-separated; without: all")
    parser.add_argument("--results", type=pathlib.Path, help="of bench/live_jobs")
    parser.add_argument("--render", action="store_true", help="run nothing, write the page")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "out" / "frameworks.jsonl")
    options = parser.parse_args()
    names = options.programs.split(",") if options.programs else list(BY_NAME)
    torch = versions(options.python, ["torch"])["torch"]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for name in () if options.render else names:
        record = measure(BY_NAME[name], options.python, torch)
        print(f"{name}: {record['word']} {record.get('counted', '')}", flush=True)
        with options.out.open("a") as file:
            file.write(json.dumps(record) + "\n")
    PAGE.write_text(page(latest(options.out), answers(options.results)))
    print(f"{PAGE} written, by {PROGRAM}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
