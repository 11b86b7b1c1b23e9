# SPDX-License-Identifier: Apache-2.0
"""`perftracker flame`: small traces of known content, and real ones beside a second computation."""

from __future__ import annotations

import base64
import bisect
import collections
import gzip
import hashlib
import html.parser
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = os.environ.get("PERFTRACKER_PROGRAM") or str(ROOT / "build/src/cmd/perftracker")
TRACES = pathlib.Path(os.environ.get("PERFTRACKER_TRACES", "/nonexistent"))


def flame(*words: str | pathlib.Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, "flame", *map(str, words)], capture_output=True, text=True, timeout=120
    )


def event(category: str, name: str, span: tuple[float, float], **more: Any) -> dict[str, Any]:
    device = category == "kernel"
    return {
        "ph": "X", "cat": category, "name": name, "pid": 0 if device else 100,
        "tid": 7 if device else 100, "ts": span[0], "dur": span[1], "args": more,
    }  # fmt: skip


def trace(rank: int, kernel_us: float, extra: bool = False) -> dict[str, Any]:
    events = [
        event("python_function", "train.py(3): train", (0, 900), **{"Python id": 1}),
        event("cpu_op", "aten::mm", (100, 50)),
        event("cuda_runtime", "cudaLaunchKernel", (110, 10), correlation=5),
        event("kernel", "gemm", (200, kernel_us), correlation=5, device=0, stream=7),
    ]
    if extra:
        events += [
            event("cpu_op", "aten::<b>&", (300, 50)),
            event("cuda_runtime", "cudaLaunchKernel", (310, 10), correlation=6),
            event("kernel", "odd", (600, 50), correlation=6, device=0, stream=7),
        ]
    about = {"rank": rank, "world_size": 3, "backend": "nccl"}
    return {"traceEvents": events, "distributedInfo": about, "schemaVersion": 1}


class Small(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="pt-flame-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for rank, (kernel_us, extra) in enumerate(((100, False), (100, True), (800, False))):
            path = self.folder / f"rank{rank}.json"
            path.write_text(json.dumps(trace(rank, kernel_us, extra)))

    def test_kernels_are_below_what_launched_them(self) -> None:
        done = flame(self.folder, "-f", "folded")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(
            done.stdout.splitlines(),
            [
                "main thread;train.py(3): train;aten::mm;gemm 1000",
                "main thread;train.py(3): train;aten::<b>&;odd 50",
            ],
        )

    def test_host_time_is_that_of_the_innermost_function(self) -> None:
        done = flame(self.folder, "-f", "folded", "-w", "host", "--ranks", "0")
        want = {"train": 850, "aten::mm": 40, "cudaLaunchKernel": 10}
        got = {re.split("[; ]", line)[-2]: int(line.split()[-1])
               for line in done.stdout.splitlines()}  # fmt: skip
        self.assertEqual(got, want)

    def test_the_page_tells_who_has_a_frame_and_who_has_more(self) -> None:
        out = self.folder / "out.html"
        self.assertEqual(flame(self.folder, "-o", out).stdout, f"{out}\n")
        page = out.read_text()
        self.assertIn("@1|0,2", page)
        self.assertIn("most on rank 2: 0.80 ms, mean of the others 0.10 ms", page)
        self.assertNotIn("aten::<b>", page)
        tags = collections.Counter()
        parser = html.parser.HTMLParser()
        parser.handle_starttag = lambda tag, _: tags.update([tag])  # type: ignore[method-assign]
        parser.feed(page)
        self.assertEqual((tags["script"], tags["b"], tags["link"], tags["img"]), (1, 0, 0, 0))

    def test_the_policy_of_the_page_allows_its_script_alone(self) -> None:
        page = flame(self.folder, "-o", "-").stdout
        script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)
        allowed = re.search(r"script-src 'sha256-([^']*)'", page)
        assert script
        assert allowed
        found = base64.b64encode(hashlib.sha256(script.group(1).encode()).digest()).decode()
        self.assertEqual(allowed.group(1), found, "put the second one into flamescript.c")
        self.assertIn("default-src 'none'", page)

    def test_speedscope_and_svg_are_whole(self) -> None:
        document = json.loads(flame(self.folder, "-f", "speedscope").stdout)
        profile = document["profiles"][0]
        names = [frame["name"] for frame in document["shared"]["frames"]]
        self.assertEqual([names[i] for i in profile["samples"][0]][-2:], ["aten::mm", "gemm"])
        self.assertEqual(profile["weights"], [1.0, 0.05])
        svg = flame(self.folder, "-f", "svg").stdout
        self.assertTrue(svg.startswith("<svg ") and svg.endswith("</svg>\n"), svg[:80])

    def test_bad_input_is_one_line(self) -> None:
        self.assertEqual(flame().returncode, 2)
        broken = self.folder / "broken.json"
        broken.write_text('{"traceEvents": [{"ph": "X"')
        done = flame(broken)
        self.assertEqual(done.returncode, 1)
        self.assertIn("broken.json", done.stderr)
        twice = flame(self.folder / "rank0.json", self.folder / "rank0.json", "-f", "folded")
        self.assertIn("rank 0 has a file before this one", twice.stderr)
        done = flame(self.folder / "rank0.json", "-w", "wait")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1))


