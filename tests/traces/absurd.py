# SPDX-License-Identifier: Apache-2.0
"""Looks for absurd numbers in reports: of parts and mixtures of real traces, and of simulated jobs.

Usage: python3 tests/traces/absurd.py [--simulated=N] [--no-traces] [--only=WORD]

Each check is of one report, in JSON and as text, and knows nothing of the truth: a number is
absurd by itself or beside another one. absurd_test.py runs a sample.
"""

from __future__ import annotations

import collections
import itertools
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import real
import survey

Report = dict[str, Any]
Check = Callable[[Report, str], Iterator[str]]

ROUNDING_MS = 0.06  # of sentences that have one decimal
SLACK = 1.01

# Phrases that no report may have.
WORDS = {
    r"\b0 of 0\b": "a share of nothing",
    r"\branks? [,:;.]": "ranks without a number",
    r"\(one\)": "all ranks, which are one",
    r"\ball 1 |\ball ranks of 1\b": "all, which are one",
    r"\b\d+\.\d+ iterations?\b": "a part of an iteration",
    r"(?<![\d.])1\.0x": "a slowdown by nothing",
    r"(?<![\d.,-])(?<!rank )1 (ranks|workers|iterations|collectives|places|functions|groups|hosts|"
    r"files|times|steps|findings|samples|events|others|pieces|copies|calls)\b": "one, and a plural",
    r"(?<!\d )(?<!of the )(?<!--)\branks \d+(?![\d,.-])": "ranks, and one number",
    r"\brank \d+[,-]\d": "rank, and several numbers",
    r"\b(nan|-nan|inf|-inf|infinity)\b": "no number",
    r"(?<!\d)-0(\.0+)?(?![\d.])": "minus nothing",
    r"(?<![\d.])0(\.0+)? ms (per|an) iteration \([1-9]": "no time that is a share",
    r"\(null\)|%[a-z]\b|\bNone\b": "a format that was not filled in",
    r"\b(?:late|last|wait up to|cost[s]?(?: the job)?|lose[s]?) (?:by )?0(?:\.0+)? ms": "nothing",
    r"\b(\w{3,}) \1\b": "a word twice",
    r"\d[eE]\+\d": "an exponent",
}
# Words that may stand twice, or are names.
# "job Job": the end of a headline, and the label of the next line; "Host host-0": label and
# name, as "function FUNCTION".
ALLOWED = {
    "a word twice": re.compile(
        r"[_/>#():\"]|\bidle idle\b|\bjob Job\b|\bHost host\b|function FUNCTION"
    )
}


def rank_set(text: str) -> set[int]:
    ranks: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        ranks |= set(range(int(first), int(last or first) + 1))
    return ranks


def workers_of(report: Report) -> set[int]:
    return {w["rank"] for w in report["workers"]}


def sentences(report: Report) -> Iterator[str]:
    """What is said, but for names of functions, which may be anything."""
    yield from [report["reason"], *report["notes"]]
    for finding in report["findings"]:
        yield from [finding["title"], finding["advice"], *finding["evidence"]]


def nameless(report: Report, text: str) -> str:
    """The text with the names of functions taken out: these may be anything."""
    names = {f["name"] for f in report["functions"]} | {f["caller"] for f in report["functions"]}
    for finding in report["findings"]:
        names |= {finding["function"]["name"], *finding["function"]["stack"]}
    names |= {n.removeprefix("idle ").removeprefix("in ") for n in names}
    for name in sorted(filter(lambda n: len(n) > 2, names), key=len, reverse=True):
        text = text.replace(name, "FUNCTION")
    return text


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from numbers(inner, f"{path}[]")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, float(value)


def iteration_ms(report: Report) -> float:
    return report["job"]["iteration_ms"] or 0.0


# --- checks: each yields what is absurd ---


def signs(report: Report, _: str) -> Iterator[str]:
    """Only differences may be negative, and times that are counted from an iteration's begin."""
    for path, value in numbers(report):
        if not math.isfinite(value):
            yield f"{path} is {value}"
        if value < 0 and "delta_ms" not in path and ".lanes" not in path:
            yield f"{path} is {value}"
        if path.endswith("_frac") and value > 1.0005:
            yield f"{path} is {value}"
        if path.endswith("_pct") and value > 100.0005 and ".overhead" not in path:
            yield f"{path} is {value}"


