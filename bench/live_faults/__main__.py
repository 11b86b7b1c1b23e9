# SPDX-License-Identifier: Apache-2.0
"""Counts how often the faults of live jobs are found.

    .venv/bin/python bench/live_faults --repeats 5

Each fault of examples/train_ddp.py runs several times under `perftracker run`.
A run is named right when the first finding accuses the right ranks of the right
function or cause; `abstained` when no rank is accused; `none` must stay healthy.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys

import judge
from reports import median

FAULTS = (*judge.ANSWERS, "none")
WORDS = (judge.RIGHT, judge.WRONG, judge.ABSTAINED, judge.FALSE_ALARM, judge.BROKEN)


def table(runs: list[judge.Run]) -> str:
    head = ("fault", "runs", *WORDS, "iteration ms", "report after")
    rows = [head]
    for fault in dict.fromkeys(run.fault for run in runs):
        of_fault = [run for run in runs if run.fault == fault]
        counts = [sum(run.word == word for run in of_fault) for word in WORDS]
        counts[WORDS.index(judge.FALSE_ALARM)] += sum(run.early > 0 for run in of_fault)
        before = median([run.before_ms for run in of_fault])
        after = median([run.after_ms for run in of_fault])
        late = median([run.report_s for run in of_fault if run.report_s and fault != "none"])
        speed = f"{before:.0f} -> {after:.0f}"
        rows.append((fault, len(of_fault), *counts, speed, f"{late:.1f} s" if late else "-"))
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(head))]
    return "\n".join(
        "  ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faults", default=",".join(FAULTS), help="comma-separated")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=pathlib.Path, default=judge.ROOT / "out" / "live_faults")
    options = parser.parse_args()
    runs: list[judge.Run] = []
    for number in range(options.repeats):
        for fault in options.faults.split(","):
            out = (options.out / f"{fault}-{number}").absolute()
            run = judge.run_job(fault, out, (f"--seed={number}",))
            runs.append(run)
            print(f"{fault} {number}: {run.word} ({run.said}) in {run.wall_s:.0f} s", flush=True)
    print(table(runs))
    result = options.out / "result.json"
    result.write_text(json.dumps([run._asdict() for run in runs], indent=1) + "\n")
    print(f"each run is in {result}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
