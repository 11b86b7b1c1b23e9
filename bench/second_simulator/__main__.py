# SPDX-License-Identifier: Apache-2.0
"""Judges PerfTracker on jobs of a second, independent simulator.

    .venv/bin/python bench/second_simulator --seeds 1-41 --set odd
    .venv/bin/python bench/second_simulator --seeds 8 --scenarios nic --store jobs -v

Even seeds are for looking for errors, odd seeds for judging; see README.md.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import pathlib
import pickle
import random
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from faults import SCENARIOS, Fault  # noqa: E402
from kineto import write  # noqa: E402
from program import Played, play  # noqa: E402
from spec import Spec, draw  # noqa: E402
from verdicts import Verdict, judge  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRIES = 500
COLUMNS = [
    "jobs",
    "first",
    "any",
    "wrong_rank",
    "false",
    "findings",
    "by_design",
    "false_healthy",
    "gain_error",
]


def draw_spec(scenario: str, seed: int) -> tuple[Spec, random.Random]:
    """The first spec of the seed's sequence that the scenario fits."""
    dice = random.Random(f"{scenario}/{seed}")
    wanted = SCENARIOS[scenario]
    for _ in range(TRIES):
        spec = draw(seed, dice.choice(wanted.kinds), dice)
        if wanted.fits(spec):
            return spec, dice
    raise RuntimeError(f"no job fits {scenario}")


def make_job(scenario: str, seed: int) -> tuple[Played, float]:
    """A job and what its fault costs, in percent of an iteration: 0 where it is healthy."""
    spec, dice = draw_spec(scenario, seed)
    whole = play(spec, Fault()).iteration_us
    fault = SCENARIOS[scenario].make(spec, dice, whole)
    played = play(spec, fault)
    if not fault.truths:
        return played, 0.0
    if fault.cured:
        whole = play(spec, Fault(**fault.cured)).iteration_us
    return played, 100 * (1 - whole / played.iteration_us)


def analyze(program: str, folder: pathlib.Path) -> dict:
    command = [program, "analyze", "--format", "json", "--jobs", "1", str(folder)]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode == 0:
        return json.loads(done.stdout)
    return {"verdict": "refused", "reason": done.stderr.decode(), "findings": []}


def store_job(scenario: str, seed: int, folder: pathlib.Path) -> dict:
    """Simulates the job unless the folder has it; returns its truth and what it was made of."""
    stored = folder.with_suffix(".pickle")
    if stored.exists():
        return pickle.loads(stored.read_bytes())
    folder.mkdir(parents=True, exist_ok=True)
    played, cost_pct = make_job(scenario, seed)
    write(played, folder)
    job = {"spec": played.spec, "fault": played.fault, "cost_pct": cost_pct}
    stored.write_bytes(pickle.dumps(job))
    return job


def run_job(program: str, scenario: str, seed: int, store: pathlib.Path | None) -> Verdict:
    with tempfile.TemporaryDirectory(prefix="second-simulator-") as temporary:
        folder = (store or pathlib.Path(temporary)) / f"{scenario}-{seed}"
        job = store_job(scenario, seed, folder)
        report = analyze(program, folder)
    uneven_inputs = job["spec"].tokens_jitter > 0
    return judge(scenario, seed, job["fault"], job["cost_pct"], report, uneven_inputs)


def sum_up(verdicts: list[Verdict]) -> dict[str, float | None]:
    must = [one for one in verdicts if one.must_find]
    errors = [one.gain_error for one in must if one.gain_error is not None]
    return {
        "jobs": len(must) or len(verdicts),
        "first": sum(one.first for one in must),
        "any": sum(one.any for one in must),
        "wrong_rank": sum(one.wrong_rank for one in verdicts),
        "false": sum(one.false for one in verdicts),
        "findings": sum(one.findings for one in verdicts),
        "by_design": sum(one.by_design for one in verdicts),
        "false_healthy": sum(one.false_healthy for one in verdicts),
        "gain_error": round(statistics.median(errors), 1) if errors else None,
    }


