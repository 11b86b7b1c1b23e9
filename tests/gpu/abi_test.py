# SPDX-License-Identifier: Apache-2.0
"""The declared ABI of NVIDIA's libraries against the real headers and the real libcupti of each
version of CUDA that tools/gpu-headers has fetched: layouts, numbers, names, symbols, lengths of
records.

    abi_test.py [--ask LIBCUPTI]    what that library says without a driver, as JSON

libcupti asks the driver for everything since 13.2: on a machine without one a double of it
(DOUBLE_DRIVER) makes it speak.
"""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "live"))

from live import CACHE, ROOT  # noqa: E402

KITS = CACHE / "gpu-headers"
CHECKS = (
    "src/agent/gpu/cupti/cupti_abi_check.c",
    "src/host/gpu/nvml_abi_check.c",
    "src/host/counters/pmsampling_abi_check.c",
    "tests/gpu/calls/abi_check.c",
)
# Records of activity: their list in cupti_abi_check.c, the first version compared, the kind.
RECORDS = {
    "Kernel": ("KERNELS", 5, 10),
    "Memcpy": ("MEMCPYS", 3, 1),
    "MemcpyPtoP": ("PEERS", 1, 22),
    "Memset": ("MEMSETS", 2, 2),
    "Overhead": ("OVERHEADS", 1, 17),
    "Synchronization": ("SYNCS", 1, 38),
    "API": ("APIS", 1, 5),
}
SINCE = {  # symbols that older versions lack
    "cuptiSubscribe_v2": (13, 0),
    "cuptiActivityEnableRuntimeApi": (12, 5),
    "cuptiActivityEnableDriverApi": (12, 5),
    "cuptiActivityEnableAllSyncRecords": (12, 8),
}
DRIVER = os.environ.get("DOUBLE_DRIVER", "")
SILENT_SINCE = (13, 2)  # without a driver
LAST_OF_OLDEST = 430  # calls with lower numbers are in all versions since 11.7
DOMAINS = {"DRIVER": 1, "RUNTIME": 2}


def number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def kits() -> list[pathlib.Path]:
    found = [path for path in KITS.glob("*.*") if (path / "include/cupti.h").exists()]
    return sorted(found, key=lambda path: number(path.name))


def source(path: str) -> str:
    return (ROOT / path).read_text()


def our_calls() -> list[tuple[str, int, str]]:
    """Domain, number and name of all calls that are recorded or watched."""
    text = source("src/agent/gpu/cupti/cupti_calls.h")
    listed = re.findall(r'X\((\w+), (\d+), "(\w+)"\)', text)
    calls = [(domain, int(call), name) for domain, call, name in listed]
    header = source("src/agent/gpu/cupti/cupti_abi.h")
    for words, call in re.findall(r"CUPTI_DRIVER_((?:BEGIN|END)_\w+) = (\d+),", header):
        name = "".join(word.title() for word in words.split("_") if word not in ("V2", "PTSZ"))
        calls.append(("DRIVER", int(call), f"cuStream{name}"))
    return [*calls, ("DRIVER", 2, "cuDriverGetVersion")]


def header_calls(kit: pathlib.Path, domain: str) -> dict[int, str]:
    text = (kit / f"include/cupti_{domain.lower()}_cbid.h").read_text()
    found = re.findall(rf"CUPTI_{domain}_TRACE_CBID_(cu\w+) *= *(\d+)", text)
    return {int(call): name for name, call in found}


def is_version_of(found: str | None, name: str) -> bool:
    """cudaMalloc_v3020 is cudaMalloc, cudaMallocHost is not; "cuda271": it is retired (13.5)."""
    return not found or re.fullmatch(rf"{name}(_\w+)?|cuda\d+", found) is not None


def struct_versions(kit: pathlib.Path, name: str) -> list[str]:
    text = "".join(path.read_text() for path in (kit / "include").glob("cupti_activity*.h"))
    last = {int(n or 1) for n in re.findall(rf"^}} *CUpti_Activity{name}(\d*);", text, re.M)}
    first = RECORDS[name][1]
    return [f"CUpti_Activity{name}{n if n > 1 else ''}" for n in sorted(last) if n >= first]


