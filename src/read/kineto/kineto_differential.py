#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the Kineto reader with Python's json, event by event.

usage: kineto_differential.py DUMP (--generated COUNT | --traces DIR)

DUMP is the kineto_dump program. Times are computed with exact decimals. Exits 77
(skipped) when DIR is absent.
"""

import argparse
import decimal
import gzip
import itertools
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

KINDS = {
    "python_function": "python",
    "cpu_op": "operator",
    "Operator": "operator",
    "user_annotation": "annotation",
    "cuda_runtime": "runtime",
    "cuda_driver": "runtime",
    "Runtime": "runtime",
    "mtia_runtime": "runtime",
    "kernel": "kernel",
    "Kernel": "kernel",
    "mtia_ccp_events": "kernel",
    "gpu_memcpy": "gpu_memop",
    "gpu_memset": "gpu_memop",
    "Memcpy": "gpu_memop",
    "Memset": "gpu_memop",
    "gpu_user_annotation": "gpu_annotation",
    "cuda_sync": "sync",
    "overhead": "overhead",
}
LINKS = {"Python id", "Python parent id", "correlation"}  # begin/end pairs have none
DEVICE = {"kernel", "gpu_memop", "gpu_annotation", "sync"}
CONTEXT = decimal.Context(prec=400, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def ns(value):
    """Microseconds as written to whole ns, halves away from zero; None when unusable."""
    if isinstance(value, bool) or not isinstance(value, (int, decimal.Decimal)):
        return None
    value = CONTEXT.multiply(decimal.Decimal(value), decimal.Decimal(1000))
    if abs(value) >= 2**63:
        return None
    return int(value.quantize(decimal.Decimal(1), rounding=decimal.ROUND_HALF_UP, context=CONTEXT))


def shown(name):
    """A name as kineto_dump prints it."""
    name = "".join("\ufffd" if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in name)
    return re.sub(r"[\x01-\x1f\\\x7f]", lambda m: f"\\x{ord(m[0]):02x}", name)


def ident(value):
    """A pid or tid as a number, or None when it is a text."""
    if value is None:
        return 0
    if isinstance(value, str):
        match = re.fullmatch(r"(?:stream )?(-?[0-9]{1,17})", value)
        return int(match[1]) if match else None
    return int(value)


def product(values):
    out = 1
    for value in values:
        out *= value
    return out


def elements(dims):
    """Sum over the innermost arrays of the products of their numbers."""
    if dims and not any(isinstance(d, list) for d in dims):
        return product(dims)
    return sum(elements(d) for d in dims if isinstance(d, list))


def expected_args(event, kind):
    args = event.get("args")
    if not isinstance(args, dict) or kind not in ("operator", "kernel", "gpu_memop"):
        return -1, -1
    size = args.get("bytes", -1)
    if kind == "kernel":
        count = product(args["grid"] + args["block"]) if "grid" in args and "block" in args else -1
    else:
        dims = args.get("Input Dims", [])
        count = elements(dims) if re.search(r"\d", str(dims)) else -1
    if "In msg nelems" in args:
        size = None  # needs the table of element sizes: tested by hand
    return size, count


def expected_events(document):
    """(start, dur, kind, pid, tid, name, ids...) of every interval, in the reader's order."""
    events = document if isinstance(document, list) else document["traceEvents"]
    base = 0 if isinstance(document, list) else int(document.get("baseTimeNanoseconds", 0))
    out, halves, skipped, samples = [], {}, 0, 0
    for order, event in enumerate(events):
        phase, name, start = event.get("ph"), event.get("name"), ns(event.get("ts"))
        if phase == "M":
            continue
        if phase == "C":
            numbers = [v for v in event.get("args", {}).values() if not isinstance(v, (str, bool))]
            samples += len(numbers)
            skipped += not numbers
            continue
        if phase not in ("X", "B", "E") or start is None or (phase != "E" and name is None):
            skipped += 1
            continue
        kind = KINDS.get(event.get("cat"), "other")
        if kind == "operator" and name and name.startswith("ProfilerStep"):
            kind = "annotation"
        row = [
            start + base,
            max(ns(event.get("dur")) or 0, 0),
            kind,
            ident(event.get("pid")),
            ident(event.get("tid")),
            name,
            event,
            order,
        ]
        if phase == "X":
            out.append(row)
        else:
            lane = tuple(
                v if ident(v) is None else ident(v) for v in (event.get("pid"), event.get("tid"))
            )
            halves.setdefault(lane, []).append((start, order, phase, row))
    for lane in sorted(halves, key=str):
        stack = []
        for start, _, phase, row in sorted(halves[lane], key=lambda h: h[:2]):
            if phase == "B":
                stack.append(row)
            elif stack:
                begin = stack.pop()
                begin[1] = start + base - begin[0]
                begin[6] = dict(
                    begin[6],
                    args={k: v for k, v in (begin[6].get("args") or {}).items() if k not in LINKS},
                )
                begin[7] += len(events)  # pairs come after the complete events
                out.append(begin)
            else:
                skipped += 1
        skipped += len(stack)
    inside = [r for r in out if -(2**63) <= r[0] < 2**63 and r[0] + r[1] < 2**63]
    skipped += len(out) - len(inside)
    out = inside
    out.sort(key=lambda r: (r[0], -r[1], r[7]))
    return out, skipped, samples


