# SPDX-License-Identifier: Apache-2.0
"""Asks hostd of a fleet which daemon watches this process's job (src/live/fleet/attachment.h).

Nothing here waits: the request is sent at one mark, and each later mark looks for the answer.
"""

import os
import socket
import time
from typing import Dict, Optional

HOSTD = "/run/perftracker/hostd.sock"
WAIT_S = 30.0
BYTES_MAX = 8192
VALUE_MAX = 200

# What tells jobs and ranks apart (src/live/fleet/jobkey.c).
VARIABLES = (
    "PERFTRACKER", "PERFTRACKER_JOB", "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT",
    "SLURM_PROCID", "JOBSET_NAME", "JOBSET_RESTART_ATTEMPT", "PMIX_NAMESPACE", "PMI_JOBID",
    "RAY_JOB_ID", "TORCHELASTIC_RUN_ID", "PET_RDZV_ID", "MASTER_ADDR", "MASTER_PORT", "RANK",
    "OMPI_COMM_WORLD_RANK", "PMI_RANK",
)  # fmt: skip


def find() -> str:
    """The socket of this host's hostd; empty: none, or the job says that it is not wanted."""
    if os.environ.get("PERFTRACKER", "").lower() in ("0", "no", "off", "false"):
        return ""
    path = os.environ.get("PERFTRACKER_HOSTD") or HOSTD
    return path if os.path.exists(path) else ""


def _request() -> bytes:
    lines = ["perftracker-attach 1"]
    for name in VARIABLES:
        value = os.environ.get(name)
        if value and len(value) <= VALUE_MAX and "\n" not in value and "\0" not in value:
            lines.append("%s=%s" % (name, value))
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")


class Question:
    """One request to hostd. An OSError of its methods says why this process is not watched."""

    def __init__(self, path: str) -> None:
        self._until = time.monotonic() + WAIT_S
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setblocking(False)
        try:
            self._socket.connect(path)
            self._socket.send(_request())
        except OSError:
            self._socket.close()
            raise

    def answer(self) -> Optional[Dict[str, str]]:
        """What hostd says of the job's daemon: socket, dir, agent; None: nothing yet."""
        try:
            data = self._socket.recv(BYTES_MAX)
        except BlockingIOError:
            if time.monotonic() < self._until:
                return None
            self._socket.close()
            raise OSError("hostd did not answer in time") from None
        self._socket.close()
        first, *lines = data.decode("utf-8", "surrogateescape").splitlines() or [""]
        said = dict(line.partition("=")[::2] for line in lines)
        if first != "perftracker-attached 1" or not said.get("socket"):
            raise OSError(said.get("why") or "hostd gave no answer")
        return said
