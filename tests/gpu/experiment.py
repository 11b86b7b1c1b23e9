# SPDX-License-Identifier: Apache-2.0
"""Common code of the experiments E0 to E13: running, skipping, judging, reporting.

An experiment measures figures on a machine with a GPU, and judges them: a pure function makes
checks of them, each against what is expected. Its script prints one object of JSON and ends with
0: all as expected, 1: not so, 77: skipped with the reason, 2: it broke.

    eN_name.py [--build DIR] [--double] [--judge FILE]

--double: on the doubles of tests/gpu/doubles, as far as they reach. It shows that the script runs,
and nothing of a card. --judge: judges figures (JSON) that were measured before.
Nothing here changes a setting of the device.
"""

from __future__ import annotations

import argparse
import dataclasses
import glob
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SKIPPED = 77
NOISE_FRAC = 0.02  # what two equal stretches of a job differ by
Figures = dict[str, Any]


class Skip(Exception):  # noqa: N818  # as unittest.SkipTest: no error
    """This machine lacks something; the text says what."""


@dataclasses.dataclass
class Check:
    what: str
    expected: str
    seen: str
    ok: bool


def at_most(what: str, seen: float, most: float, unit: str = "") -> Check:
    return Check(what, f"<= {most:g}{unit}", f"{seen:.4g}{unit}", seen <= most)


def at_least(what: str, seen: float, least: float, unit: str = "") -> Check:
    return Check(what, f">= {least:g}{unit}", f"{seen:.4g}{unit}", seen >= least)


def equal(what: str, seen: object, expected: object) -> Check:
    return Check(what, str(expected), str(seen), seen == expected)


def more_frac(after: float, before: float) -> float:
    """By what share one is more than the other."""
    return after / before - 1 if before > 0 else float("inf")


# --- the machine ---


@dataclasses.dataclass
class Machine:
    """Where it runs and what it uses of the project."""

    build: pathlib.Path
    double: bool

    def device(self) -> str:
        return "double" if self.double else "cuda"

    def program(self, name: str = "") -> str:
        """A program of the build: perftracker, or one of tests/gpu."""
        path = self.build / (f"tests/gpu/{name}" if name else "src/cmd/perftracker")
        if not os.access(path, os.R_OK):
            raise Skip(f"{path} is not built: meson compile -C {self.build}")
        return str(path)

    def job(self, name: str) -> pathlib.Path:
        return HERE / "jobs" / name

    def agent(self) -> str:
        return str(self.build / "src/agent/libperftracker-agent.so")

    def environment(self, **more: str) -> dict[str, str]:
        """Of a program of tests/gpu."""
        env = {**os.environ, **more}
        if self.double:
            env["DOUBLE_CUDA"] = self.program("libcuda-double.so")
            env["DOUBLE_CUPTI"] = self.program("libcupti-double.so")
            env.setdefault("CUPTI_LIBRARY", env["DOUBLE_CUPTI"])
        else:
            env.pop("DOUBLE_CUDA", None)
            env.setdefault("CUPTI_LIBRARY", find_cupti())
        return env

    def sampler_environment(self) -> dict[str, str]:
        """Of e_pmsampling, which has doubles of its own."""
        if not self.double:
            return self.environment()
        return self.environment(
            PM_DOUBLE_CUDA=self.program("pm-double-cuda.so"),
            CUPTI_LIBRARY=self.program("pm-double-full.so"),
        )

    def nvml_environment(self) -> dict[str, str]:
        folder = str(self.build / "tests/gpu/doubles")
        return self.environment(**({"LD_LIBRARY_PATH": folder} if self.double else {}))

    def need_gpu(self) -> None:
        if not self.double and not glob.glob("/dev/nvidia[0-9]*"):
            raise Skip("no NVIDIA GPU: no /dev/nvidia0")

    def python(self, cuda: bool = True) -> str:
        """An interpreter with torch, and with cuda one that sees the GPU."""
        why = "no torch: pip install torch, or set PERFTRACKER_PYTHON"
        for path in (
            os.environ.get("PERFTRACKER_PYTHON"),
            sys.executable,
            ROOT / ".venv/bin/python",
        ):
            if not path or not os.access(path, os.X_OK):
                continue
            code = "import torch; print(torch.cuda.is_available())"
            found = subprocess.run([path, "-c", code], capture_output=True, text=True)
            if found.returncode == 0 and (not cuda or self.double or "True" in found.stdout):
                return str(path)
            if found.returncode == 0:
                why = "torch sees no GPU"
        raise Skip(why)


