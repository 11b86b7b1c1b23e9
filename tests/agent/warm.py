# SPDX-License-Identifier: Apache-2.0
"""Runs Python scripts in forks of an interpreter that has imported torch, which takes seconds.

A fork becomes what a new process would be: arguments, environment, standard files, module
search path; torch's entry points are called as at the end of `import torch`. What is different:
variables that the dynamic linker or the start of Python read have no effect, and all of torch's
Python is there from the start.

    run(python, [SCRIPT, ARGUMENT...], env, timeout)    as subprocess.run(..., text=True)
    Fork([SCRIPT, ARGUMENT...], env)                    of a process that called import_torch()
"""

import array
import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
import types
from typing import Any, Dict, List, Optional

STANDARD = 3


class Warm:
    """An interpreter that waits to be forked. One job at a time."""

    def __init__(self, python: str) -> None:
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket = mine
        env = {name: value for name, value in os.environ.items() if "PERFTRACKER" not in name}
        self._process = subprocess.Popen(
            [python, "-W", "ignore", os.path.abspath(__file__), str(its.fileno())],
            env=env,
            pass_fds=[its.fileno()],
            stdin=subprocess.DEVNULL,
        )
        its.close()
        atexit.register(self.close)

    def close(self) -> None:
        self._socket.close()
        self._process.wait()

    def start(self, command: List[str], env: Dict[str, str]) -> "Job":
        out, err = os.pipe(), os.pipe()
        text = json.dumps([command, env, os.getcwd()]).encode()
        rights = array.array("i", [out[1], err[1]])
        self._socket.sendmsg(
            [len(text).to_bytes(4, "little")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]
        )
        self._socket.sendall(text)
        os.close(out[1])
        os.close(err[1])
        return Job(command, self._socket, self._number(), out[0], err[0])

    def _number(self) -> int:
        return receive_number(self._socket)


class Job:
    """As subprocess.Popen."""

    def __init__(
        self, command: List[str], connection: socket.socket, pid: int, *pipes: int
    ) -> None:
        self.args, self.pid, self.returncode = command, pid, 0
        self._socket, self._pipes = connection, pipes

    def communicate(self, timeout: float) -> Any:
        data = {pipe: b"" for pipe in self._pipes}
        end_s = time.monotonic() + timeout
        left = list(data)
        late = False
        while left:
            ready = select.select(left, [], [], max(0, end_s - time.monotonic()))[0]
            if not ready and not late:
                late = True
                os.kill(self.pid, signal.SIGKILL)
                end_s += 10
            elif not ready:  # a child of its own holds them
                break
            for pipe in ready:
                got = os.read(pipe, 1 << 16)
                data[pipe] += got
                if not got:
                    left.remove(pipe)
        for pipe in data:
            os.close(pipe)
        self.returncode = receive_number(self._socket)
        if late:
            raise subprocess.TimeoutExpired(self.args, timeout, *data.values())
        return tuple(text.decode() for text in data.values())


def receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        got = connection.recv(size - len(data))
        if not got:
            raise EOFError
        data += got
    return data


def receive_number(connection: socket.socket) -> int:
    return int.from_bytes(receive(connection, 4), "little", signed=True)


WARM: Dict[str, Warm] = {}


def start(python: str, command: List[str], env: Dict[str, str]) -> Job:
    if python not in WARM:
        WARM[python] = Warm(python)
    return WARM[python].start(command, env)


def run(
    python: str, command: List[str], env: Dict[str, str], timeout: float
) -> "subprocess.CompletedProcess[str]":
    job = start(python, command, env)
    out, err = job.communicate(timeout)
    return subprocess.CompletedProcess(command, job.returncode, out, err)


# In the interpreter that waits


def become(script: str, words: List[str], env: Dict[str, str]) -> None:
    """Returns when the script has come to its end."""
    os.environ.clear()
    os.environ.update(env)
    sys.argv = [script, *words]
    paths = [path for path in env.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:1] = [os.path.dirname(os.path.abspath(script)), *paths]
    main = types.ModuleType("__main__")
    main.__file__ = script
    sys.modules["__main__"] = main
    torch = sys.modules["torch"]
    if env.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") == "1":
        getattr(torch, "_import_device_backends", lambda: None)()
    with open(script) as file:
        code = compile(file.read(), script, "exec")
    exec(code, main.__dict__)


def import_torch() -> None:
    """All that a small training job comes to import."""
    import torch
    import torch.distributed
    import torch.profiler
    import torch.utils.data

    if torch.__version__ >= "2":
        import torch._dynamo  # noqa: F401
    gc.collect()
    gc.freeze()  # else the last collection of a fork copies all of it


class Fork:
    """Of an interpreter that called import_torch(). As a subprocess.Popen of [SCRIPT, WORD...]."""

    def __init__(self, command: List[str], env: Dict[str, str]) -> None:
        self._status: Optional[int] = None
        self._pid = os.fork()
        if self._pid == 0:
            become(command[0], command[1:], env)
            sys.exit(0)

    def poll(self) -> Optional[int]:
        if self._status is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            self._status = os.waitstatus_to_exitcode(status) if pid else None
        return self._status

    def wait(self) -> Optional[int]:
        while self.poll() is None:
            time.sleep(0.01)
        return self._status

    def terminate(self) -> None:
        if self.poll() is None:
            os.kill(self._pid, signal.SIGTERM)


def take_request(connection: socket.socket) -> Any:
    """Command, environment and folder; standard output and error."""
    fds = array.array("i")
    data, ancillary, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(8))
    for _, _, payload in ancillary:
        fds.frombytes(payload)
    if not data:
        raise EOFError
    return json.loads(receive(connection, int.from_bytes(data, "little"))), list(fds)


def serve(connection: socket.socket) -> Any:
    """Returns in each fork, with what it is to run."""
    while True:
        request, fds = take_request(connection)
        pid = os.fork()
        if pid == 0:
            connection.close()
            for number, fd in enumerate(fds, 1):
                os.dup2(fd, number)
            os.closerange(STANDARD, max(fds) + 1)
            return request
        for fd in fds:
            os.close(fd)
        connection.sendall(pid.to_bytes(4, "little"))
        status = os.waitpid(pid, 0)[1]
        code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        connection.sendall(code.to_bytes(4, "little", signed=True))


def main() -> None:
    connection = socket.socket(fileno=int(sys.argv[1]))
    import_torch()
    try:
        (script, *words), env, folder = serve(connection)
    except EOFError:
        return
    os.chdir(folder)
    become(script, words, env)


if __name__ == "__main__":
    main()
