# SPDX-License-Identifier: Apache-2.0
"""Measures how often reports are right, on simulated jobs whose truth is known.

    .venv/bin/python bench/scoreboard            # some hundred jobs, with odd seeds
    .venv/bin/python bench/scoreboard --quick    # two minutes
    .venv/bin/python bench/scoreboard --set tune # even seeds: to look for errors

Other methods look at the same jobs: the paper's equations 6 to 11 alone, NVIDIA's
straggler scores, the modified z-score, DBSCAN; and on real traces the tools that read
them. docs/scoreboard.md says how to read the tables.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import jobs  # noqa: E402
import judge  # noqa: E402
import patterns  # noqa: E402
import peers_nvidia  # noqa: E402
import peers_outliers  # noqa: E402
import peers_paper  # noqa: E402
import table  # noqa: E402

STRENGTHS = (0.125, 0.25, 0.5, 1.0, 2.0)


def truth_line(truth: dict) -> str:
    faults = (
        f"{fault['cause']} on {fault['ranks']} ({fault['gain_pct']:.1f} %)"
        for fault in truth["faults"]
    )
    return "; ".join(faults) or "healthy"


def judge_job(job: jobs.Job, before: patterns.Patterns) -> dict[str, judge.Judgement]:
    seen = patterns.read(job.fingerprints)
    said = {
        table.OURS: judge.findings_of(job.report),
        "paper alone": peers_paper.find(seen),
        "NVIDIA relative": peers_nvidia.find_relative(seen),
        "NVIDIA individual": peers_nvidia.find_individual(seen, before),
        "median/MAD": peers_outliers.find_mad(seen),
        "DBSCAN": peers_outliers.find_dbscan(seen),
    }
    return {method: judge.judge(job.truth, findings) for method, findings in said.items()}


def play_family(program: str, family: jobs.Family) -> list[table.Row]:
    """All strengths of a job; what it was before the fault comes first."""
    rows, before = [], None
    for strength in (0.0, *family.strengths):
        with tempfile.TemporaryDirectory(prefix="scoreboard-") as folder:
            job = jobs.play(program, family, strength, pathlib.Path(folder) / "job")
        before = before or patterns.read(job.fingerprints)
        if strength > 0:
            rows.append(
                table.Row(
                    fault=family.scenario,
                    layout=family.layout,
                    workers=job.truth["workers"],
                    level=family.level,
                    strength=strength,
                    seed=family.seed,
                    cost_pct=max((f["alone_pct"] for f in job.truth["faults"]), default=0.0),
                    truth=truth_line(job.truth),
                    judged=judge_job(job, before),
                )
            )
    return rows


def choose(options: argparse.Namespace) -> list[jobs.Family]:
    every = jobs.list_scenarios(options.program)
    wanted = options.faults.split(",") if options.faults else None
    known = [one for one in every if one["name"] not in jobs.CASES]
    known = [one for one in known if wanted is None or one["name"] in wanted]
    hurt = [one["name"] for one in known if one["faults"]]
    well = [one["name"] for one in known if not one["faults"]]
    sizes = [int(size) for size in options.sizes.split(",")]
    per_cell = options.jobs_per_cell
    chosen = jobs.families(options.set, hurt, sizes, STRENGTHS, per_cell)
    chosen += jobs.families(options.set, well, sizes, (1.0,), options.healthy_per_cell)
    chosen += jobs.families(options.set, hurt, [8], (1.0,), options.event_jobs, "events")
    chosen += jobs.families(options.set, well, [8], (1.0,), options.event_jobs, "events")
    for case in () if options.no_cases else jobs.CASES:
        if wanted is None or case in wanted:
            chosen += jobs.families(options.set, [case], [0], (1.0,), 1)
    return chosen


def play_all(options: argparse.Namespace, chosen: list[jobs.Family]) -> list[table.Row]:
    rows: list[table.Row] = []
    begin_s = time.monotonic()
    with concurrent.futures.ProcessPoolExecutor(
        options.jobs, initializer=os.nice, initargs=(19,)
    ) as pool:
        waiting = [pool.submit(play_family, options.program, one) for one in chosen]
        for number, done in enumerate(concurrent.futures.as_completed(waiting), 1):
            rows += done.result()
            if number % 20 == 0 or number == len(waiting):
                spent_s = time.monotonic() - begin_s
                print(f"{number} of {len(waiting)} in {spent_s:.0f} s", file=sys.stderr, flush=True)
    order = {family.scenario: place for place, family in enumerate(chosen)}
    return sorted(rows, key=lambda row: (order[row.fault], row.strength, row.workers, row.seed))


def render(rows: list[table.Row]) -> list[tuple[str, str]]:
    small = [row for row in rows if row.fault not in jobs.CASES]
    named = [row for row in rows if row.fault in jobs.CASES]
    parts = [
        ("All methods, faults as strong as the sources report", table.overview(small)),
        (
            "First finding right, faults as strong as the sources report",
            table.by_method(small, table.top1_at_source),
        ),
        (
            "Smallest strength still found, and what it costs there",
            table.by_method(small, table.smallest_found),
        ),
        ("Healthy jobs accused", table.alarms(small)),
        ("PerfTracker by fault and strength", table.by_fault(small)),
    ]
    if named:
        parts.append(("The sources' cases: problems found", table.cases(named)))
    return [(title, text) for title, text in parts if text]


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=jobs.SETS, default="judge", help="which seeds")
    parser.add_argument("--jobs-per-cell", type=int, default=8, help="of a fault and size")
    parser.add_argument("--healthy-per-cell", type=int, default=16)
    parser.add_argument("--event-jobs", type=int, default=2, help="as traces, of a fault")
    parser.add_argument("--faults", help="scenarios, comma-separated (default: all)")
    parser.add_argument("--sizes", default="8,16,64,512", help="workers")
    parser.add_argument("--quick", action="store_true", help="a small part of everything")
    parser.add_argument("--no-cases", action="store_true", help="without the large named cases")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--program", default=str(jobs.ROOT / "build/src/cmd/perftracker"))
    parser.add_argument("--out", type=pathlib.Path, default=jobs.ROOT / "out" / "scoreboard")
    options = parser.parse_args(arguments)
    if options.quick:
        options.jobs_per_cell, options.healthy_per_cell, options.event_jobs = 2, 2, 0
        options.sizes, options.no_cases = "8,64", True
    return options


def main() -> int:
    options = parse()
    rows = play_all(options, choose(options))
    text = "\n\n".join(f"## {title}\n\n{part}" for title, part in render(rows))
    print(text)
    print(f"\n## Where we are wrong\n\n{table.errors(rows)}")
    options.out.mkdir(parents=True, exist_ok=True)
    plain = [
        {**row._asdict(), "judged": {m: j._asdict() for m, j in row.judged.items()}} for row in rows
    ]
    (options.out / "result.json").write_text(json.dumps(plain, indent=1) + "\n")
    print(f"\neach job is in {options.out / 'result.json'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
