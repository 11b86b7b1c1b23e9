# SPDX-License-Identifier: Apache-2.0
"""Analyzes parts, doubles and mixtures of the real sets of traces and judges each answer.

Usage: python3 tests/traces/survey.py [--verbose]

The table has a row for each way to change a set and a column for each judgment. "healthy" counts
only answers that overlook a fault; "wrong" counts accused ranks that are innocent, and sets of
several jobs that were not refused. survey_test.py holds the limits.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import itertools
import json
import pathlib
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator

import real

# The rank at fault, from the README of the traces; None: the job is healthy.
CULPRITS = {
    "dlrm4_sleep_1s": 2,
    "dlrm4_sleep_20ms": 2,
    "dlrm8": 7,
    "megatron_tp2": 0,
    "resnet18_ddp2": None,
}
JUDGMENTS = ("right", "inconclusive", "incomplete", "healthy", "wrong")


@dataclasses.dataclass(frozen=True)
class Case:
    """words: what analyze gets; culprit: the rank at fault; absent: its file is not there."""

    way: str
    name: str
    words: tuple[str | pathlib.Path, ...]
    culprit: int | None
    absent: bool = False
    mixed: bool = False


def subsets() -> Iterator[Case]:
    for name, culprit in CULPRITS.items():
        paths = real.ranks_of(name)
        for out in (1, 2, 3):
            for left in itertools.combinations(range(len(paths)), out):
                words = tuple(p for i, p in enumerate(paths) if i not in left)
                if words:
                    what = f"{name} without {','.join(map(str, left))}"
                    yield Case(f"{out} left out", what, words, culprit, culprit in left)


def chosen() -> Iterator[Case]:
    """All files, but one rank left out by --ranks."""
    for name, culprit in CULPRITS.items():
        paths = real.ranks_of(name)
        for out in range(len(paths)):
            ranks = ",".join(str(r) for r in range(len(paths)) if r != out)
            words = (f"--ranks={ranks}", *paths)
            yield Case("1 not chosen", f"{name} {words[0]}", words, culprit, out == culprit)


def steps_of(trace: real.Trace) -> list[int]:
    names = (str(e.get("name", "")) for e in trace["traceEvents"])
    return sorted({int(n.split("#")[1]) for n in names if n.startswith("ProfilerStep#")})


def windows() -> Iterator[Case]:
    for name, culprit in CULPRITS.items():
        paths = real.ranks_of(name)
        steps = steps_of(real.read(paths[0]))
        for length in (1, 2, 3):
            for first in steps[: max(0, len(steps) - length + 1)]:
                chosen = f"--steps={first}-{first + length - 1}"
                yield Case(
                    f"{length} step{'s'[: length - 1]}",
                    f"{name} {chosen}",
                    (chosen, *paths),
                    culprit,
                )


def drop_step(trace: real.Trace, step: int) -> None:
    """Drops what began in the step, and the step."""
    spans = [
        e
        for e in trace["traceEvents"]
        if e.get("name") == f"ProfilerStep#{step}" and e.get("cat") == "user_annotation"
    ]
    begin, end = float(spans[0]["ts"]), float(spans[0]["ts"]) + float(spans[0]["dur"])
    trace["traceEvents"] = [
        e for e in trace["traceEvents"] if "ts" not in e or not begin <= float(e["ts"]) < end
    ]


def unequal(folder: pathlib.Path) -> Iterator[Case]:
    """One rank lacks its first or its last step."""
    for name, culprit in CULPRITS.items():
        paths = real.ranks_of(name)
        steps = steps_of(real.read(paths[0]))
        if len(steps) < 2:
            continue
        for rank, step in itertools.product(range(len(paths)), (steps[0], steps[-1])):
            trace = real.read(paths[rank])
            drop_step(trace, step)
            cut = folder / f"{name}_{rank}_{step}_{paths[rank].name.removesuffix('.gz')}"
            real.write(cut, trace)
            words = tuple(cut if i == rank else p for i, p in enumerate(paths))
            yield Case("a step lost", f"{name} rank {rank} without step {step}", words, culprit)


def doubles(folder: pathlib.Path) -> Iterator[Case]:
    """One file twice, under another name."""
    for name, culprit in CULPRITS.items():
        for rank, path in enumerate(real.ranks_of(name)):
            into = folder / f"{name}_{rank}"
            shutil.copytree(path.parent, into)
            shutil.copy(path, into / f"a_copy_of_{path.name}")
            yield Case("a copy", f"{name} with rank {rank} twice", (into,), culprit)


def clocks_off(folder: pathlib.Path) -> Iterator[Case]:
    """Each rank's clock is ahead of the one before, by less and by more than a window."""
    for name, culprit in CULPRITS.items():
        for seconds in (0.02, 7):
            into = folder / f"{name}_off_{seconds}"
            into.mkdir()
            real.copy_set(
                name, into, lambda rank, trace, s=seconds: real.move(trace, rank * s * 1e6)
            )
            yield Case("clocks off", f"{name}, clocks off by {seconds} s", (into,), culprit)