def find_cupti() -> str:
    """Torch's own copy, else the toolkit's; "" leaves it to the loader."""
    places = [f"{path}/nvidia/{name}/lib" for path in sys.path for name in ("cu13", "cuda_cupti")]
    places += ["/usr/local/cuda/lib64", "/usr/local/cuda/extras/CUPTI/lib64"]
    for place in places:
        for version in (13, 12):
            if os.path.exists(f"{place}/libcupti.so.{version}"):
                return f"{place}/libcupti.so.{version}"
    return "libcupti.so.13"


# --- programs ---


def run(
    command: Iterable[str], env: dict[str, str] | None = None, limit_s: float = 120
) -> subprocess.CompletedProcess[str]:
    """A program to its end; Skip when it says that it can't do its work here."""
    words = list(command)
    process = subprocess.Popen(
        words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
    )
    try:
        out, errors = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        end_group(process)
        raise RuntimeError(f"{words[0]}: not done after {limit_s:g} s") from None
    result = (errors.strip().splitlines() or ["no reason given"])[-1]
    if process.returncode == SKIPPED:
        raise Skip(result)
    if process.returncode != 0:
        raise RuntimeError(f"{words[0]} ended with {process.returncode}: {result}")
    return subprocess.CompletedProcess(words, 0, out, errors)


def end_group(process: subprocess.Popen) -> None:
    """By asking first: a launcher that is killed leaves what it has started."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def objects(text: str) -> list[Figures]:
    """The lines that are JSON."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


