# SPDX-License-Identifier: Apache-2.0
"""What the agent can do in this Python, for ``perftracker doctor``, as lines "key=value".

Run as a script, in a process that may hang or crash without harm. It does what the hook
does in a job, with a daemon that never answers: a listening socket of its own.
"""

import os
import sys
from typing import Any, Callable


def tell(key: str, value: object) -> None:
    """One line; what comes after a crash is lost, what came before isn't."""
    print(f"{key}={' '.join(str(value).split())}", flush=True)


def attempt(key: str, work: Callable[[], Any]) -> Any:
    """What work returns; None, and a line of what went wrong, when it fails."""
    try:
        return work()
    except BaseException as error:  # SystemExit from somebody's import, too
        tell(key, f"{type(error).__name__}: {error}")
        return None


def ask_torch() -> None:
    import torch

    tell("torch", torch.__version__)
    version = torch.version
    if getattr(version, "cuda", None):
        tell("torch_device", f"CUDA {version.cuda}")
    elif getattr(version, "hip", None):
        tell("torch_device", f"ROCm {version.hip}")
    else:
        tell("torch_device", "the CPU alone")


def ask_agent() -> None:
    """Start, self-tests, helper thread; the socket is in a folder that goes away with us."""
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
        tell("stacks", agent.absent(_agent.STACKS))
        if "torch" in sys.modules:
            tell("operators", agent.absent(_agent.OPERATORS))
        status = agent.run()
        if status < 0:
            raise OSError(-status, f"its helper thread: {os.strerror(-status)}")
        tell("agent", "ok")
        agent.bye()
        listener.close()


def ask_libraries() -> None:
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
                tell(name.split(".so", 1)[0], path)


def main() -> None:
    package = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != package]
    import importlib.util

    if importlib.util.find_spec("torch") is not None:
        attempt("torch_error", ask_torch)
    attempt("agent_error", ask_agent)
    attempt("libraries_error", ask_libraries)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # what others left to do at exit isn't ours to wait for
