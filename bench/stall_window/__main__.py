# SPDX-License-Identifier: Apache-2.0
"""What a stall window costs, beside `perf sched record`.

    .venv/bin/python bench/stall_window --repeats 5

Two processes pass a byte to and fro on one CPU, the worst case of a recorder of switches. Their
CPU time for each switch is measured alone, with `perftracker stalls` watching one of them, with
`perftracker stalls` watching another process, and under `perf sched record`, in turn; and the time
of the recorder itself. Ratios, not times, are compared: machines differ.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = ROOT / "build" / "src" / "cmd" / "perftracker"
WAYS = ("alone", "stalls", "stalls of another", "perf sched record")

PLAYER = """
import os, resource, sys, time
cpu, seconds = int(sys.argv[1]), float(sys.argv[2])
os.sched_setaffinity(0, {cpu})
there, here = os.pipe(), os.pipe()
child = os.fork()
source, sink = (there[0], here[1]) if child == 0 else (here[0], there[1])
if child == 0:
    os.close(there[1])
    while byte := os.read(source, 1):
        os.write(sink, byte)
    os._exit(0)
os.close(there[0])
print(child, flush=True)
rounds, end_s = 0, time.monotonic() + seconds
while time.monotonic() < end_s:
    for _ in range(100):
        os.write(sink, b"x")
        os.read(source, 1)
    rounds += 100
os.close(sink)
os.waitpid(child, 0)
usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(sum(u.ru_utime + u.ru_stime for u in usage) / (2 * rounds), flush=True)
"""


class Run(NamedTuple):
    way: str
    switch_us: float  # CPU time of the players for a switch
    recorder_frac: float  # of a CPU, that the recorder used
    bytes: int  # that it kept


def recorder(way: str, pid: int, seconds: float, kept: str) -> list[str]:
    if way == "perf sched record":
        return ["perf", "sched", "record", "-q", "-o", kept, "sleep", str(seconds)]
    return [
        *(str(PROGRAM), "stalls", "--seconds", str(seconds), "--record", kept, "-o", "/dev/null"),
        *("--pid", str(pid)),
    ]


def cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(way: str, seconds: float) -> Run:
    cpu = max(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        kept = str(pathlib.Path(folder) / "kept")
        # Records begin before the players and end behind them.
        other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
        with subprocess.Popen(
            [sys.executable, "-S", "-c", PLAYER, str(cpu), str(seconds)],
            stdout=subprocess.PIPE,
            text=True,
        ) as players:
            pid = int(players.stdout.readline())
            before_s = cpu_s()
            used_s = 0.0
            if way != "alone":
                target = other.pid if way == "stalls of another" else pid
                words = recorder(way, target, seconds - 1, kept)
                begin_s = time.monotonic()
                # The players are not reaped yet, so this is the recorder's time alone.
                subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
                used_s = (cpu_s() - before_s) / (time.monotonic() - begin_s)
            switch_us = 1e6 * float(players.stdout.readline())
        other.kill()
        other.wait()
        size = os.path.getsize(kept) if os.path.exists(kept) else 0
    return Run(way, switch_us, used_s, size)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "out" / "stall_window.json")
    options = parser.parse_args()
    ways = [way for way in WAYS if way != "perf sched record" or shutil.which("perf")]
    if len(ways) < len(WAYS):
        print("perf is not installed: it is left out")
    runs = [run(way, options.seconds) for _ in range(options.repeats) for way in ways]

    def median(way: str, field: str) -> float:
        return statistics.median(getattr(r, field) for r in runs if r.way == way)

    alone_us = median("alone", "switch_us")
    print(f"{'':20} {'us a switch':>12} {'ratio':>6} {'recorder, CPU':>14} {'MB kept':>8}")
    for way in ways:
        us, used = median(way, "switch_us"), 100 * median(way, "recorder_frac")
        size = median(way, "bytes") / 1e6
        print(f"{way:20} {us:12.2f} {us / alone_us:6.2f} {used:12.1f} % {size:8.2f}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps([r._asdict() for r in runs], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
