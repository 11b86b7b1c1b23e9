# SPDX-License-Identifier: Apache-2.0
"""Measures how often `analyze` names the rank of a job that hangs, on simulated dumps.

    .venv/bin/python bench/scoreboard/hangs.py             # 1,900 jobs, with odd seeds
    .venv/bin/python bench/scoreboard/hangs.py --set tune  # even seeds: to look for errors

PyTorch's analyser (torch.distributed.flight_recorder) reads the same flight recorders, if the
Python that runs this has it.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import json
import logging
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Any, NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench" / "common"))

from reports import rank_set  # noqa: E402
from text import text_table  # noqa: E402

DUMPS = ("recorder", "recorder,stacks", "recorder,py-spy", "stacks", "py-spy")
SIZES = (2, 4, 8, 16, 64)
WORDS = ("right", "rank only", "wrong", "abstained")


class Said(NamedTuple):
    word: str
    text: str


class Row(NamedTuple):
    scenario: str
    dumps: str
    workers: int
    seed: int
    truth: dict[str, Any]
    ours: Said
    torch: Said | None


def call(program: str, *words: object) -> str:
    environment = {**os.environ, "PERFTRACKER_STORE": "none"}
    return subprocess.run(
        [program, *map(str, words)], check=True, capture_output=True, text=True, env=environment
    ).stdout


def judge_ranks(truth: dict[str, Any], accused: set[int]) -> str:
    """Of any method: "right", "wrong" or "abstained"."""
    rank = truth["rank"]
    if not accused:
        return "abstained" if truth["knowable"] else "right"
    if rank is None or rank not in accused:
        return "wrong"
    both = truth["pair"] and len(accused) == 2  # nothing tells which of them is wrong
    return "right" if len(accused) == 1 or both else "wrong"


def judge_ours(truth: dict[str, Any], report: dict[str, Any]) -> Said:
    findings = report["findings"]
    accused: set[int] = set().union(*(rank_set(one["ranks"]) for one in findings))
    said = "; ".join(
        f"{o['id']} {o['cause']} {o['ranks']} {o['function']['name']}" for o in findings
    )
    word = judge_ranks(truth, accused)
    if word == "right" and findings:
        first = findings[0]
        place = " ".join([first["function"]["name"], *first["function"]["stack"]])
        place += " ".join(first["evidence"])
        if first["cause"] not in truth["causes_accepted"] or truth["function"] not in place:
            word = "rank only"
    return Said(word, said or report["reason"])


def ask_torch(folder: pathlib.Path) -> set[int] | None:
    """The ranks that PyTorch's analyser names first; None: it fails."""
    from torch.distributed.flight_recorder import fr_trace

    out = io.StringIO()
    handler = logging.StreamHandler(out)
    logger = logging.getLogger("Flight Recorder")
    logger.handlers.clear()
    logger.addHandler(handler)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            fr_trace.main(["--prefix", "nccl_trace_rank_", str(folder)])
    except BaseException as error:  # its own checks are assertions
        missing = re.search(r"Missing dump files from ranks \{([\d, ]+)\}", str(error))
        return {int(one) for one in missing[1].split(",")} if missing else None
    finally:
        logger.removeHandler(handler)
    return ranks_torch_names(out.getvalue())


def ranks_torch_names(text: str) -> set[int]:
    """Of its first error: the missing ranks, or those with "Culprit rank"."""
    found = re.search(r"missing ranks: \{([\d, ]+)\}|error msg: (.*)", text)
    if found is None:
        return set()
    if found[2] is not None:
        return {int(one) for one in re.findall(r"Culprit rank (\d+)", found[2])}
    return {int(one) for one in found[1].split(",")}


def judge_torch(truth: dict[str, Any], folder: pathlib.Path) -> Said | None:
    accused = ask_torch(folder)
    if accused is None:
        return Said("failed", "")
    return Said(judge_ranks(truth, accused), str(sorted(accused)))