def mixtures(folder: pathlib.Path) -> Iterator[Case]:
    """The first ranks of a set with the last ones of another; two whole sets."""
    for one, other in itertools.permutations(CULPRITS, 2):
        ours, theirs = real.ranks_of(one), real.ranks_of(other)
        for cut in range(1, min(len(ours), len(theirs))):
            into = folder / f"{one}_{cut}_{other}"
            into.mkdir()
            for path in (*ours[:cut], *theirs[cut:]):
                shutil.copy(path, into / path.name)
            yield Case("two jobs", f"{one} up to {cut}, {other}", (into,), None, mixed=True)
        if one < other:
            words = (*ours, *theirs)
            yield Case("two whole jobs", f"{one} and {other}", words, None, mixed=True)


def accused(report: dict) -> set[str]:
    """Only what is not weak evidence: the verdict says so of the rest."""
    return {
        f["ranks"] for f in report["findings"] if f["scope"] == "some" and f["confidence"] != "low"
    }


def judge(case: Case) -> tuple[str, str]:
    """The judgment, and the answer in a line."""
    done = real.call("analyze", "--format", "json", *case.words)
    if case.mixed:
        refused = done.returncode == 1 and not done.stdout and "set 2" in done.stderr
        return ("right" if refused else "wrong"), (done.stderr or done.stdout)[:200]
    if done.returncode:
        # Few collectives cannot show that files of different times are one job.
        refused = case.way == "clocks off" and "cannot be compared" in done.stderr
        return ("inconclusive" if refused else "wrong"), done.stderr
    report = json.loads(done.stdout)
    verdict, guilty = report["verdict"], accused(report)
    answer = f"{verdict}: {report['reason']}"
    if guilty - {str(case.culprit)} or (case.absent and guilty):
        return "wrong", answer
    # No rank is late, but all have a fault: also of a job with a late rank that was overlooked.
    if verdict == "abnormal" and not guilty:
        alone = {f["ranks"] for f in report["findings"]} == {str(case.culprit)}
        return ("right" if case.culprit is None or alone else "healthy"), answer
    if verdict == "abnormal":
        return ("right" if str(case.culprit) in guilty else "wrong"), answer
    if verdict == "healthy":
        return ("right" if case.culprit is None else "healthy"), answer
    return verdict, answer


def all_cases(folder: pathlib.Path) -> Iterable[Case]:
    return itertools.chain(
        subsets(),
        chosen(),
        windows(),
        unequal(folder),
        doubles(folder),
        clocks_off(folder),
        mixtures(folder),
    )


Row = list[tuple[Case, str, str]]


def survey() -> dict[str, Row]:
    """By way: the cases with their judgments."""
    table: dict[str, Row] = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as scratch:
        for case in all_cases(pathlib.Path(scratch)):
            table[case.way].append((case, *judge(case)))
    return table


def print_table(table: dict[str, Row], verbose: bool) -> None:
    print(f"{'':16}" + "".join(f"{j:>14}" for j in JUDGMENTS))
    for way, row in table.items():
        counts = collections.Counter(judgment for _, judgment, _ in row)
        print(f"{way:16}" + "".join(f"{counts[j]:>14}" for j in JUDGMENTS))
    for case, judgment, answer in itertools.chain.from_iterable(table.values()):
        if verbose or judgment in ("healthy", "wrong"):
            print(f"{judgment:13} {case.name}: {answer.strip()}")


if __name__ == "__main__":
    real.skip_without_traces()
    with contextlib.suppress(BrokenPipeError):
        print_table(survey(), "--verbose" in sys.argv[1:])
