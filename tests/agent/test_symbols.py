# SPDX-License-Identifier: Apache-2.0
"""What the agent library imports and exports.

Arguments: the library; "calls" if it was built with -Dgpu_calls=true.
"""

import re
import subprocess
import sys
from typing import List, Tuple

GLIBC = (2, 17)  # the oldest C library that it is loaded into

# Of libc: nothing that ends the process, prints, waits, or allocates while the job runs.
IMPORTS = {
    "__errno_location",
    "__register_atfork",
    "__stack_chk_fail",
    "access",
    "clock_gettime",
    "close",
    "connect",
    "dl_iterate_phdr",
    "dladdr",
    "dlclose",
    "dlopen",
    "dlsym",
    "dlvsym",
    "ftruncate",
    "ftruncate64",
    "getenv",
    "getpid",
    "getrlimit",
    "getrlimit64",
    "madvise",
    "memcmp",
    "memcpy",
    "memset",
    "mmap",
    "mmap64",
    "munmap",
    "open",
    "open64",
    "prctl",
    "pread",
    "pread64",
    "process_vm_readv",
    "pthread_self",
    "pthread_attr_destroy",
    "pthread_attr_init",
    "pthread_attr_setdetachstate",
    "pthread_attr_setstacksize",
    "pthread_create",
    "realpath",
    "sched_yield",
    "sendmsg",
    "setenv",
    "sigfillset",
    "sigprocmask",
    "socket",
    "strchr",
    "strcmp",
    "strcspn",
    "strlen",
    "strncmp",
    "strnlen",
    "strrchr",
    "strstr",
    "syscall",
    # Weak: what the process has of Python.
    "PyCode_Type",
    "PyInterpreterState_Main",
    "PyThreadState_Get",
    "PyUnicode_FromString",
    "Py_DecRef",
    "Py_GetVersion",
    "Py_IsInitialized",
    "_PyRuntime",
    # Weak, from the compiler's start files.
    "_ITM_deregisterTMCloneTable",
    "_ITM_registerTMCloneTable",
    "__cxa_finalize",
    "__gmon_start__",
}
# Outside libc.so.6 before glibc 2.34: a program without threads must start without them.
WEAK = {
    "dladdr",
    "dlclose",
    "dlopen",
    "dlsym",
    "dlvsym",
    "pthread_attr_setstacksize",
    "pthread_create",
}
GEMMS = {
    *(f"cublas{type}gemm_v2" for type in "CDSZ"),
    *(f"cublas{type}gemm{batch}" for type in "CDHSZ" for batch in ("Batched", "StridedBatched")),
    *(f"cublasCgemm3m{kind}" for kind in ("", "Batched", "Ex", "StridedBatched")),
    *(f"cublasGemm{batch}Ex" for batch in ("", "Batched", "GroupedBatched", "StridedBatched")),
    "cublasCgemmEx",
    "cublasDgemmGroupedBatched",
    "cublasHgemm",
    "cublasSgemmEx",
    "cublasSgemmGroupedBatched",
    "cublasZgemm3m",
}
# Of a build with gpu_calls: functions of GPU libraries that are counted.
CALLS = {
    *GEMMS,
    *(f"{name}_64" for name in GEMMS),
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cublasLtMatmul",
    "cudaLaunchKernel",
    "cudaLaunchKernelExC",
    "ncclAllGather",
    "ncclAllReduce",
    "ncclBroadcast",
    "ncclGroupEnd",
    "ncclGroupStart",
    "ncclRecv",
    "ncclReduce",
    "ncclReduceScatter",
    "ncclSend",
}
EXPORTS = {
    "InitializeInjection",
    "ncclProfiler_v1",
    "ncclProfiler_v2",
    "ncclProfiler_v3",
    "ncclProfiler_v4",
    "ncclProfiler_v5",
    "ncclProfiler_v6",
    "ncclProfiler_v7",
    "pt_agent_absent",
    "pt_agent_begun",
    "pt_agent_builtins",
    "pt_agent_bye",
    "pt_agent_check_operators",
    "pt_agent_disable",
    "pt_agent_done",
    "pt_agent_enabled",
    "pt_agent_expect_collectives",
    "pt_agent_group",
    "pt_agent_child",
    "pt_agent_mark",
    "pt_agent_missed",
    "pt_agent_open_operators",
    "pt_agent_open_stacks",
    "pt_agent_order",
    "pt_agent_order_source",
    "pt_agent_run",
    "pt_agent_start",
    "pt_agent_step",
    "pt_agent_training_thread",
    "pt_agent_watch_dispatch",
    "pt_agent_window_close",
    "pt_agent_window_complete",
    "pt_agent_window_open",
    "rocprofiler_configure",
}


def output(*command: str) -> List[str]:
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


def versions(lines: List[str]) -> List[Tuple[int, ...]]:
    """Of glibc, needed by any symbol."""
    found = re.findall(r"@GLIBC_([0-9.]+)", "\n".join(lines))
    return [tuple(int(part) for part in version.split(".")) for version in found]


def main() -> int:
    library = sys.argv[1]
    expected = EXPORTS | (CALLS if "calls" in sys.argv[2:] else set())
    lines = output("nm", "-D", library)
    symbols = [(line.split()[-1].split("@")[0], line.split()[-2]) for line in lines]
    imports = {name for name, kind in symbols if kind in "Uw"}
    exports = {name for name, kind in symbols if kind not in "Uw"}
    strong = {name for name, kind in symbols if kind == "U"}
    needed = [line for line in output("readelf", "-d", library) if "NEEDED" in line]
    libraries = {line.split("[")[1].split("]")[0] for line in needed}
    problems = [
        "not on the list of imports: %s" % sorted(imports - IMPORTS),
        "must be weak: %s" % sorted(strong & WEAK),
        "newer than glibc %d.%d: %s" % (*GLIBC, [v for v in versions(lines) if v > GLIBC]),
        "exports differ by: %s" % sorted(exports ^ expected),
        "linked besides libc: %s" % sorted(libraries - {"libc.so.6"}),
    ]
    if not versions(lines):
        problems.append("no version of glibc was found")
    problems = [problem for problem in problems if not problem.endswith("[]")]
    print("\n".join(problems) or "ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