def table_of(verdicts: list[Verdict]) -> dict[str, dict]:
    rows = {name: [one for one in verdicts if one.scenario == name] for name in SCENARIOS}
    table = {name: sum_up(some) for name, some in rows.items() if some}
    faulty = [one for one in verdicts if one.truth != "healthy"]
    well = [one for one in verdicts if one.truth == "healthy"]
    table["all faults"], table["all healthy"] = sum_up(faulty), sum_up(well)
    return table


def print_table(table: dict[str, dict]) -> None:
    print("| scenario | " + " | ".join(name.replace("_", " ") for name in COLUMNS) + " |")
    print("|---|" + "---:|" * len(COLUMNS))
    for name, row in table.items():
        cells = ["-" if row[key] is None else str(row[key]) for key in COLUMNS]
        print(f"| {name} | " + " | ".join(cells) + " |")
    faults, healthy = table["all faults"], table["all healthy"]
    judged = faults["findings"] + healthy["findings"] - faults["by_design"] - healthy["by_design"]
    false = faults["false"] + healthy["false"]
    print()
    print(f"First finding right: {100 * faults['first'] / max(1, faults['jobs']):.1f} %")
    print(f"Precision of all findings: {100 * (1 - false / max(1, judged)):.1f} %")


def parse_seeds(text: str) -> range:
    """For argparse: "3" or "0-9"."""
    first, dash, last = text.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()):
        raise argparse.ArgumentTypeError(f"expected one seed or A-B, found {text!r}")
    if int(last or first) < int(first):
        raise argparse.ArgumentTypeError(f"expected A-B with A <= B, found {text!r}")
    return range(int(first), int(last or first) + 1)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="second_simulator",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--seeds", type=parse_seeds, default="0-9", metavar="A-B", help="default: 0-9"
    )
    parser.add_argument("--set", default="both", choices=("both", "even", "odd"), help="of seeds")
    parser.add_argument("--scenarios", metavar="LIST", help=f"of {', '.join(SCENARIOS)}")
    parser.add_argument("--program", default=str(ROOT / "build/src/cmd/perftracker"))
    parser.add_argument("--format", default="text", choices=("text", "json"))
    text = "keep the jobs there, and use those that are there"
    parser.add_argument("--store", type=pathlib.Path, metavar="FOLDER", help=text)
    parser.add_argument("--jobs", type=int, default=1, help="at a time")
    parser.add_argument("-v", "--verbose", action="store_true", help="print each wrong answer")
    options = parser.parse_args(arguments)
    options.scenarios = options.scenarios.split(",") if options.scenarios else list(SCENARIOS)
    unknown = [name for name in options.scenarios if name not in SCENARIOS]
    if unknown:
        parser.error(f"unknown scenario {unknown[0]}")
    which = options.set
    options.seeds = [s for s in options.seeds if which == "both" or s % 2 == (which == "odd")]
    if not options.seeds:
        parser.error(f"no {which} seed among those of --seeds")
    return options


def is_good(verdict: Verdict) -> bool:
    if verdict.truth == "healthy":
        return verdict.false == 0
    return (verdict.first or not verdict.must_find) and verdict.false == 0


def main() -> int:
    options = parse()
    verdicts = []
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        waiting = [
            pool.submit(run_job, options.program, scenario, seed, options.store)
            for scenario in options.scenarios
            for seed in options.seeds
        ]
        for done in waiting:
            verdict = done.result()
            verdicts.append(verdict)
            if options.verbose and not is_good(verdict):
                place = f"{verdict.scenario} {verdict.seed}: {verdict.cost_pct:.1f} %"
                print(f"{place} on {verdict.truth}: {verdict.said}", file=sys.stderr, flush=True)
    if options.format == "json":
        rows = [one._asdict() for one in verdicts]
        print(json.dumps({"table": table_of(verdicts), "jobs": rows}))
    else:
        print_table(table_of(verdicts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