def compile_with(kit: pathlib.Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = shlex.split(os.environ.get("CC") or "cc")
    command += ["-std=gnu17", "-D_GNU_SOURCE", "-isystem", str(kit / "include")]
    for folder in ("src", "tests/gpu/doubles"):
        command += ["-I", str(ROOT / folder)]
    command += ["-isystem", str(ROOT / "tests/gpu/shim"), *words]
    return subprocess.run(command, capture_output=True, text=True)


def first_error(text: str) -> str:
    return next((line for line in text.splitlines() if "error" in line), text)


def sizes(kit: pathlib.Path) -> dict[str, int]:
    """Bytes of each record, as the compiler sees the headers."""
    names = [name for record in RECORDS for name in struct_versions(kit, record)]
    lines = "".join(f'printf("{name} %zu\\n", sizeof({name}));' for name in names)
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch, "sizes.c")
        path.write_text(f"#include <stdio.h>\n#include <cupti.h>\nint main(void) {{ {lines} }}\n")
        program = str(path.with_suffix(""))
        done = compile_with(kit, str(path), "-o", program)
        if done.returncode != 0:
            raise AssertionError(first_error(done.stderr))
        text = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return {name: int(size) for name, size in (line.split() for line in text.splitlines())}


# --- in a process of its own ---


def record_bytes(library: ctypes.CDLL, kind: int) -> int:
    """By what the library steps from one record of a kind to the next."""
    words = (ctypes.c_uint32 * 1024)(*[kind] * 1024)
    at = ctypes.c_void_p()
    begin = ctypes.cast(words, ctypes.c_void_p)
    size = ctypes.c_size_t(ctypes.sizeof(words))
    for _ in range(2):
        if library.cuptiActivityGetNextRecord(begin, size, ctypes.byref(at)) != 0:
            return 0
    return (at.value or 0) - (begin.value or 0)


def ask(path: str) -> dict:
    library = ctypes.CDLL(path)
    version = ctypes.c_uint32()
    if library.cuptiGetVersion(ctypes.byref(version)) != 0:
        return {}
    names = {}
    for domain, call, _ in our_calls():
        text = ctypes.c_char_p()
        library.cuptiGetCallbackName(DOMAINS[domain], call, ctypes.byref(text))
        names[f"{domain} {call}"] = (text.value or b"").decode()
    lengths = {name: record_bytes(library, kind) for name, (_, _, kind) in RECORDS.items()}
    return {"version": version.value, "names": names, "lengths": lengths}


