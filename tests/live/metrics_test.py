# SPDX-License-Identifier: Apache-2.0
"""/metrics of jobs that run: counts are the recorder's, and real readers can read it.

Prometheus and promtool are looked for in PATH and in the folder PERFTRACKER_PROMETHEUS, by
default where tools/fetch-prometheus puts them; the parsers of prometheus_client are used where
they are installed. What is missing is skipped.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from live import CACHE, QUICK, ROOT, LiveTest, TorchLiveTest  # noqa: E402

DEPLOY = ROOT / "deploy"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

# Dashboard panels that a job without a GPU and without faults fills.
FILLED = {"Ranks by state", "State of each rank", "Iteration time by rank", "Iteration time"}
FILLED |= {"Iteration time, all ranks", "Bus bandwidth", "Waiting for others, share of time"}
FILLED |= {"Waiting for the data loader, share of time", "Daemon: CPU and memory"}

Samples = list[tuple[str, dict[str, str], float]]


def find_tool(name: str) -> str | None:
    folder = os.environ.get("PERFTRACKER_PROMETHEUS", str(CACHE / "prometheus"))
    return shutil.which(name, path=os.pathsep.join([folder, os.environ.get("PATH", "")]))


def parse(text: str) -> Samples:
    """Independent parser of the text format: each line is a comment or a sample."""
    found = []
    for line in text.splitlines():
        match = SAMPLE.match(line)
        if line.startswith("#"):
            continue
        if not match:
            raise AssertionError(f"neither a comment nor a sample: {line}")
        found.append((match[1], dict(LABEL.findall(match[2] or "")), float(match[3])))
    return found


def total(samples: Samples, name: str, **labels: str) -> float:
    """Sum over the series that have these labels."""
    return sum(
        value for n, found, value in samples if n == name and labels.items() <= found.items()
    )


def names_of(samples: Samples) -> set[str]:
    return {name for name, _, _ in samples}


class MetricsMixin(LiveTest):
    def address(self, limit_s: float = 30) -> str:
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                return json.loads((self.out / "metrics.json").read_text())[0]["targets"][0]
            time.sleep(0.05)
        raise AssertionError("OUT/metrics.json was not written")

    def get(self, accept: str = "", path: str = "/metrics") -> tuple[str, str]:
        """Type and text of a page."""
        request = urllib.request.Request(f"http://{self.address()}{path}")
        if accept:
            request.add_header("Accept", accept)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.headers["Content-Type"], answer.read().decode()

    def scrape(self) -> Samples:
        return parse(self.get()[1])

    def await_total(self, least: float, name: str, limit_s: float = 120, **labels: str) -> Samples:
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            samples = self.scrape()
            if total(samples, name, **labels) >= least:
                return samples
            time.sleep(0.2)
        raise AssertionError(f"{name} {labels} did not reach {least}: {self.get()[1]}")


class Metrics(MetricsMixin):
    METRICS = (*QUICK, "--metrics", "0")

    def test_a_job_that_did_not_ask_serves_nothing(self) -> None:
        done = self.run_job(*QUICK, *self.fake("--iterations", "20", "--ms", "5"))
        self.assertEqual(done.returncode, 0)
        self.assertNotIn(b"event=metrics", done.stderr)
        self.assertFalse((self.out / "metrics.json").exists())

    def test_every_name_is_in_the_documentation(self) -> None:
        source = (ROOT / "src/live/metrics/families.h").read_text()
        suffixes = {"COUNTER": "_total", "INFO": "_info"}
        text = (ROOT / "docs/metrics.md").read_text()
        found = re.findall(r'X\(\w+, "(\w+)", (\w+)', source)
        self.assertGreater(len(found), 50)
        for name, kind in found:
            full = name + suffixes.get(kind, "")
            short = re.sub(r"XPU_TIMER_(COLL|MM)_KERNEL(_\w+_LATENCY)", r"\2", full)
            self.assertTrue(f"`{full}`" in text or f"`{short}`" in text, full)

    def test_dashboard_and_alerts_ask_for_names_that_there_are(self) -> None:
        """A wrong one would give an empty panel, and an alert that never fires."""
        source = (ROOT / "src/live/metrics/families.h").read_text()
        suffixes = {"COUNTER": "_total", "INFO": "_info"}
        known = set()
        for name, kind in re.findall(r'X\(\w+, "(\w+)", (\w+)', source):
            full = name + suffixes.get(kind, "")
            known |= {full, *(f"{full}_{part}" for part in ("bucket", "sum", "count"))}
        texts = [(DEPLOY / "prometheus" / "perftracker.rules.yml").read_text()]
        board = json.loads((DEPLOY / "grafana" / "perftracker.json").read_text())
        texts += [t["expr"] for p in board["panels"] for t in p.get("targets", [])]
        for text in texts:
            asked = set(re.findall(r"(?<!\w)perftracker_\w+", text))
            self.assertEqual(asked - known, set())

    def test_wrong_options_are_errors_before_the_job_starts(self) -> None:
        for words in (
            ("--metrics", ":9400"),
            ("--metrics", "a.b:80"),
            ("--metrics", "0", "--metrics-compat", "statsd"),
            ("--metrics-compat", "xpu_timer"),
        ):
            done = self.run_job(*words, "--", "touch", str(self.folder / "ran"))
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(b"--metrics", done.stderr)
        self.assertFalse((self.folder / "ran").exists())

    def test_a_port_that_is_taken_does_not_stop_the_job(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            done = self.run_job("--metrics", port, "--", "sh", "-c", "exit 5")
        self.assertEqual(done.returncode, 5)
        self.assertIn(b"event=metrics-off", done.stderr)

    def test_both_formats_have_the_same_series_and_the_end_is_clean(self) -> None:
        job = self.fake("--world", "2", "--iterations", "2000", "--ms", "10")
        with self.job(*self.METRICS, *job) as process:
            self.await_workers(2, 20)
            kind, text = self.get()
            self.assertIn("text/plain; version=0.0.4", kind)
            kind, open_text = self.get(OPEN_METRICS)
            self.assertIn("application/openmetrics-text; version=1.0.0", kind)
            self.assertTrue(open_text.endswith("# EOF\n"))
            self.assertEqual(names_of(parse(text)), names_of(parse(open_text)))
            self.assertEqual(total(parse(text), "perftracker_world_size"), 2)
            with self.assertRaises(urllib.error.HTTPError) as caught:
                self.get(path="/other")
            caught.exception.close()
            self.assertEqual(caught.exception.code, 404)
            os.killpg(process.pid, signal.SIGTERM)
            _, log = process.communicate(timeout=60)
        self.assertIn(b"event=metrics url=http://127.0.0.1:", log)
        self.assertFalse((self.out / "metrics.json").exists())

    def test_slow_scrapers_hold_neither_the_daemon_nor_others_up(self) -> None:
        job = self.fake("--world", "2", "--iterations", "6000", "--ms", "10")
        with self.job(*self.METRICS, *job), contextlib.ExitStack() as stack:
            self.await_workers(2, 20)
            host, port = self.address().split(":")
            for number in range(24):
                slow = stack.enter_context(socket.create_connection((host, int(port))))
                slow.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n" + b"\r\n" * (number % 2))
            before = self.await_workers(2, 20)
            self.await_workers(2, before[0]["iterations"] + 50)
            self.assertTrue(self.scrape())

    def test_a_rank_that_dies_and_one_that_is_slow_are_seen(self) -> None:
        job = self.fake("--world", "2", "--iterations", "20000", "--ms", "10", "--behave",
                        "obey,crash")  # fmt: skip
        with self.job(*self.METRICS, *job):
            samples = self.await_total(1, "perftracker_worker_state", rank="1", state="gone")
            self.assertEqual(total(samples, "perftracker_worker_state", rank="1"), 1)
            iterations = total(samples, "perftracker_iteration_seconds_count", rank="0")
            self.await_total(iterations + 20, "perftracker_iteration_seconds_count", rank="0")

    def test_a_report_is_in_the_metrics(self) -> None:
        # Late: a slowdown by chance while the processes start must be over before.
        job = self.fake("--world", "2", "--iterations", "20000", "--ms", "20", "--slow-at", "200")
        with self.job(*self.METRICS, *job):
            samples = self.await_total(1, "perftracker_reports_total")
            for _ in range(5):  # a busy machine can hide it for a window
                if total(samples, "perftracker_reports_total", verdict="abnormal") > 0:
                    break
                self.ask("profile")
                samples = self.scrape()
            self.assertGreater(total(samples, "perftracker_reports_total", verdict="abnormal"), 0)
            self.assertEqual(total(samples, "perftracker_report_accused", rank="1"), 1)
            self.assertGreater(total(samples, "perftracker_report_gain_seconds"), 0)


# Two ranks that wait most of the time: nothing here depends on how much they compute.
TRAINING = """
import time, torch, torch.distributed as dist
from torch.utils.data import DataLoader, Dataset
torch.set_num_threads(1)
dist.init_process_group("gloo")
class Numbers(Dataset):
    def __len__(self): return 10**7
    def __getitem__(self, i): return torch.ones(256)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(256, 256))
