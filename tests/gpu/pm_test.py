# SPDX-License-Identifier: Apache-2.0
"""The sampler of hardware counters and its keeper, on doubles of CUDA, CUPTI, NVML and DCGM."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
import threading
import time
import unittest
import urllib.request
from collections.abc import Callable, Iterator

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "live"))

from live import PROGRAM, LiveTest, children  # noqa: E402

LIMIT_S = 60  # what is awaited comes in less, on a machine that does nothing else
OWN = ("--gpu-samples", "own")
FINE = ("cores_active", "pcie_tx_rate")  # 10,000 a second; the others are means of 10 ms
KHZ = ("cores_active", "matrix_active", "pcie_tx_rate", "link_rx_rate")

# A DCGM that holds the counters while HELD is there, and logs its calls.
DCGMI = """#!/bin/sh
echo "$*" >>{folder}/calls
case "$2" in
--pause) mv {folder}/held {folder}/paused ;;
--resume) mv {folder}/paused {folder}/held ;;
esac
"""


def wait_for(what: Callable[[], object], said: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not what():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {LIMIT_S} s: {said}")
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rsplit(")", 1)[1].split()[0] not in "ZX"


class PmTest(LiveTest):
    def setUp(self) -> None:
        super().setUp()
        self.pm = os.environ.get("PM_DOUBLE_DIR", "")
        if not os.path.exists(f"{self.pm}/libcupti.so.13"):
            self.skipTest("no doubles: meson test gpu-pmsampler")
        self.nvml = os.environ["NVML_DOUBLE_DIR"]
        self.env.update(LD_LIBRARY_PATH=f"{self.nvml}:{self.pm}", PM_DOUBLE_DO="live")

    def dcgm(self) -> None:
        """A device whose counters are DCGM's."""
        program = self.folder / "dcgmi"
        program.write_text(DCGMI.format(folder=self.folder))
        program.chmod(stat.S_IRWXU)
        self.held = self.folder / "held"
        self.held.touch()
        self.env.update(
            PATH=f"{self.folder}:{os.environ['PATH']}", PM_DOUBLE_DO="live held",
            PM_DOUBLE_HELD=str(self.held), PM_DOUBLE_CHIP="GA100",
        )  # fmt: skip

    def dcgm_calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().split("\n")[:-1] if path.exists() else []


