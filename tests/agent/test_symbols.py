# SPDX-License-Identifier: Apache-2.0
"""What the agent library needs from others and shows to others. Argument: the library."""

import subprocess
import sys

# Of libc: nothing that ends the process, prints, allocates or waits.
IMPORTS = {
    "__errno_location",
    "__register_atfork",
    "__stack_chk_fail",
    "clock_gettime",
    "close",
    "connect",
    "dlopen",
    "dlsym",
    "fcntl",
    "fcntl64",
    "ftruncate",
    "ftruncate64",
    "getenv",
    "getpid",
    "madvise",
    "memcmp",
    "memcpy",
    "memfd_create",
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
    "sched_yield",
    "sendmsg",
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
    "_PyRuntime",
    # Weak, from the compiler's start files.
    "_ITM_deregisterTMCloneTable",
    "_ITM_registerTMCloneTable",
    "__cxa_finalize",
    "__gmon_start__",
}
EXPORTS = {
    "pt_agent_absent",
    "pt_agent_begun",
    "pt_agent_builtins",
    "pt_agent_bye",
    "pt_agent_check_operators",
    "pt_agent_disable",
    "pt_agent_done",
    "pt_agent_enabled",
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
    "pt_agent_window_close",
    "pt_agent_window_open",
}


def main() -> int:
    lines = subprocess.run(
        ["nm", "-D", "--without-symbol-versions", sys.argv[1]],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    imports = {line.split()[-1] for line in lines if line.split()[-2] in "Uw"}
    exports = {line.split()[-1] for line in lines if line.split()[-2] not in "Uw"}
    needed = subprocess.run(
        ["readelf", "-d", sys.argv[1]], capture_output=True, text=True, check=True
    ).stdout
    libraries = [
        line.split("[")[1].split("]")[0] for line in needed.splitlines() if "NEEDED" in line
    ]
    problems = [
        "not on the list of imports: %s" % sorted(imports - IMPORTS),
        "exports differ by: %s" % sorted(exports ^ EXPORTS),
        "linked besides libc: %s" % sorted(set(libraries) - {"libc.so.6"}),
    ]
    problems = [problem for problem in problems if not problem.endswith("[]")]
    print("\n".join(problems) or "ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