def key_of(event, name):
    value = (event.get("args") or {}).get(name)
    return None if value is None or (name == "correlation" and value == 0) else value


def expected_parents(rows):
    frames, calls = {}, {}
    for i, row in enumerate(rows):
        if row[2] == "python":
            frames[key_of(row[6], "Python id")] = i
        elif row[2] == "runtime":
            calls[key_of(row[6], "correlation")] = i
    frames.pop(None, None)
    calls.pop(None, None)
    for i, row in enumerate(rows):
        parent = -1
        if row[2] == "python":
            parent = frames.get(key_of(row[6], "Python parent id"), -1)
        elif row[2] in ("kernel", "gpu_memop"):
            parent = calls.get(key_of(row[6], "correlation"), -1)
        yield -1 if parent == i else parent


def compare(dump, path):
    opener = gzip.open if path.open("rb").read(2) == b"\x1f\x8b" else open
    with opener(path, "rb") as f:
        document = json.loads(f.read(), parse_float=decimal.Decimal)
    rows, skipped, samples = expected_events(document)
    run = subprocess.run([dump, path], capture_output=True, check=False)
    if run.returncode != 0:
        return f"refused: {run.stderr.decode()}"
    lines = run.stdout.decode().split("\n")[:-1]
    if lines[0] != f"{len(rows)} {skipped} {samples}":
        return (
            f"events, left out, samples: expected {len(rows)} {skipped} {samples}, found {lines[0]}"
        )
    for i, (row, parent, line) in enumerate(
        zip(rows, expected_parents(rows), lines[1:], strict=True)
    ):
        found = line.split(" ", 9)
        size, count = expected_args(row[6], row[2])
        expected = [
            str(row[0]),
            str(row[1]),
            row[2],
            found[3],
            found[4] if row[3] is None else str(row[3]),
            found[5] if row[4] is None else str(row[4]),
            str(parent),
            found[7] if size is None or row[2] == "annotation" else str(size),
            found[8] if row[2] == "annotation" else str(count),
            shown(row[5]),
        ]
        if found != expected:
            return f"event {i}: expected {expected}, found {found}"
        if row[2] in DEVICE and row[6]["ph"] == "X" and found[3] != "1":
            return f"event {i}: expected a stream"
    return None


def random_number(rnd):
    return rnd.choice(
        [
            lambda: str(rnd.randrange(10 ** rnd.randrange(1, 17))),
            lambda: f"{rnd.randrange(10**13)}.{rnd.randrange(1000):03d}",
            lambda: f"{rnd.randrange(1000)}.{rnd.randrange(10 ** rnd.randrange(1, 30))}",
            lambda: f"{rnd.randrange(10**6)}e{rnd.randrange(-12, 8)}",
            lambda: f"-{rnd.randrange(10**9)}.5",
            lambda: f"{rnd.randrange(10**3)}.000{'5' * rnd.randrange(1, 60)}E+{rnd.randrange(3)}",
        ]
    )()


def random_text(rnd):
    pieces = [
        "a",
        "aten::mm",
        "\\n",
        "\\u20ac",
        "\\ud83d\\ude00",
        "\\ud83d",
        '\\"',
        "\\\\",
        "é",
        "漢",
        "😀",
        "<built-in method x at 0x7f>",
        "/",
        "\\/",
        " " * rnd.randrange(40),
        "\\u0001",
    ]
    return '"' + "".join(rnd.choice(pieces) for _ in range(rnd.randrange(8))) + '"'