class Sampler(PmTest):
    """`perftracker gpu-sampler` itself."""

    def setUp(self) -> None:
        super().setUp()
        self.share = self.folder / "share"
        self.share.mkdir()

    @contextlib.contextmanager
    def sampler(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        process = subprocess.Popen(
            [PROGRAM, "gpu-sampler", *words, str(self.share)],
            stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env,
        )  # fmt: skip
        try:
            yield process
        finally:
            left = [process.pid, *self.child_of(process)]
            process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.01)
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()
            process.stderr.close()

    def child_of(self, process: subprocess.Popen[bytes]) -> list[int]:
        try:
            return children(process.pid)
        except OSError:
            return []

    def test_missing_cuda_is_reported_at_the_start(self) -> None:
        self.env.pop("LD_LIBRARY_PATH", None)
        # Not here: the doubles are on this process's own path.
        look = [sys.executable, "-c", "import ctypes; ctypes.CDLL('libcuda.so.1')"]
        if subprocess.run(look, env=self.env, stderr=subprocess.DEVNULL).returncode == 0:
            self.skipTest("this machine has a driver")
        with self.sampler() as process:
            said = process.stderr.readline().decode()
        self.assertIn("no libcuda.so.1: nothing can be sampled", said)

    def pieces(self) -> list[pathlib.Path]:
        return sorted(self.share.glob("samples/[0-9a-f]*.sidecar"))

    def dump(self, piece: pathlib.Path) -> dict:
        answer = self.ask("dump", "--format", "json", str(piece))
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return json.loads(answer.stdout)

    def await_samples(self) -> dict:
        """A piece with samples of both devices."""
        found: list[dict] = []

        def look() -> bool:
            for piece in self.pieces()[-3:]:
                with contextlib.suppress(AssertionError):  # removed meanwhile
                    sidecar = self.dump(piece)
                    if sidecar["gpus"] and all(gpu["metrics"] for gpu in sidecar["gpus"]):
                        found.append(sidecar)
                        return True
            return False

        wait_for(look, "samples")
        return found[0]

    def reasons(self) -> set[str]:
        wait_for(self.pieces, "a piece")
        return {gpu["why"] for piece in self.pieces() for gpu in self.dump(piece)["gpus"]}

    def end(self, process: subprocess.Popen[bytes]) -> int:
        process.stdin.close()
        return process.wait(LIMIT_S)

    def test_both_devices_are_sampled_and_all_is_removed(self) -> None:
        with self.sampler("--window") as process:
            sidecar = self.await_samples()
            self.assertEqual([gpu["index"] for gpu in sidecar["gpus"]], [0, 1])
            self.assertEqual({gpu["why"] for gpu in sidecar["gpus"]}, {""})
            for metric in KHZ:
                self.assertIn(metric, sidecar["gpus"][1]["metrics"])
            self.assertAlmostEqual(sidecar["gpus"][0]["metrics"]["cores_active"]["mean"], 0.5, 1)
            self.assertEqual(self.end(process), 0)
        self.assertFalse(self.share.exists(), "it was made for one window")

    def test_an_overflow_slows_the_sampler_and_is_reported(self) -> None:
        self.env["PM_DOUBLE_DO"] = "live overflow"
        with self.sampler("--window") as process:
            self.await_samples()
            wait_for(
                lambda: "1000 Hz: 10000 were too many" in self.reasons(), "the lower frequency"
            )
            self.assertEqual(self.end(process), 0)

    def test_a_missing_permission_is_reported(self) -> None:
        self.env["PM_DOUBLE_DO"] = "live refuse"
        with self.sampler("--window") as process:
            self.assertEqual(self.reasons(), {"PM sampling: needs CAP_SYS_ADMIN (CUPTI: 35)"})
            self.assertEqual(self.end(process), 10)

    def test_missing_cuda_is_reported(self) -> None:
        self.env["LD_LIBRARY_PATH"] = self.nvml
        with self.sampler("--window") as process:
            self.assertEqual(self.reasons(), {"no libcuda.so.1"})
            self.assertEqual(self.end(process), 10)

    def test_a_crashing_library_is_reported_and_dcgm_resumed(self) -> None:
        self.dcgm()
        self.env["PM_DOUBLE_DO"] += " crash"
        with self.sampler("--window") as process:
            wait_for(lambda: len(self.dcgm_calls()) == 2, "DCGM is resumed")
            wait_for(
                lambda: "PM sampling: its process crashed (signal 11)" in self.reasons(), "a word"
            )
            wait_for(self.held.exists, "DCGM has its counters back")
            self.assertEqual(self.end(process), 11)

    def test_a_library_that_hangs_is_killed_and_dcgm_resumed(self) -> None:
        self.dcgm()
        self.env["PM_DOUBLE_DO"] += " hang"
        sign = self.folder / "hung"
        self.env["PM_DOUBLE_SIGN"] = str(sign)
        with self.sampler("--window") as process:
            wait_for(sign.exists, "a hang")
            self.assertEqual(self.dcgm_calls(), ["profile --pause"])
            self.assertEqual(self.end(process), 12)
        self.assertEqual(self.dcgm_calls(), ["profile --pause", "profile --resume"])

    def test_dcgm_is_paused_for_a_window(self) -> None:
        self.dcgm()
        with self.sampler("--window") as process:
            self.await_samples()
            self.assertFalse(self.held.exists())
            self.assertEqual(self.end(process), 0)
        self.assertEqual(self.dcgm_calls(), ["profile --pause", "profile --resume"])
        self.assertTrue(self.held.exists())

    def test_from_hopper_on_dcgm_is_left_alone(self) -> None:
        self.dcgm()
        self.env["PM_DOUBLE_CHIP"] = "EASY"
        with self.sampler("--window") as process:
            self.assertEqual(
                self.reasons(), {"PM sampling: another tool has the counters (CUPTI: 7)"}
            )
            self.assertEqual(self.end(process), 10)
        self.assertEqual(self.dcgm_calls(), [])

    def test_dcgm_is_resumed_when_the_sampler_is_killed(self) -> None:
        self.dcgm()
        with self.sampler("--window") as process:
            self.await_samples()
            os.kill(children(process.pid)[0], signal.SIGKILL)
            wait_for(self.held.exists, "DCGM has its counters back")
            self.assertEqual(self.end(process), 11)
        self.assertEqual(self.dcgm_calls(), ["profile --pause", "profile --resume"])

    def test_dcgm_is_resumed_when_the_keeper_is_killed(self) -> None:
        self.dcgm()
        with self.sampler("--window") as process:
            self.await_samples()
            sampler = children(process.pid)[0]
            process.kill()
            wait_for(self.held.exists, "DCGM has its counters back")
            wait_for(lambda: not alive(sampler), "the sampler's end")
        self.assertEqual(self.dcgm_calls(), ["profile --pause", "profile --resume"])

    def kill_both(self, *words: str) -> None:
        """Leaves DCGM paused."""
        self.dcgm()
        with self.sampler(*words) as process:
            self.await_samples()
            sampler = children(process.pid)[0]
            os.kill(process.pid, signal.SIGSTOP)  # so that it sees nothing
            os.kill(sampler, signal.SIGKILL)
            process.kill()
            process.wait()
        self.assertFalse(self.held.exists(), "no process is left to resume DCGM")

    @contextlib.contextmanager
    def wished(self) -> Iterator[None]:
        """A reader that wants samples all the time."""
        done = threading.Event()

        def wish() -> None:
            while not done.wait(0.1):
                with contextlib.suppress(FileNotFoundError):
                    (self.share / "wanted" / "request").touch()

        thread = threading.Thread(target=wish)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def test_dcgm_is_resumed_by_the_container_after_a_standing_sampler(self) -> None:
        with self.wished():
            self.kill_both()
        # Another file system, and by chance the numbers of the dead.
        self.env["XDG_RUNTIME_DIR"] = str(self.folder / "another")
        note = self.share / "paused" / "note"
        note.write_text(f"{os.getpid()}\n")
        with self.sampler():
            wait_for(self.held.exists, "DCGM has its counters back")
            wait_for(lambda: not note.exists(), "the note is removed")
        self.assertEqual(self.dcgm_calls(), ["profile --pause", "profile --resume"])

    def test_dcgm_is_left_to_a_standing_sampler_of_another_container(self) -> None:
        self.dcgm()
        with self.wished(), self.sampler() as first:
            self.await_samples()
            note = self.share / "paused" / "note"
            note.write_text("2147483632\n")  # there is no such process here
            self.env["XDG_RUNTIME_DIR"] = str(self.folder / "another")
            with self.sampler() as second:
                wait_for((self.folder / "another").exists, "it has looked for other notes")
                second.terminate()
                self.assertEqual(second.wait(LIMIT_S), 0)
            self.assertEqual(self.dcgm_calls(), ["profile --pause"])
            first.terminate()
            self.assertEqual(first.wait(LIMIT_S), 0)
        self.assertEqual(self.dcgm_calls(), ["profile --pause", "profile --resume"])

    def test_dcgm_is_resumed_by_the_next_sampler_when_both_are_killed(self) -> None:
        self.kill_both("--window")
        self.env["PM_DOUBLE_DO"] = "live refuse"
        with self.sampler("--window") as process:
            wait_for(self.held.exists, "DCGM has its counters back")
            self.end(process)
            self.assertIn(b"event=counters-given-back tool=dcgm", process.stderr.read())
        self.assertEqual(self.dcgm_calls(), ["profile --pause", "profile --resume"])

    def test_dcgm_is_resumed_by_the_next_job_when_both_are_killed(self) -> None:
        self.kill_both("--window")
        with self.job(*OWN, "--", "sleep", str(LIMIT_S)):
            wait_for(self.held.exists, "DCGM has its counters back")
        self.assertEqual(self.dcgm_calls(), ["profile --pause", "profile --resume"])

    def test_dcgm_is_resumed_by_the_next_job_though_that_samples_nothing(self) -> None:
        self.kill_both("--window")
        with self.job("--", "sleep", str(LIMIT_S)):
            wait_for(self.held.exists, "DCGM has its counters back")
        self.assertEqual(self.dcgm_calls(), ["profile --pause", "profile --resume"])

    def test_dcgm_is_resumed_once_though_two_find_it_paused(self) -> None:
        self.kill_both("--window")
        self.env["PM_DOUBLE_DO"] = "live refuse"
        with self.sampler() as first, self.sampler() as second:
            wait_for(self.held.exists, "DCGM has its counters back")
            for process in (first, second):
                process.terminate()
                process.wait(LIMIT_S)
        self.assertEqual(self.dcgm_calls(), ["profile --pause", "profile --resume"])

    def test_a_standing_sampler_samples_on_request(self) -> None:
        wish = self.share / "wanted" / "request"
        with self.sampler() as process:
            wait_for(
                lambda: wish.parent.exists() and wish.parent.stat().st_mode & 0o7777 == 0o1777,
                "a place for anybody's wishes",
            )
            self.assertEqual(self.pieces(), [])
            wish.touch()
            self.await_samples()
            wish.unlink()
            wait_for(lambda: not self.child_of(process), "the sampler's end")
            wish.touch()
            wait_for(lambda: self.child_of(process), "another sampler")
            process.terminate()
            self.assertEqual(process.wait(LIMIT_S), 0)
        self.assertTrue(self.share.exists())
        self.assertFalse((self.share / "samples").exists())

    def test_a_folder_of_others_is_refused(self) -> None:
        (self.share / "samples").symlink_to("/tmp")
        with self.sampler() as process:
            self.assertEqual(process.wait(LIMIT_S), 1)
            self.assertIn(b"samples", process.stderr.read())