class Beside:
    """A program that runs while another measures; its output afterwards."""

    def __init__(self, command: Iterable[str], env: dict[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            list(command), env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Beside:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()

    def result(self, limit_s: float = 120) -> list[Figures]:
        out, result = self._process.communicate(timeout=limit_s)
        if self._process.returncode == SKIPPED:
            raise Skip(result.strip())
        if self._process.returncode != 0:
            raise RuntimeError(result.strip())
        return objects(out)


# --- a job that is watched ---


class Job:
    """jobs/steps.py under `perftracker run`; asked for windows while it trains."""

    def __init__(
        self, machine: Machine, *words: str, options: Iterable[str] = ("--source", "agent")
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="pt-experiment-")
        self.folder = pathlib.Path(self._folder.name)
        self.out = self.folder / "out"
        self._program = machine.program()
        self._env = {**machine.environment(), "XDG_RUNTIME_DIR": self._folder.name}
        device = [] if "--device" in words else ["--device", machine.device()]
        command = [self._program, "run", "--quiet", "--no-audit", "--out", str(self.out)]
        command += [
            "--slowdown",
            "100",
            "--steps",
            "64",
            *options,
            "--",
            machine.python("cpu" not in words),
        ]
        command += [str(HERE / "jobs/steps.py"), str(self.folder), *device, *words]
        self._errors = open(self.folder / "errors", "w")
        self._process = subprocess.Popen(
            command, env=self._env, stdout=self._errors, stderr=self._errors, process_group=0
        )

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        (self.folder / "stop").touch()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            end_group(self._process)
        self._errors.close()
        self._folder.cleanup()

    def touch(self, name: str) -> None:
        (self.folder / name).touch()

    def end(self, limit_s: float = 60) -> Figures:
        """Ends the job and returns its own figures."""
        self.touch("stop")
        self._process.wait(limit_s)
        return json.loads((self.folder / "figures.json").read_text())

    def ends_ns(self) -> list[int]:
        """When each step ended, CLOCK_MONOTONIC."""
        path = self.folder / "steps"
        data = path.read_bytes() if path.exists() else b""
        return [int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data) // 8 * 8, 8)]

    def await_steps(self, count: int, limit_s: float = 180) -> None:
        """Until there are so many more."""
        deadline, wanted = time.monotonic() + limit_s, len(self.ends_ns()) + count
        while len(self.ends_ns()) < wanted:
            if self._process.poll() is not None:
                text = (self.folder / "errors").read_text().strip()
                raise RuntimeError(f"the job has ended: {text[-600:]}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"no {count} steps in {limit_s} s")
            time.sleep(0.1)

    def profile(self) -> tuple[Figures | None, str]:
        """Requests a window: its report, or None and the reason."""
        deadline = time.monotonic() + 60
        asked = [self._program, "profile", "--timeout", "240"]
        answer = subprocess.run(asked, env=self._env, capture_output=True, text=True)
        while "try again" in answer.stderr and time.monotonic() < deadline:
            time.sleep(0.5)
            answer = subprocess.run(asked, env=self._env, capture_output=True, text=True)
        if answer.returncode != 0:
            return None, answer.stderr.strip()
        page = pathlib.Path(answer.stdout.splitlines()[-1])
        return json.loads(page.with_suffix(".json").read_text()), ""

    def compare(self, steps: int = 60) -> Figures:
        """Medians of the time of a step before, in and after a window, in ms."""
        self.await_steps(steps)
        before_ns = time.monotonic_ns()
        report, why = self.profile()
        after_ns = time.monotonic_ns()
        if report is None:
            raise RuntimeError(f"no window: {why}")
        self.await_steps(steps + 2)
        ends = self.ends_ns()
        spans = [(end, (end - begin) / 1e6) for begin, end in zip(ends, ends[1:], strict=False)]
        before = [ms for end, ms in spans if end < before_ns][-steps:]
        after = [ms for end, ms in spans if end - ms * 1e6 > after_ns][:steps]
        inside = report["workers"][0]["iteration_ms"]
        return {
            "before_ms": statistics.median(before),
            "in_ms": statistics.median(inside),
            "after_ms": statistics.median(after),
            "noise_frac": noise_frac(before),
            "steps": [len(before), len(inside), len(after)],
        }


def noise_frac(times: list[float]) -> float:
    """Three standard errors of the median, as a share of it; estimated from the middle half."""
    if len(times) < 4:
        return 1.0
    low, middle, high = statistics.quantiles(times, n=4)
    return 3 * 1.25 * (high - low) / 1.349 / len(times) ** 0.5 / middle


def allowed_frac(figures: Figures) -> float:
    return max(NOISE_FRAC, figures["noise_frac"])


# --- the script ---


@dataclasses.dataclass
class Experiment:
    name: str  # "E3"
    title: str
    measure: Callable[[Machine], Figures]
    judge: Callable[[Figures], list[Check]]

    def main(self) -> int:
        parser = argparse.ArgumentParser(description=f"Experiment {self.name}: {self.title}")
        build = os.environ.get("PERFTRACKER_BUILD") or str(ROOT / "build")
        parser.add_argument(
            "--build", default=build, help="build folder of the project [%(default)s]"
        )
        parser.add_argument("--double", action="store_true", help="on the doubles of GPU libraries")
        parser.add_argument("--judge", metavar="FILE", help="figures that were measured before")
        options = parser.parse_args()
        done = self.carry_out(options)
        print(json.dumps(done))
        return {"as expected": 0, "not as expected": 1, "skipped": SKIPPED}.get(done["outcome"], 2)

    def carry_out(self, options: argparse.Namespace) -> Figures:
        machine = Machine(pathlib.Path(options.build).resolve(), options.double)
        result: Figures = {"experiment": self.name, "title": self.title}
        result["on"] = "double" if options.double else "device"
        begin_s = time.monotonic()
        try:
            if options.judge:
                figures = json.loads(pathlib.Path(options.judge).read_text())
            else:
                figures = self.measure(machine)
            checks = self.judge(figures)
        except Skip as why:
            return {**result, "outcome": "skipped", "why": str(why)}
        except Exception as trouble:  # reported as failed; the next experiment begins
            return {**result, "outcome": "failed", "why": f"{type(trouble).__name__}: {trouble}"}
        result["on"] = figures.get("on", result["on"])
        result["outcome"] = "as expected" if all(c.ok for c in checks) else "not as expected"
        result["checks"] = [dataclasses.asdict(check) for check in checks]
        return {**result, "figures": figures, "seconds": round(time.monotonic() - begin_s, 1)}
