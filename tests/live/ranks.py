# SPDX-License-Identifier: Apache-2.0
"""Starts ranks as torchrun does, but as forks of one process that has imported torch.

    ranks.py COUNT SCRIPT [ARGUMENT...]

When a rank fails, or this process gets SIGTERM, all ranks are ended. The process that forks
loads no part of PerfTracker.
"""

from __future__ import annotations

import os
import pathlib
import signal
import socket
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "agent"))

import warm  # noqa: E402

sys.path.pop(0)  # it is the ranks', too


def environments(count: int) -> list[dict[str, str]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    common = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    common |= {"WORLD_SIZE": str(count), "OMP_NUM_THREADS": "1"}
    return [{**common, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(count)]


def end(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


def main() -> int:
    count, command = int(sys.argv[1]), sys.argv[2:]
    envs = environments(count)
    os.environ.pop("PERFTRACKER_SOCKET", None)
    warm.import_torch()
    ranks = [warm.Fork(command, env) for env in envs]
    signal.signal(signal.SIGTERM, end)
    try:
        while None in (statuses := [rank.poll() for rank in ranks]) and not any(statuses):
            time.sleep(0.05)
        return int(any(statuses))
    finally:
        for rank in ranks:
            rank.terminate()
        for rank in ranks:
            rank.wait()


if __name__ == "__main__":
    sys.exit(main())