def play(
    options: argparse.Namespace, scenario: str, dumps: str, workers: int, seed: int, torch: bool
) -> Row:
    with tempfile.TemporaryDirectory(prefix="hangs-") as name:
        call(
            options.simulator, "simulate", "-s", scenario, "--workers", workers, "--seed", seed,
            "--dumps", dumps, "-o", name,
        )  # fmt: skip
        folder = pathlib.Path(name)
        truth = json.loads((folder / "truth.json").read_text())
        (folder / "truth.json").unlink()  # earlier versions of analyze would take it for a trace
        report = json.loads(call(options.program, "analyze", "--format", "json", name))
        theirs = judge_torch(truth, folder) if torch and dumps == "recorder" else None
    return Row(scenario, dumps, workers, seed, truth, judge_ours(truth, report), theirs)


def count(rows: list[Row]) -> list[int]:
    words = collections.Counter(row.ours.word for row in rows)
    return [words[word] for word in WORDS]


def by_key(rows: list[Row], head: str, key) -> str:
    groups: dict[Any, list[Row]] = collections.defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    lines: list[tuple[object, ...]] = [(head, "jobs", *WORDS)]
    lines += [(name, len(group), *count(group)) for name, group in groups.items()]
    return text_table([*lines, ("all", len(rows), *count(rows))])


def beside_torch(rows: list[Row]) -> str:
    """Of the jobs with flight recorders alone."""
    both = [row for row in rows if row.torch is not None]
    words = ("right", "wrong", "abstained", "failed")
    groups: dict[str, list[Row]] = collections.defaultdict(list)
    for row in both:
        groups[row.scenario].append(row)
    lines: list[tuple[object, ...]] = [
        ("hang", "jobs", *(f"PerfTracker {w}" for w in words[:3]), *(f"torch {w}" for w in words))
    ]
    for name, group in [*groups.items(), ("all", both)]:
        ours = collections.Counter(row.ours.word.replace("rank only", "right") for row in group)
        theirs = collections.Counter(row.torch.word for row in group if row.torch)
        lines.append((name, len(group), *(ours[w] for w in words[:3]), *(theirs[w] for w in words)))
    return text_table(lines)


def errors(rows: list[Row], limit: int) -> str:
    lines = []
    for row in [r for r in rows if r.ours.word in ("wrong", "rank only", "abstained")][:limit]:
        words = f"-s {row.scenario} --workers {row.workers} --seed {row.seed} --dumps {row.dumps}"
        lines.append(f"{row.ours.word}: {words}\n    rank {row.truth['rank']}: {row.ours.text}")
    return "\n".join(lines)


def scenarios(program: str) -> list[str]:
    every = json.loads(call(program, "simulate", "--list", "--format", "json"))
    return [one["name"] for one in every if "dumps" in one]


def has_torch() -> bool:
    try:
        import torch.distributed.flight_recorder.fr_trace  # noqa: F401
    except ImportError:
        return False
    return True


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=("judge", "tune"), default="judge", help="which seeds")
    parser.add_argument("--seeds", type=int, default=4, help="jobs of a kind, size and dumps")
    parser.add_argument("--first-seed", type=int, help="of the seeds, which go up by 2")
    parser.add_argument("--scenarios", help="comma-separated (default: all)")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="workers")
    parser.add_argument("--no-torch", action="store_true", help="without PyTorch's analyser")
    parser.add_argument("--errors", type=int, default=0, help="print so many errors")
    parser.add_argument("--program", default=str(ROOT / "build/src/cmd/perftracker"))
    parser.add_argument("--simulator", help="the perftracker that makes the jobs (the same)")
    options = parser.parse_args()
    options.simulator = options.simulator or options.program
    return options


def main() -> int:
    options = parse()
    chosen = options.scenarios.split(",") if options.scenarios else scenarios(options.simulator)
    torch = not options.no_torch and has_torch()
    first = options.first_seed or 2 + (options.set == "judge")
    seeds = [first + 2 * i for i in range(options.seeds)]
    rows = [
        play(options, name, dumps, workers, seed, torch)
        for name in chosen
        for dumps in DUMPS
        for workers in map(int, options.sizes.split(","))
        for seed in seeds
    ]
    print(by_key(rows, "hang", lambda row: row.scenario), "\n")
    print(by_key(rows, "dumps", lambda row: row.dumps), "\n")
    print(by_key(rows, "workers", lambda row: row.workers), "\n")
    if torch:
        print(beside_torch(rows), "\n")
    print(errors(rows, options.errors))
    return 0


if __name__ == "__main__":
    sys.exit(main())
