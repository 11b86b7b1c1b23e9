# SPDX-License-Identifier: Apache-2.0
"""Time of `perftracker stacks` beside gdb, py-spy and eu-stack, on the same processes in one run.

    .venv/bin/python bench/stacks [--repeats N]

Processes: torch with 5 and with 500 threads, one in uninterruptible sleep, and a loop in C that
measures for how long it did not run. Tools that are not installed are left out. Printed is the
median of each tool's wall time, and how many times longer it took than perftracker.
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parent.parent / "build"
TARGET = str(BUILD / "tests" / "stacks_target")
LIMIT_S = 30


def tools() -> dict[str, list[str]]:
    """Command lines, the process id follows."""
    spy = shutil.which("py-spy", path=str(pathlib.Path(sys.executable).parent))
    spy = spy or shutil.which("py-spy") or ""
    found = {
        "perftracker": [str(BUILD / "src" / "cmd" / "perftracker"), "stacks"],
        "py-spy dump": [spy, "dump", "--pid"],
        "py-spy dump --native": [spy, "dump", "--native", "--pid"],
        "eu-stack": [shutil.which("eu-stack") or "", "-p"],
        "gdb -batch": [
            shutil.which("gdb") or "", "-batch", "-ex", "thread apply all bt", "-p",
        ],
    }  # fmt: skip
    return {name: command for name, command in found.items() if command[0]}


@contextlib.contextmanager
def started(*command: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        process.stdout.readline()
        time.sleep(1)
        yield process
    finally:
        process.kill()
        process.wait()


def took_ms(command: list[str], pid: int) -> float:
    begin = time.monotonic()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    done = subprocess.run([*command, str(pid)], timeout=LIMIT_S, check=False, **quiet)
    took = (time.monotonic() - begin) * 1000
    return took if done.returncode == 0 else float("nan")


def compare(title: str, pid: int, repeats: int, leave_out: tuple[str, ...] = ()) -> None:
    """Tools take turns, so that what else the machine does strikes all alike."""
    times: dict[str, list[float]] = {name: [] for name in tools() if name not in leave_out}
    for _ in range(repeats):
        for name in times:
            times[name].append(took_ms(tools()[name], pid))
    own = statistics.median(times["perftracker"])
    print(f"{title}:")
    for name, all_ms in times.items():
        ms = statistics.median(all_ms)
        least = min(all_ms)
        print(f"  {name:<22} {ms:9.1f} ms  least {least:9.1f} ms  {ms / own:7.1f}x")


def inside_ms(pid: int, repeats: int) -> None:
    """What the reader itself says, without the program's start."""
    import json

    command = [*tools()["perftracker"], "--format", "json", str(pid)]
    found = []
    for _ in range(repeats):
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found.append(json.loads(out)["processes"][0])
    frames = sum(len(t["frames"]) for t in found[0]["threads"])
    print(
        f"  {len(found[0]['threads'])} threads, {frames} frames; reading alone: median "
        f"{statistics.median(p['read_ms'] for p in found):.1f} ms, least "
        f"{min(p['read_ms'] for p in found):.1f} ms; stopped: "
        f"{max(p['stopped_max_ms'] for p in found):.2f} ms at most"
    )


def gaps(repeats: int) -> None:
    """For how long a loop did not run, while each tool looks at it."""
    print("longest pause of a busy loop:")
    for name, command in {"(nothing)": [], **tools()}.items():
        longest = []
        for _ in range(repeats):
            with subprocess.Popen([TARGET, "gaps", "2"], stdout=subprocess.PIPE, text=True) as loop:
                loop.stdout.readline()
                time.sleep(0.3)
                if command and "py-spy" not in name:
                    took_ms(command, loop.pid)
                longest.append(int(loop.stdout.read()) / 1000)
        if "py-spy" not in name:
            median, least = statistics.median(longest), min(longest)
            print(f"  {name:<22} median {median:8.2f} ms, least {least:8.2f} ms")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    for threads in (5, 500):
        with started(sys.executable, str(HERE / "job.py"), str(threads)) as process:
            took_ms(tools()["perftracker"], process.pid)  # files come into the page cache
            compare(f"torch, {threads} threads", process.pid, repeats)
            inside_ms(process.pid, repeats)
    with started(TARGET, "vfork") as process:
        # The others wait for ever, and leave the process stopped.
        others = tuple(name for name in tools() if name != "perftracker")
        compare("uninterruptible sleep", process.pid, repeats, others)
    gaps(max(repeats // 2, 3))
    return 0


if __name__ == "__main__":
    sys.exit(main())