def phrases(report: Report, text: str) -> Iterator[str]:
    for sentence in {*sentences(report), text}:
        plain = nameless(report, sentence)
        for pattern, why in WORDS.items():
            for found in re.finditer(pattern, plain, 0 if "None" in pattern else re.IGNORECASE):
                around = plain[max(0, found.start() - 40) : found.end() + 40]
                close = plain[max(0, found.start() - 1) : found.end() + 1]
                if why not in ALLOWED or not ALLOWED[why].search(close):
                    yield f"{why}: ...{around}..."


def shares(report: Report, _: str) -> Iterator[str]:
    """In sentences: no part is larger than its whole, no percentage beyond 100."""
    for sentence in sentences(report):
        plain = nameless(report, sentence)
        for part, whole in re.findall(r"\b(\d+(?:\.\d+)?) of (\d+(?:\.\d+)?)\b", plain):
            if float(part) > float(whole) + ROUNDING_MS:
                yield f"{part} of {whole}: {plain}"
        for percent in re.findall(r"(\d+(?:\.\d+)?) %", plain):
            if float(percent) > 100:
                yield f"{percent} %: {plain}"


def losses(report: Report, _: str) -> Iterator[str]:
    """'by 4.4 ms per iteration (2.9 %)': within an iteration, and the same twice."""
    length = iteration_ms(report)
    pattern = r"(\d+(?:\.\d+)?) ms (?:per|an) iteration(?: \((\d+(?:\.\d+)?) %\))?"
    for sentence in [report["reason"], *report["notes"]]:
        for ms, percent in re.findall(pattern, nameless(report, sentence)):
            if float(ms) > length * SLACK + 1 and "in the job's past" not in sentence:
                yield f"{ms} ms of {length} ms: {sentence}"
            if percent and abs(float(ms) / length * 100 - float(percent)) > 0.1 + 10 / length:
                yield f"{ms} ms of {length} ms are not {percent} %: {sentence}"


def gains(report: Report, _: str) -> Iterator[str]:
    length, said = iteration_ms(report), report["findings"]
    for f in said:
        gain, percent = f["gain_ms_per_iteration"], f["gain_pct"]
        if gain > length * SLACK:
            yield f"{f['id']} gains {gain} ms of {length} ms"
        if abs(100 * gain / length - percent) > 0.02 * percent + 0.05:
            yield f"{f['id']} gains {gain} ms of {length} ms, which are not {percent} %"
        if gain <= 0:
            yield f"{f['id']} gains nothing"
        if gain > lost_there(report, f) * SLACK + ROUNDING_MS:
            yield (
                f"{f['id']} {f['title']}: gains {gain} ms, but {lost_there(report, f)} ms are lost"
            )
    sure = [f["gain_ms_per_iteration"] for f in said if f["confidence"] != "low"]
    if sure != sorted(sure, reverse=True):
        yield f"not sorted: {sure}"


def lost_there(report: Report, f: dict[str, Any]) -> float:
    """At most: the place's time, the excess there, the waits that it causes, places named."""
    accused = rank_set(f["ranks"])
    waits: dict[int, float] = collections.defaultdict(float)
    for wait in report["waits"]:
        if wait["from"] in accused:
            waits[wait["to"]] += wait["wait_ms"] / max(1.0, report["job"]["iterations"])
    there = [f["time_ms_per_iteration"] or 0, f["delta_ms_per_iteration"] or 0, *waits.values()]
    said = " ".join(f["evidence"])
    there += [float(ms) for ms in re.findall(r"(\d+(?:\.\d+)?) ms per iteration", said)]
    wider = sum(float(ms) for ms in re.findall(r"(\d+(?:\.\d+)?) ms of the gain are in", said))
    return max(there) + wider