def second_computation(path: pathlib.Path) -> dict[tuple[str, str], float]:
    """(innermost function of a Python file at the launch, kernel) -> us, by containment alone."""
    events = json.loads(gzip.open(path).read(), strict=False)["traceEvents"]
    calls: dict[int, dict[str, Any]] = {}
    frames: dict[Any, list[tuple[float, float, str]]] = collections.defaultdict(list)
    for e in events:
        if e.get("cat") in ("cuda_runtime", "cuda_driver"):
            calls[e["args"].get("correlation")] = e
        elif e.get("cat") == "python_function" and ".py(" in e["name"]:
            frames[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"], e["name"]))
    for lane in frames.values():
        lane.sort()
    sums: dict[tuple[str, str], float] = collections.Counter()
    for e in events:
        if e.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset"):
            continue
        call = calls.get(e["args"].get("correlation"), {"ts": -1, "dur": 0, "pid": 0, "tid": 0})
        lane = frames[call["pid"], call["tid"]]
        # Functions are nested, so the innermost one is the last that began and has not ended.
        at = bisect.bisect_right(lane, (call["ts"], float("inf"), "")) - 1
        while at >= 0 and lane[at][1] < call["ts"] + call["dur"]:
            at -= 1
        sums[lane[at][2] if at >= 0 else "", e["name"]] += e["dur"]
    return sums


def plain(name: str) -> str:
    """Of a function or a kernel, without what differs between two runs."""
    return re.sub(r"<.*|\(.*| at 0x.*|_\d+$", "", name)[:24]


@unittest.skipUnless(TRACES.is_dir(), "PERFTRACKER_TRACES names no folder of real traces")
class Real(unittest.TestCase):
    def test_device_time_is_that_of_a_second_computation(self) -> None:
        path = TRACES / "single/mi300_resnet_ddp_rank0_with_stack.json.gz"
        want: dict[str, float] = collections.Counter()
        for (function, _), us in second_computation(path).items():
            want[plain(function)] += us
        got: dict[str, float] = collections.Counter()
        for line in flame(path, "-f", "folded").stdout.splitlines():
            stack, _, us = line.rpartition(" ")
            python = [f for f in stack.split(";") if ".py(" in f]
            got[plain(python[-1]) if python else ""] += float(us)
        total = sum(want.values())
        self.assertAlmostEqual(sum(got.values()) / total, 1, delta=0.01)
        apart = sum(abs(got[name] - want[name]) for name in {*got, *want}) / 2
        self.assertLess(apart / total, 0.05, sorted(got.items(), key=lambda x: -x[1])[:5])

    def test_the_rank_that_slept_stands_out_where_it_slept(self) -> None:
        folder = TRACES / "multi_rank/dlrm4_sleep_1s"
        page = flame(folder, "-w", "host", "-o", "-").stdout
        self.assertRegex(page, r"# running sparse arch: [^<]*most on rank 2: 30\d\d ms")


if __name__ == "__main__":
    unittest.main()
