# SPDX-License-Identifier: Apache-2.0
"""Jobs with a known truth: their families, their seeds and their reports.

A family is one job at several strengths of its fault: same seed, same layout, same
workers hit. Families of the tuning set have even seeds, those of the judging set odd
ones: development uses the tuning set, the tables show the judging set.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import zlib
from typing import Any, NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
SETS = {"tune": 0, "judge": 1}
# Seeds are made from the names under which the published scores were measured.
SEED_NAMES = {"neighbor": "neighbour"}

# Faults are put into these layouts too, where there are workers enough for them.
LAYOUTS = ("", "healthy-megatron", "healthy-pipeline", "healthy-expert")
LAYOUT_WORKERS = 32

# The jobs of the sources run at the size that the sources give.
CASES = ("C1P1", "C1P2", "C1", "C2P1", "C2P2", "C2P3", "C2", "EROICA")


class Family(NamedTuple):
    scenario: str  # as `simulate --list` has it
    layout: str  # a scenario whose layout replaces its own; empty: its own
    workers: int  # 0: as the scenario has
    level: str  # "fingerprints" or "events"
    strengths: tuple[float, ...]
    seed: int

    @property
    def name(self) -> str:
        return f"{self.layout}+{self.scenario}" if self.layout else self.scenario


class Job(NamedTuple):
    truth: dict[str, Any]
    report: dict[str, Any]
    fingerprints: list[dict[str, Any]]  # of `dump --format json`, by rank; empty: PerfTracker only


def seed_of(which: str, scenario: str, workers: int, number: int) -> int:
    """The same for all strengths; odd or even as the set wants."""
    name = SEED_NAMES.get(scenario, scenario)
    mixed = zlib.crc32(f"{name}/{workers}/{number}".encode())
    return 2 * (mixed % 10**6) + SETS[which]


def families(
    which: str,
    scenarios: list[str],
    sizes: list[int],
    strengths: tuple[float, ...],
    per_cell: int,
    level: str = "fingerprints",
) -> list[Family]:
    """Largest jobs last; of sizes above 100 a quarter as many."""
    made = []
    for workers in sorted(sizes):
        count = per_cell if workers <= 100 else max(1, per_cell // 4)
        for scenario in scenarios:
            for number in range(count):
                rotate = workers >= LAYOUT_WORKERS and not scenario.startswith("healthy")
                layout = LAYOUTS[number % len(LAYOUTS)] if rotate else ""
                seed = seed_of(which, scenario, workers, number)
                made.append(Family(scenario, layout, workers, level, strengths, seed))
    return made


def call(program: str, *args: str) -> bytes:
    return subprocess.run([program, *args], check=True, stdout=subprocess.PIPE).stdout


def list_scenarios(program: str) -> list[dict[str, Any]]:
    every = json.loads(call(program, "simulate", "--list", "--format", "json"))
    return [one for one in every if "dumps" not in one]  # hangs.py plays the others


def read_fingerprints(program: str, folder: pathlib.Path) -> list[dict[str, Any]]:
    """Input of the other methods: the numbers of each function on each worker."""
    loop = 'program=$1; shift; for file; do "$program" dump -n 0 -f json "$file" || exit; done'
    paths = sorted(map(str, [*folder.glob("*.ptfp"), *folder.glob("*.json.gz")]))
    text = call("sh", "-c", loop, "sh", program, *paths).decode()
    decoder, place, found = json.JSONDecoder(), 0, []
    while place < len(text.rstrip()):
        one, place = decoder.raw_decode(text, place)
        found.append(one)
        place += len(text[place:]) - len(text[place:].lstrip())
    return sorted(found, key=lambda one: one["rank"])


def simulate(
    program: str, family: Family, strength: float, folder: pathlib.Path, *more: str
) -> None:
    options = ["--scenario", family.name, "--seed", str(family.seed), "--level", family.level]
    options += ["--workers", str(family.workers)] if family.workers else []
    call(program, "simulate", *options, "--strength", str(strength), *more, "-o", str(folder))


def play(
    program: str, family: Family, strength: float, folder: pathlib.Path, ours_only: bool
) -> Job:
    """Simulates a job into an empty folder and analyzes it; without what others look at."""
    simulate(program, family, strength, folder)
    verb = "analyze" if family.level == "events" else "localize"
    report = json.loads(call(program, verb, "--format", "json", "--jobs", "1", str(folder)))
    truth = json.loads((folder / "truth.json").read_text())
    return Job(truth, report, [] if ours_only else read_fingerprints(program, folder))


def play_before(program: str, family: Family, folder: pathlib.Path) -> list[dict[str, Any]]:
    """Fingerprints of the same job without the fault, over a longer window."""
    simulate(program, family, 0.0, folder, "--iterations", "10")
    return read_fingerprints(program, folder)