def places(report: Report, _: str) -> Iterator[str]:
    """Time and share of a place, and those of its peers, agree."""
    length = iteration_ms(report)
    for f in report["findings"]:
        what = f"{f['id']} {f['title']}"
        time, delta, beta = f["time_ms_per_iteration"], f["delta_ms_per_iteration"], f["beta"]
        if time > length * 1.25 + ROUNDING_MS:
            yield f"{what}: {time} ms in iterations of {length} ms"
        if delta > time + ROUNDING_MS:
            yield f"{what}: {delta} ms more than others makes {time} ms"
        for value in (f["beta"], f["mu"], f["sigma"]):
            if value and not 0 <= value["value"] <= 1.0005:
                yield f"{what}: {value}"
        if beta and beta["value"] > 0.01 and time < 0.1 * beta["value"] * length:
            yield f"{what}: {time} ms, yet {100 * beta['value']:.1f} % of {length} ms"
        for mine, peers in re.findall(
            r"spends (-?[\d.]+) ms per iteration there, its peers (-?[\d.]+) ms",
            " ".join(f["evidence"]),
        ):
            if float(peers) < 0 or float(mine) < 0:
                yield f"{what}: {mine} ms, peers {peers} ms"
            if beta and f["scope"] == "some" and float(peers) > float(mine) and delta > 0:
                yield f"{what}: peers spend more: {mine} ms, {peers} ms"
            if (
                beta
                and beta["reference_kind"] == "peers"
                and float(peers) == 0
                and beta["reference"] > 0.005
            ):
                yield f"{what}: peers 0 ms, yet {100 * beta['reference']:.1f} % of the window"


def victims(report: Report, _: str) -> Iterator[str]:
    known = workers_of(report)
    for f in report["findings"]:
        accused, waiting = rank_set(f["ranks"]), rank_set(f["victim_ranks"])
        if accused & waiting:
            yield f"{f['id']}: {accused & waiting} wait for themselves"
        if not (accused | waiting) <= known:
            yield f"{f['id']}: {(accused | waiting) - known} were not analyzed"
        if len(accused) != f["rank_count"] or not accused:
            yield f"{f['id']}: {f['rank_count']} ranks: {f['ranks']}"
        if (f["scope"] == "all") != (accused == known):
            yield f"{f['id']}: scope {f['scope']}: {f['ranks']}"
        if len(accused) > 1 and re.search(r"\bthis rank's|on that rank\b", f["advice"]):
            yield f"{f['id']}: {len(accused)} ranks, and the advice is for one: {f['advice']}"


def doubles(report: Report, _: str) -> Iterator[str]:
    seen = collections.Counter(
        (f["id"], f["function"]["key"], f["ranks"]) for f in report["findings"]
    )
    for what, count in seen.items():
        if count > 1:
            yield f"{what} is found {count} times"
    for note, count in collections.Counter(report["notes"]).items():
        if count > 1:
            yield f"noted {count} times: {note}"


def windows(report: Report, _: str) -> Iterator[str]:
    job, coverage = report["job"], report["coverage"]
    if not report["workers"]:
        return
    if job["iterations"] < 1 or job["iterations"] != int(job["iterations"]):
        yield f"{job['iterations']} iterations"
    if iteration_ms(report) <= 0:
        yield f"iterations of {iteration_ms(report)} ms"
    missing, known = rank_set(coverage["ranks_missing"]), workers_of(report)
    if missing & known:
        yield f"{missing & known} are missing and analyzed"
    if coverage["workers_analyzed"] != len(known):
        yield f"{coverage['workers_analyzed']} analyzed of {len(known)}"
    if coverage["workers_analyzed"] > coverage["workers_expected"]:
        yield f"{coverage['workers_analyzed']} of {coverage['workers_expected']}"
    for w in report["workers"]:
        total = sum(w["class_frac"].values())
        if abs(total - 1) > 0.002:
            yield f"rank {w['rank']}: classes make {total}"
        if w["window_ms"] <= 0 or any(ms <= 0 for ms in w["iteration_ms"]):
            yield f"rank {w['rank']}: window {w['window_ms']} ms, {w['iteration_ms']}"
        if sum(w["iteration_ms"]) > w["window_ms"] * SLACK:
            yield f"rank {w['rank']}: {w['iteration_ms']} in {w['window_ms']} ms"
    if sum(f["frac"] for f in report["functions"]) > 1.0005:
        yield "functions hold more than the window"


