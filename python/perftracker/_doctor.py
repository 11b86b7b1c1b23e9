# SPDX-License-Identifier: Apache-2.0
"""Prints which parts of the agent work in this Python, as "key=value", for ``perftracker doctor``.

Run as a script, in a process that may hang or crash without harm. It runs the steps of the
hook in a job, with a daemon that never answers: a listening socket of its own.
"""

import os
import sys
from typing import Any, Callable


def emit(key: str, value: object) -> None:
    """Prints one line and flushes it: a later crash does not lose it."""
    print(f"{key}={' '.join(str(value).split())}", flush=True)


def attempt(key: str, work: Callable[[], Any]) -> Any:
    """Returns the result of work; on failure None, after printing the error."""
    try:
        return work()
    except BaseException as error:  # also SystemExit, from an import
        emit(key, f"{type(error).__name__}: {error}")
        return None


def check_torch() -> None:
    import torch

    emit("torch", torch.__version__)
    version = torch.version
    if getattr(version, "cuda", None):
        emit("torch_device", f"CUDA {version.cuda}")
    elif getattr(version, "hip", None):
        emit("torch_device", f"ROCm {version.hip}")
    else:
        emit("torch_device", "the CPU alone")


def check_agent() -> None:
    """Start, self-tests, helper thread; the socket is in a temporary folder."""
    import socket
    import tempfile

    from perftracker import _agent

    with tempfile.TemporaryDirectory(prefix="perftracker-doctor-") as folder:
        path = os.path.join(folder, "socket")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(path)
        listener.listen(1)
        agent = _agent.Agent(_agent.library_path())
        status = agent.start(path.encode(), -1, -1, -1)
        if status < 0:
            raise OSError(-status, f"its memory or socket: {os.strerror(-status)}")
        agent.open_sources()
        emit("stacks", agent.absent(_agent.STACKS))
        if "torch" in sys.modules:
            emit("operators", agent.absent(_agent.OPERATORS))
        status = agent.run()
        if status < 0:
            raise OSError(-status, f"its helper thread: {os.strerror(-status)}")
        emit("agent", "ok")
        agent.bye(None)
        listener.close()


def check_libraries() -> None:
    """GPU libraries that torch has mapped: the copies that a job would use."""
    wanted = (
        "libcupti.so",
        "libnccl.so",
        "libcudart.so",
        "libamdhip64.so",
        "librocprofiler-sdk.so",
    )
    seen = set()
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            path = line.split(maxsplit=5)[-1].strip()
            name = os.path.basename(path)
            if name.startswith(wanted) and path not in seen:
                seen.add(path)
                emit(name.split(".so", 1)[0], path)


def main() -> None:
    package = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != package]
    import importlib.util

    if importlib.util.find_spec("torch") is not None:
        attempt("torch_error", check_torch)
    attempt("agent_error", check_agent)
    attempt("libraries_error", check_libraries)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # skips exit handlers of imported modules, which may hang
