# SPDX-License-Identifier: Apache-2.0
"""Measures how often reports are right, on simulated jobs with a known truth.

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
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import figure  # noqa: E402
import foreign  # noqa: E402
import jobs  # noqa: E402
import judge  # noqa: E402
import table  # noqa: E402

STRENGTHS = (0.125, 0.25, 0.5, 1.0, 2.0)
RESULT = "result.jsonl"


def play_family(program: str, family: jobs.Family, ours_only: bool) -> list[table.Row]:
    """All strengths of a job; others see first what it was before the fault."""
    before = None
    if not ours_only:
        with tempfile.TemporaryDirectory(prefix="scoreboard-") as folder:
            before = jobs.play_before(program, family, pathlib.Path(folder) / "before")
    return [play_row(program, family, strength, before) for strength in family.strengths]


def play_row(
    program: str, family: jobs.Family, strength: float, before: list[dict] | None
) -> table.Row:
    with tempfile.TemporaryDirectory(prefix="scoreboard-") as folder:
        job = jobs.play(program, family, strength, pathlib.Path(folder) / "job", before is None)
    said = {table.OURS: judge.findings_of(job.report)}
    if before:
        import peers  # needs more than the standard library

        said |= peers.find(job.fingerprints, before)
    return table.Row(
        fault=family.scenario,
        layout=family.layout,
        workers=job.truth["workers"],
        level=family.level,
        strength=strength,
        seed=family.seed,
        cost_pct=max((fault["alone_pct"] for fault in job.truth["faults"]), default=0.0),
        truth=judge.describe_truth(job.truth),
        judged={method: judge.judge(job.truth, findings) for method, findings in said.items()},
    )


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
    return sorted(chosen, key=lambda family: family.workers or sys.maxsize)


def play_all(options: argparse.Namespace, chosen: list[jobs.Family]) -> list[table.Row]:
    """Stores each job when it is judged, so that an interrupted run can continue; jobs on which
    perftracker fails are printed and skipped."""
    rows: list[table.Row] = []
    begin_s = time.monotonic()
    pool = concurrent.futures.ProcessPoolExecutor(options.jobs, None, os.nice, (19,))
    with pool, open(options.out / RESULT, "w", buffering=1) as result:
        waiting = [pool.submit(play_family, options.program, one, options.ours) for one in chosen]
        for number, done in enumerate(concurrent.futures.as_completed(waiting), 1):
            try:
                made = done.result()
            except subprocess.CalledProcessError as error:
                print(f"broken: {error}", file=sys.stderr, flush=True)
                continue
            rows += made
            for row in made:
                result.write(json.dumps(plain(row)) + "\n")
            if number % 20 == 0 or number == len(waiting):
                spent_s = time.monotonic() - begin_s
                print(f"{number} of {len(waiting)} in {spent_s:.0f} s", file=sys.stderr, flush=True)
    return rows


def plain(row: table.Row) -> dict:
    return {**row._asdict(), "judged": {m: j._asdict() for m, j in row.judged.items()}}


def read_rows(path: pathlib.Path) -> list[table.Row]:
    rows = []
    for line in path.read_text().splitlines():
        one = json.loads(line)
        judged = {method: judge.Judgment(**said) for method, said in one.pop("judged").items()}
        rows.append(table.Row(**one, judged=judged))
    return rows


def in_order(program: str, rows: list[table.Row]) -> list[table.Row]:
    """As the list of scenarios has them."""
    order = {one["name"]: place for place, one in enumerate(jobs.list_scenarios(program))}
    return sorted(rows, key=lambda row: (order[row.fault], row.strength, row.workers, row.seed))


def render(rows: list[table.Row]) -> list[tuple[str, str]]:
    """Titles and tables."""
    small = [row for row in rows if row.fault not in jobs.CASES]
    named = [row for row in rows if row.fault in jobs.CASES]
    first = table.by_method(small, table.top1_at_source)
    smallest = table.by_method(small, table.smallest_found)
    parts = [
        ("Goals", table.goals(small, named)),
        ("All methods, faults as strong as the sources report", table.overview(small)),
        ("First finding right, faults as strong as the sources report", first),
        ("Smallest strength still found, and what it costs there", smallest),
        ("Healthy jobs accused", table.alarms(small)),
        ("PerfTracker by fault and strength", table.by_fault(small)),
        ("PerfTracker by size and layout", table.by_shape(small)),
    ]
    return parts + ([("The sources' cases: problems found", table.cases(named))] if named else [])


def write_docs(options: argparse.Namespace, rows: list[table.Row], text: str) -> None:
    docs = jobs.ROOT / "docs"
    head = (pathlib.Path(__file__).parent / "head.md").read_text()
    what = f"Set `{options.set}`, {len(rows)} jobs.\n\n"
    page = docs / "scoreboard.md"
    page.write_text(foreign.replace(head + what + text + "\n", foreign.kept(page.read_text())))
    small = [row for row in rows if row.fault not in jobs.CASES]
    (docs / "scoreboard.svg").write_text(figure.draw(small))


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
    parser.add_argument("--ours", action="store_true", help="no other methods: much faster")
    parser.add_argument("--no-real", action="store_true", help="without the real traces")
    parser.add_argument("--docs", action="store_true", help="write docs/scoreboard.md")
    text = "write only the part on jobs of others: results of bench/second_simulator, as JSON"
    parser.add_argument("--foreign", type=pathlib.Path, nargs="+", metavar="FILE", help=text)
    text = "with --foreign: those of bench/live_jobs --analyze-again, as JSON"
    parser.add_argument("--recorded", type=pathlib.Path, metavar="FILE", help=text)
    parser.add_argument("--read", type=pathlib.Path, help="tables of an earlier run's jobs")
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
    if options.foreign:
        page = jobs.ROOT / "docs" / "scoreboard.md"
        part = foreign.section(options.foreign, options.recorded)
        page.write_text(foreign.replace(page.read_text(), part))
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    rows = read_rows(options.read) if options.read else play_all(options, choose(options))
    rows = in_order(options.program, rows)
    parts = render(rows)
    if not (options.no_real or options.ours):
        import real

        parts.append(("Real traces: ranks accused first", real.compare(options.program)))
    text = "\n\n".join(f"## {title}\n\n{part}" for title, part in parts)
    print(text)
    (options.out / "errors.txt").write_text(table.errors(rows) + "\n")
    print(f"\neach job is in {options.read or options.out / RESULT}")
    print(f"errors of perftracker, with commands to repeat the jobs: {options.out / 'errors.txt'}")
    if options.docs:
        write_docs(options, rows, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