def waits(report: Report, _: str) -> Iterator[str]:
    known, longest = workers_of(report), {}
    for w in report["workers"]:
        longest[w["rank"]] = w["window_ms"]
    for wait in report["waits"]:
        if wait["from"] == wait["to"] or not {wait["from"], wait["to"]} <= known:
            yield f"{wait}"
        elif wait["wait_ms"] > longest[wait["to"]] * SLACK:
            yield f"{wait} in a window of {longest[wait['to']]} ms"
        if wait["collectives"] < 1:
            yield f"{wait}"


def verdicts(report: Report, text: str) -> Iterator[str]:
    verdict, said = report["verdict"], report["findings"]
    sure = [f for f in said if f["confidence"] != "low"]
    if (verdict == "abnormal") != bool(sure) and verdict not in ("slow", "stuck", "failed"):
        yield f"{verdict}, {len(sure)} sure findings"
    if verdict == "healthy":
        if said:
            yield f"healthy, and {len(said)} findings: {said[0]['title']}"
        for note in report["notes"]:
            late = re.search(r"is late by [\d.]+ ms per iteration \(([\d.]+) %\)", note)
            if late and "no function explains it" in note:
                yield f"healthy, yet {note}"
        if report["coverage"]["ranks_missing"] or report["failures"]:
            yield "healthy, but not all was seen"
    if verdict in ("inconclusive", "incomplete") and not re.search(
        r"\b(record|add|choose)\b", report["reason"] + " ".join(report["notes"])
    ):
        yield f"{verdict}, and no word of what to record: {report['reason']}"
    if verdict.upper() not in text and verdict not in ("slow", "failed"):
        yield f"{verdict} is not in the text"


def sames(report: Report, text: str) -> Iterator[str]:
    """The text has the numbers of the JSON."""
    found = re.search(
        r"(?:costs? the job|loses?) (?:at most )?([\d.]+) (ms|s) per iteration \(([\d.]+) %\)", text
    )
    if not report["findings"] or report["verdict"] != "abnormal":
        return
    first = report["findings"][0]
    if not found:
        yield f"no gain in the headline: {text[:200]}"
        return
    ms = float(found[1]) * (1000 if found[2] == "s" else 1)
    if abs(ms - first["gain_ms_per_iteration"]) > 0.01 * ms + 0.005:
        yield f"{ms} ms in the text, {first['gain_ms_per_iteration']} ms in JSON"
    if abs(float(found[3]) - first["gain_pct"]) > 0.06 * first["gain_pct"]:
        yield f"{found[3]} % in the text, {first['gain_pct']} % in JSON"
    if first["scope"] == "some" and first["rank_count"] < 6:
        word = "rank" if first["rank_count"] == 1 else "ranks"
        if f"{word} {first['ranks']} " not in text[:400]:
            yield f"{word} {first['ranks']} is not in the headline: {text[:200]}"


CHECKS: tuple[Check, ...] = (
    signs,
    phrases,
    shares,
    losses,
    gains,
    places,
    victims,
    doubles,
    windows,
    waits,
    verdicts,
    sames,
)


def absurdities(report: Report, text: str) -> list[str]:
    """text: that of the same inputs."""
    lines = (re.sub(r"^ ?\d+  ", "", line) for line in text.splitlines())
    joined = " ".join(" ".join(lines).split())
    return [f"{c.__name__}: {what}" for c in CHECKS for what in c(report, joined)]


# --- what peers spend under any name ---


def spent_ms(source: str, name: str) -> float:
    """Per iteration of the rank in source: in functions of this name, wherever they are called."""
    dump = json.loads(real.call("dump", "--top=0", "--format=json", source).stdout)
    shares = (f["share_ns"] for f in dump["functions"] if name in f["stack"])
    return sum(shares) / 1e6 / max(1, dump["iterations"])