def random_value(rnd, depth=0):
    kind = rnd.randrange(8 if depth < 4 else 5)
    if kind < 5:
        return rnd.choice([random_number, random_text, lambda _: "true", lambda _: "null"])(rnd)
    members = [random_value(rnd, depth + 1) for _ in range(rnd.randrange(4))]
    if kind == 5:
        return "{" + ",".join(f"{random_text(rnd)}:{m}" for m in members) + "}"
    return "[" + " , ".join(members) + "]"


def random_event(rnd, ids):
    cat = rnd.choice([*KINDS, "news", "Trace"])
    fields = {
        "ph": '"' + rnd.choice("XXXXXXBEiMsf") + '"',
        "cat": f'"{cat}"',
        "name": random_text(rnd),
        "pid": str(rnd.randrange(3)),
        "tid": rnd.choice(["1", "7", '"8"', "-975440128", '"stream 7"', '"PyTorch"']),
    }
    if rnd.random() < 0.95:
        fields["ts"] = random_number(rnd)
    if rnd.random() < 0.9:
        fields["dur"] = random_number(rnd)
    args = {f'"x{i}"': random_value(rnd) for i in range(rnd.randrange(3))}
    if cat == "python_function":
        ids.append(rnd.choice([len(ids), 2**63 + len(ids), 2**32 - 5 + len(ids)]))
        args['"Python id"'] = str(ids[-1])
        # Only older frames call: rings are cut, which json does not do.
        args['"Python parent id"'] = rnd.choice(["null", str(rnd.choice(ids[:-1] or [0])), "77777"])
        if args['"Python parent id"'] == args['"Python id"']:
            args['"Python parent id"'] = "null"
    elif rnd.random() < 0.5 and cat not in (
        "cuda_runtime",
        "cuda_driver",
        "Runtime",
        "mtia_runtime",
    ):
        args['"correlation"'] = str(rnd.randrange(200))
    else:
        args['"correlation"'] = str(next(ids_of_calls))
    members = [
        f'{rnd.choice(["", " ", chr(10) + "    "])}"{k}":{rnd.choice(["", " "])}{v}'
        for k, v in rnd.sample(sorted(fields.items()), len(fields))
    ]
    members.insert(
        rnd.randrange(len(members) + 1),
        '"args": {' + ", ".join(f"{k}: {v}" for k, v in args.items()) + "}",
    )
    return "{" + ",".join(members) + "}"


ids_of_calls = itertools.count(1)


def random_document(rnd):
    global ids_of_calls
    ids_of_calls, ids = itertools.count(1), []
    events = "[" + ",\n".join(random_event(rnd, ids) for _ in range(rnd.randrange(200))) + "]"
    if rnd.random() < 0.2:
        return events
    top = [f'"traceEvents": {events}', f'"note": {random_value(rnd)}']
    if rnd.random() < 0.7:
        top.append(f'"baseTimeNanoseconds": {rnd.randrange(2 * 10**18)}')
    rnd.shuffle(top)
    return "\n{ " + ",\n  ".join(top) + "}\n"


def run_generated(dump, count):
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(count):
            text = random_document(random.Random(seed)).encode()
            path = pathlib.Path(folder) / "t.json"
            path.write_bytes(gzip.compress(text) if seed % 3 == 0 else text)
            problem = compare(dump, path)
            if problem:
                failures += 1
                print(f"seed {seed}: {problem}")
    return failures


def run_traces(dump, folder):
    failures = total = 0
    for path in sorted(folder.glob("**/*")):
        if not path.name.endswith((".json", ".json.gz")) or path.parts[-2] == "op_timeline":
            continue
        total += 1
        problem = compare(dump, path)
        if problem:
            failures += 1
            print(f"{path}: {problem}")
    print(f"{total} files, {failures} differ")
    return failures if total else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dump")
    parser.add_argument("--generated", type=int)
    parser.add_argument("--traces", type=pathlib.Path)
    args = parser.parse_args()
    if args.generated:
        return 1 if run_generated(args.dump, args.generated) else 0
    folder = pathlib.Path(os.environ.get("PERFTRACKER_TRACES", args.traces))
    if not folder.is_dir():
        print(f"skipped: no traces in {folder}; set PERFTRACKER_TRACES")
        return 77
    return 1 if run_traces(args.dump, folder) else 0


if __name__ == "__main__":
    sys.exit(main())