class Job(PmTest):
    """A job of two ranks with a GPU each, slow from iteration 60 on: its window takes 3 s."""

    WORDS = (
        "--recent", "10", "--learn", "3", "--slowdown", "150", "--min-gap", "1000",
        "--window", "3", "--steps", "50", "--no-audit", "--keep-traces",
    )  # fmt: skip
    JOB = (
        "--", sys.executable, str(HERE / "pm" / "gpu_job.py"),
        "--world", "2", "--slow-at", "60", "--slow-factor", "3.5",
    )  # fmt: skip

    def play(self, *words: str, samples: tuple[str, ...] = OWN, iterations: int = 150) -> dict:
        """The GPU of rank 1 as its sidecar has it; self.absent: what the report misses of GPUs."""
        job = (*self.JOB, "--iterations", str(iterations), *self.until_report())
        done = self.run_job(*self.WORDS, *samples, *words, *job, limit_s=LIMIT_S * 2)
        self.said = done.stderr.decode()
        self.assertEqual((done.returncode, done.stdout), (0, b"job done\n"), self.said)
        coverage = self.report("report-1.json")["coverage"]
        self.assertEqual(coverage["workers_analyzed"], 2)
        self.absent = [a for a in coverage["sources_absent"] if "GPU" in a["source"]]
        self.assertEqual(list(self.folder.glob("perftracker/*.gpus")), [], "nothing is left")
        (gpu,) = self.dump(self.out / "traces" / "1-1.json.sidecar")["gpus"]
        return gpu

    def dump(self, path: pathlib.Path) -> dict:
        answer = self.ask("dump", "--format", "json", str(path))
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return json.loads(answer.stdout)

    def kernel(self) -> dict:
        found = self.dump(self.out / "fingerprints" / "1" / "rank1.ptfp")
        (kernel,) = (f for f in found["functions"] if "gemm" in json.dumps(f))
        return kernel

    def test_samples_of_the_counters_become_mu_and_sigma(self) -> None:
        gpu = self.play()
        self.assertEqual((gpu["index"], gpu["why"]), (1, ""))
        for metric in KHZ:  # 100 a second less the start; GPM would give 9
            self.assertGreater(gpu["metrics"][metric]["samples"], 100, metric)
        for metric in FINE:
            self.assertGreater(gpu["metrics"][metric]["samples"], 10000, metric)
        self.assertLess(gpu["metrics"]["matrix_active"]["samples"], 1000)
        self.assertEqual(gpu["metrics"]["power"]["mean"], 650)  # NVML's goes on
        self.assertEqual(self.absent, [])
        self.assertAlmostEqual(self.kernel()["mu"], 0.5, 1)
        self.assertIsNotNone(self.kernel()["sigma"])

    def test_unasked_no_sampler_is_started_and_dcgm_not_called(self) -> None:
        self.dcgm()
        self.env["PM_DOUBLE_DO"] += " hang"
        sign = self.folder / "hung"
        self.env["PM_DOUBLE_SIGN"] = str(sign)
        for samples in ((), ("--gpu-samples", "none")):
            with self.subTest(samples=samples):
                gpu = self.play(samples=samples)
                self.assertEqual((self.dcgm_calls(), sign.exists()), ([], False))
                self.assertTrue(self.held.exists())
                self.assertEqual((gpu["why"], self.absent), ("", []))
                self.assertLess(gpu["metrics"]["cores_active"]["samples"], 50)  # GPM's
        self.play()  # as it would have been seen
        self.assertEqual((self.dcgm_calls()[:1], sign.exists()), (["profile --pause"], True))

    def test_without_permission_slower_samples_are_used_and_reported(self) -> None:
        self.env["PM_DOUBLE_DO"] = "live refuse"
        gpu = self.play()
        self.assertEqual(gpu["why"], "PM sampling: needs CAP_SYS_ADMIN (CUPTI: 35)")
        self.assertIn("cores_active", gpu["metrics"])
        why = gpu["why"] + "; ten samples a second in their place"
        self.assertEqual(self.absent, [{"source": "counters of GPU 0-1", "why": why}])
        # And so does the report that is made later, of the traces that were kept.
        answer = self.ask("analyze", "--format", "json", str(self.out / "traces"))
        self.assertEqual(answer.returncode, 0, answer.stderr)
        later = json.loads(answer.stdout)["coverage"]["sources_absent"]
        self.assertEqual([a for a in later if "GPU" in a["source"]], self.absent)

    def test_a_library_that_crashes_or_hangs_costs_its_samples_alone(self) -> None:
        for fault, why in (("crash", "crashed (signal 11)"), ("hang", "fell silent")):
            with self.subTest(fault=fault):
                self.env["PM_DOUBLE_DO"] = f"live {fault}"
                gpu = self.play(iterations=260)  # long enough for it to be killed
                self.assertIn(why, gpu["why"])
                self.assertIn("cores_active", gpu["metrics"])
                self.assertIn("event=gpu-sampler-ended", self.said)

    def test_metrics_export_the_gpus_and_the_sampler(self) -> None:
        def page() -> str:
            try:
                (target,) = json.loads((self.out / "metrics.json").read_text())[0]["targets"]
                with urllib.request.urlopen(f"http://{target}/metrics", timeout=LIMIT_S) as answer:
                    return answer.read().decode()
            except OSError:
                return ""  # not yet

        with self.job("--metrics", "0", *self.WORDS, *OWN, *self.JOB, "--iterations", "2000"):
            for line in (
                'perftracker_gpu_power_watts{gpu="1"} 650',
                'perftracker_gpu_device_info{gpu="1",name="NVIDIA H100 80GB HBM3",uuid="00000001-',
                'perftracker_gpu_counters_sampled{gpu="1"} 1',
                'perftracker_gpu_active_ratio{gpu="1",part="cores"} 0.5',
                'perftracker_gpu_samplers_total{how="started"} 1',
                'perftracker_gpu_counters_sampled{gpu="1"} 0',  # the window is over
            ):
                wait_for(lambda line=line: line in page(), line)
            self.assertNotIn("perftracker_gpu_active_ratio{", page())

    def test_dcgm_is_resumed_when_the_daemon_is_killed(self) -> None:
        self.dcgm()
        with self.job(*self.WORDS, *OWN, *self.JOB) as job:
            wait_for(lambda: not self.held.exists(), "DCGM is paused")
            (daemon,) = (
                pid for pid in children(job.pid)
                if pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().startswith(PROGRAM.encode())
            )  # fmt: skip
            os.kill(daemon, signal.SIGKILL)
            wait_for(self.held.exists, "DCGM has its counters back")
        self.assertEqual(self.dcgm_calls(), ["profile --pause", "profile --resume"])

    def test_a_container_without_privileges_gets_what_another_one_samples(self) -> None:
        share = self.folder / "share"
        share.mkdir()
        sampler = subprocess.Popen([PROGRAM, "gpu-sampler", str(share)], env=self.env)
        try:
            wait_for((share / "wanted").exists, "the sampler")
            self.env["LD_LIBRARY_PATH"] = self.nvml  # no CUDA, no CUPTI
            gpu = self.play(samples=("--gpu-samples", str(share)))
            self.assertEqual((gpu["index"], gpu["why"]), (1, ""))
            self.assertGreater(gpu["metrics"]["cores_active"]["samples"], 100)
            del self.env["LD_LIBRARY_PATH"]  # no NVML either
            gpu = self.play(samples=("--gpu-samples", str(share)))
            self.assertEqual((gpu["index"], gpu["why"]), (1, ""))
            self.assertGreater(gpu["metrics"]["cores_active"]["samples"], 100)
            self.assertEqual(list((share / "wanted").iterdir()), [], "the wish is taken back")
        finally:
            sampler.terminate()
            self.assertEqual(sampler.wait(LIMIT_S), 0)

    def test_a_folder_without_a_writer_is_reported(self) -> None:
        gpu = self.play(samples=("--gpu-samples", str(self.folder / "nowhere")))
        self.assertIn("no sampler writes", gpu["why"])
        self.assertIn("cores_active", gpu["metrics"])


if __name__ == "__main__":
    unittest.main()