optimizer = torch.optim.SGD(model.parameters(), 1e-9)
for batch in DataLoader(Numbers(), batch_size=4):
    optimizer.zero_grad(); model(batch).sum().backward(); time.sleep(0.05); optimizer.step()
"""


class TorchMetrics(TorchLiveTest, MetricsMixin):
    """A real job of two ranks, the same for all tests: they only look."""

    place: LiveTest

    @classmethod
    def setUpClass(cls) -> None:
        place = cls.place = TorchLiveTest()
        cls.addClassCleanup(place.doCleanups)
        place.setUp()
        script = place.folder / "train.py"
        script.write_text(TRAINING)
        launcher = ("-m", "torch.distributed.run", "--nproc-per-node", "2")
        command = (place.python, *launcher, str(script))
        words = ("--metrics", "0", "--metrics-compat", "xpu_timer", "--no-audit")
        running = contextlib.ExitStack()
        cls.addClassCleanup(running.close)
        process = running.enter_context(place.job(*words, "--", *command))
        running.callback(process.communicate, timeout=120)
        running.callback(process.terminate)  # torchrun ends its ranks, of groups of their own

    def setUp(self) -> None:
        """Those of the job that runs."""
        self.python, self.env = self.place.python, self.place.env
        self.folder, self.out = self.place.folder, self.place.out
        self.await_total(40, "perftracker_iteration_seconds_count", limit_s=240, rank="0")

    def settled(self) -> Samples:
        """The counts when the workers are idle: the same in two looks of the daemon."""
        last: Samples = []
        for _ in range(100):
            samples = self.scrape()
            counts = [s for s in samples if s[0].endswith("_count") or "_marks" in s[0]]
            if counts == last:
                return samples
            last = counts
            time.sleep(0.5)
        raise AssertionError("the counts never stood still")

    def await_matched(self) -> None:
        """Most collectives, but for the first ones, are found in both ranks' recorders."""
        deadline = time.monotonic() + 120
        name = "perftracker_collective_%s_seconds_count"
        while time.monotonic() < deadline:
            samples = self.scrape()
            known = [total(samples, name % part, rank="0") for part in ("wait", "transfer")]
            if min(known) > 0.6 * total(samples, "perftracker_collective_seconds_count", rank="0"):
                return
            time.sleep(0.2)
        self.fail(f"most collectives have no match: {samples}")

    def test_counts_are_those_of_the_recorder(self) -> None:
        """The first test of the job: a recorder's ring holds less than 700 collectives."""
        self.await_matched()
        pids = {worker["rank"]: worker["pid"] for worker in self.workers()}
        for pid in pids.values():
            os.kill(pid, signal.SIGSTOP)
        try:
            samples = self.settled()
            drawn = self.ask("timeline", "-o", str(self.folder / "t.json"), str(self.out))
            logs = {rank: self.dump(rank) for rank in pids}
        finally:
            for pid in pids.values():
                os.kill(pid, signal.SIGCONT)
        self.assertEqual(len(logs), 2, drawn.stderr)
        for rank, log in logs.items():
            self.compare(samples, str(rank), log)

    def dump(self, rank: int) -> dict:
        path = self.out / "flight" / f"rank{rank}.flight"
        return json.loads(self.ask("dump", "--format", "json", str(path)).stdout)

    def compare(self, samples: Samples, rank: str, log: dict) -> None:
        marks = total(samples, "perftracker_marks_total", rank=rank)
        self.assertEqual(marks, log["marks"])
        # A collective is three records of a lane; those of a window are in another ring.
        recorded = sum(thread["records"] // 3 for thread in log["threads"])
        collectives = total(samples, "perftracker_collective_seconds_count", rank=rank)
        self.assertGreater(collectives, 40)
        self.assertEqual(collectives, recorded)
        for name in ("wait", "transfer"):
            known = total(samples, f"perftracker_collective_{name}_seconds_count", rank=rank)
            self.assertGreater(known, collectives / 2)
        ends = total(samples, "perftracker_marks_total", rank=rank, mark="dataloader_end")
        waits = total(samples, "perftracker_dataloader_wait_seconds_count", rank=rank)
        self.assertEqual(waits, ends)
        bucket = "perftracker_collective_seconds_bucket"
        self.assertEqual(total(samples, bucket, rank=rank, le="+Inf"), collectives)

    def test_other_parsers_read_the_metrics(self) -> None:
        self.await_total(1, "XPU_TIMER_COLL_KERNEL_AVG_LATENCY")
        pages = {accept: self.get(accept)[1] for accept in ("", OPEN_METRICS)}
        families = self.families_of_client(pages)
        tool = find_tool("promtool")
        if tool is None:
            self.skipTest("no promtool: see tools/fetch-prometheus")
        checked = subprocess.run(
            [tool, "check", "metrics"], input=pages[""], text=True, capture_output=True
        )
        self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))
        if families is None:
            self.skipTest("no prometheus_client: its parsers were not tried, promtool was")

    def families_of_client(self, pages: dict[str, str]) -> int | None:
        try:
            from prometheus_client import openmetrics, parser
            from prometheus_client.openmetrics import parser as open_parser
        except ImportError:
            return None
        del openmetrics
        found = []
        for read, text in (
            (parser.text_string_to_metric_families, pages[""]),
            (open_parser.text_string_to_metric_families, pages[OPEN_METRICS]),
        ):
            samples = [sample for family in read(text) for sample in family.samples]
            mine = parse(text)
            self.assertEqual({s.name for s in samples}, names_of(mine))
            self.assertEqual(len(samples), len(mine))
            found.append(len(samples))
        return sum(found)

    def test_prometheus_answers_every_query_of_the_dashboard(self) -> None:
        server, tool = find_tool("prometheus"), find_tool("promtool")
        if server is None or tool is None:
            self.skipTest("no prometheus: see tools/fetch-prometheus")
        rules = DEPLOY / "prometheus" / "perftracker.rules.yml"
        for words in (["rules", str(rules)], ["config", str(DEPLOY / "prometheus/prometheus.yml")]):
            subprocess.run([tool, "check", *words], check=True, capture_output=True)
        subprocess.run(
            [tool, "test", "rules", str(rules.with_name("perftracker.rules.test.yml"))],
            check=True, capture_output=True,
        )  # fmt: skip
        with self.prometheus(server, rules):
            self.await_query("count(perftracker_collective_bus_seconds_total offset 15s) > 0")
            empty, broken = self.run_dashboard()
            groups = self.query("rules", {})["groups"]
        self.assertEqual(broken, [])
        self.assertEqual(empty & FILLED, set())
        errors = [rule for group in groups for rule in group["rules"] if rule.get("lastError")]
        self.assertEqual(errors, [])
        self.assertGreaterEqual(sum(len(group["rules"]) for group in groups), 11)

    @contextlib.contextmanager
    def prometheus(self, server: str, rules: pathlib.Path) -> Iterator[None]:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        config = self.folder / "prometheus.yml"
        config.write_text(
            json.dumps(
                {
                    "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                    "rule_files": [str(rules)],
                    "scrape_configs": [
                        {
                            "job_name": "perftracker",
                            "file_sd_configs": [{"files": [str(self.out / "metrics.json")]}],
                        }
                    ],
                }
            )
        )
        command = [server, f"--config.file={config}", f"--storage.tsdb.path={self.folder}/tsdb"]
        command += [f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=error"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield
        finally:
            process.kill()
            process.wait()

    def query(self, what: str, parameters: dict[str, str]) -> dict:
        url = f"http://127.0.0.1:{self.port}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer)["data"]

    def await_query(self, expression: str, limit_s: float = 120) -> None:
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                if self.query("query", {"query": expression})["result"]:
                    return
            time.sleep(0.5)
        raise AssertionError(f"Prometheus has nothing for {expression}")

    def run_dashboard(self) -> tuple[set[str], list[str]]:
        """Titles of panels with a query that gives nothing; what Prometheus refuses."""
        board = json.loads((DEPLOY / "grafana" / "perftracker.json").read_text())
        empty, broken = set(), []
        items = [(p["title"], t["expr"]) for p in board["panels"] for t in p.get("targets", [])]
        items += [(a["name"], a["expr"]) for a in board["annotations"]["list"]]
        self.assertGreater(len(items), 20)
        for title, expression in items:
            plain = re.sub(r"\$(job|instance|rank)\b", ".*", expression)
            plain = plain.replace("$__rate_interval", "10s")
            self.assertNotIn("$", plain)
            try:
                if not self.query("query", {"query": plain})["result"]:
                    empty.add(title)
            except urllib.error.HTTPError as refused:
                broken.append(f"{title}: {refused.read().decode()}")
        return empty, broken


if __name__ == "__main__":
    unittest.main()