def idle_peers(report: Report) -> Iterator[str]:
    """'Its peers 0.0 ms' of peers that spend time in a function of this name."""
    for f in report["findings"]:
        if f["scope"] == "all" or "its peers 0.0 ms" not in " ".join(f["evidence"]):
            continue
        accused = rank_set(f["ranks"])
        peers = [
            spent_ms(w["source"], f["function"]["name"])
            for w in report["workers"]
            if w["rank"] not in accused and pathlib.Path(w["source"].split("#")[0]).is_file()
        ]
        typical = statistics.median(peers) if peers else 0
        if typical > max(ROUNDING_MS, 0.05 * f["time_ms_per_iteration"]):
            yield f"peers: {f['title']}: peers 0.0 ms, yet {typical} ms under another caller"


# --- cases ---


def look(words: tuple[str | pathlib.Path, ...]) -> list[str]:
    """Absurdities of the report about these inputs; none if they are refused."""
    as_json = real.call("analyze", "--format", "json", *words)
    as_text = real.call("analyze", "--color", "never", "--verbose", *words)
    if as_json.returncode < 0 or "Sanitizer" in as_json.stderr:
        return [f"crash: {as_json.returncode}: {as_json.stderr[-300:]}"]
    if not as_json.stdout:
        return [] if as_json.returncode and as_json.stderr else ["neither report nor error"]
    report = json.loads(as_json.stdout)
    found = absurdities(report, as_text.stdout)
    if all(not str(word).startswith("--") for word in words):
        found += idle_peers(report)
    return found


def trace_cases(folder: pathlib.Path) -> Iterator[tuple[str, tuple[str | pathlib.Path, ...]]]:
    for path in sorted(real.TRACES.rglob("*")):
        if path.is_file() and path.suffix in (".gz", ".json", ".sqlite"):
            yield path.name, (path,)
    for case in survey.all_cases(folder):
        yield case.name, case.words


def scenarios() -> list[str]:
    listed = json.loads(real.call("simulate", "--list", "--format", "json").stdout)
    return [s["name"] for s in listed if "dumps" not in s and s["workers"] <= 64]


def simulated_case(folder: pathlib.Path, number: int) -> tuple[str, pathlib.Path]:
    """The number-th job: all scenarios, then again with other sizes, seeds and strengths."""
    names = scenarios()
    turn, idx = divmod(number, len(names))
    words = [
        f"--scenario={names[idx]}",
        f"--seed={number + 1}",
        f"--workers={(4, 8, 16, 2, 32, 12)[turn % 6]}",
        f"--strength={(1, 0.25, 2, 0.5)[turn % 4]}",
        f"--iterations={(5, 1, 3, 10, 2)[turn % 5]}",
        f"--level={'events' if turn % 8 == 7 else 'fingerprints'}",
    ]
    into = folder / str(number)
    done = real.call("simulate", *words, "-o", into)
    if done.returncode:
        raise AssertionError(f"{words}: {done.stderr}")
    return " ".join(words), into


def simulated_cases(
    folder: pathlib.Path, count: int
) -> Iterator[tuple[str, tuple[str | pathlib.Path, ...]]]:
    for number in range(count):
        name, into = simulated_case(folder, number)
        yield name, (into,)
        subprocess.run(["rm", "-r", into], check=True)


def main(words: list[str]) -> None:
    counts: collections.Counter[str] = collections.Counter()
    simulated = next((int(w.split("=")[1]) for w in words if w.startswith("--simulated=")), 1000)
    only = next((w.split("=")[1] for w in words if w.startswith("--only=")), "")
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        cases = iter(()) if "--no-traces" in words else trace_cases(folder)
        total = 0
        for name, inputs in itertools.chain(cases, simulated_cases(folder, simulated)):
            total += 1
            print_found(name, look(inputs), only, counts)
    print(f"{total} reports; absurdities by check: {dict(counts) or 'none'}")


def print_found(name: str, found: list[str], only: str, counts: collections.Counter[str]) -> None:
    for what in found:
        counts[what.split(":")[0]] += 1
        if only in what:
            print(f"{name}: {what}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