def ask_apart(kit: pathlib.Path) -> dict:
    """Without a driver 13.2 does not refuse but crash."""
    command = [sys.executable, __file__, "--ask", str(real_library(kit))]
    env = {**os.environ, "LD_PRELOAD": DRIVER, "CUDA_DOUBLE_TABLE": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def real_library(kit: pathlib.Path) -> pathlib.Path:
    return next((kit / "lib").glob("libcupti.so.*"))


class Abi(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.kits = kits()
        if not cls.kits:
            raise unittest.SkipTest("no headers of CUDA: run tools/gpu-headers")

    def test_layouts_are_those_of_every_version_of_the_headers(self) -> None:
        for kit in self.kits:
            lists = []
            for record, (macro, _, _) in RECORDS.items():
                names = " ".join(f"X({name})" for name in struct_versions(kit, record))
                self.assertTrue(names, f"{kit.name}: {record}")
                lists.append(f"-D{macro}(X)={names}")
            for check in CHECKS:
                with self.subTest(cuda=kit.name, check=check):
                    done = compile_with(kit, "-fsyntax-only", *lists, str(ROOT / check))
                    self.assertEqual(done.returncode, 0, first_error(done.stderr))

    def test_numbers_of_calls_are_those_of_the_headers(self) -> None:
        for kit in self.kits:
            theirs = {domain: header_calls(kit, domain) for domain in DOMAINS}
            for domain, call, name in our_calls():
                with self.subTest(cuda=kit.name, call=name):
                    found = theirs[domain].get(call)
                    self.assertTrue(found or kit != self.kits[-1], "the newest lacks it")
                    self.assertTrue(is_version_of(found, name), found)

    def test_calls_are_those_that_programs_of_today_make(self) -> None:
        """Of which CUPTI knows the parameters; numbers of calls of old come with other names."""
        bare = {"cuCtxSynchronize", "cudaDeviceSynchronize"}  # have none
        for kit in self.kits:
            found = set()
            for domain, header in (("DRIVER", ""), ("RUNTIME", "_runtime_api")):
                meta = (kit / f"include/generated_cuda{header}_meta.h").read_text()
                known = set(re.findall(r"struct (\w+)_params_st", meta))
                theirs = header_calls(kit, domain)
                calls = [call for call in our_calls() if call[0] == domain]
                found |= {name for _, call, name in calls if theirs.get(call) in known}
            with self.subTest(cuda=kit.name):
                names = {name for _, call, name in our_calls() if call < LAST_OF_OLDEST}
                self.assertEqual(names - found - bare, set())

    def test_symbols_are_in_every_library_since_they_are_known(self) -> None:
        text = source("src/agent/gpu/cupti/cupti_library.c")
        symbols = re.findall(r'CUPTI(_MAYBE)?\(\w+, "(\w+)"\)', text)
        self.assertGreater(len(symbols), 15)
        for kit in self.kits:
            path = real_library(kit)
            self.assertIn(f'"{path.name}"', text)
            library = ctypes.CDLL(str(path))
            for optional, symbol in symbols:
                with self.subTest(cuda=kit.name, symbol=symbol):
                    expected = number(kit.name) >= SINCE.get(symbol, (0,))
                    self.assertEqual(hasattr(library, symbol), expected)
                    self.assertTrue(expected or optional)

    def test_version_numbers_are_as_declared(self) -> None:
        text = source("src/agent/gpu/cupti/cupti_abi.h")
        ours = re.findall(r"define CUPTI_VERSION_(\d+)_(\d+)(_1)? (\d+)u", text)
        self.assertEqual(len(ours), 4)
        for kit in self.kits:
            header = (kit / "include/cupti_version.h").read_text()
            theirs = int(re.search(r"define CUPTI_API_VERSION (\d+)", header)[1])
            for major, minor, update, least in ours:
                with self.subTest(cuda=kit.name, least=least):
                    is_later = number(kit.name) >= (int(major), int(minor))
                    self.assertEqual(theirs >= int(least), is_later, f"{theirs} {update}")

    def test_the_libraries_say_the_same_as_the_headers(self) -> None:
        spoke = 0
        for kit in self.kits:
            said = ask_apart(kit)
            if not said and not DRIVER and number(kit.name) >= SILENT_SINCE:
                continue
            self.assertTrue(said, kit.name)
            spoke += 1
            header = (kit / "include/cupti_version.h").read_text()
            self.assertIn(f"define CUPTI_API_VERSION {said['version']}\n", header)
            newest = sizes(kit)
            for record, length in said["lengths"].items():
                with self.subTest(cuda=kit.name, record=record):
                    self.assertEqual(length, newest[struct_versions(kit, record)[-1]])
            for domain, call, name in our_calls():
                with self.subTest(cuda=kit.name, call=name):
                    found = said["names"][f"{domain} {call}"]
                    self.assertTrue(is_version_of(found, name), found)
        if spoke == 0:
            self.skipTest("no library that answers without a driver")

    def test_records_of_the_double_are_as_long_as_real_ones(self) -> None:
        text = source("tests/gpu/doubles/libcupti_records.c")
        bytes_of = [int(n) for n in re.search(r"bytes\[\] = \{ ([\d, ]+) \}", text)[1].split(", ")]
        theirs = sizes(self.kits[-1])
        for version, length in enumerate(bytes_of, start=5):
            name = f"CUpti_ActivityKernel{version}"
            self.assertEqual(length, theirs.get(name, length), name)
        others = [int(n) for n in re.findall(r"\broom\((?:kind == \w+ \? )?(\d+)", text)]
        self.assertGreater(len(others), 1)
        self.assertLessEqual(set(others), set(theirs.values()))


if __name__ == "__main__":
    if "--ask" in sys.argv:
        print(json.dumps(ask(sys.argv[2])))
    else:
        unittest.main()
