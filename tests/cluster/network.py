# SPDX-License-Identifier: Apache-2.0
"""Hosts as network namespaces of this machine, on one bridge; each has a name of its own.

Needs the right to make namespaces (root) and iproute2; available() says why not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

SUBNET = "10.213.7"


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False)


def available() -> str:
    """Why hosts cannot be made here; empty if they can."""
    for tool in ("ip", "tc", "unshare"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    probe = f"ptprobe{os.getpid()}"
    made = run("ip", "netns", "add", probe)
    if made.returncode != 0:
        return f"no right to make network namespaces: {made.stderr.strip()}"
    run("ip", "netns", "delete", probe)
    return ""


class Network:
    """So many hosts, gpu-0, gpu-1, ...; use it in a `with`."""

    made = 0  # a name is free again only some time after its network is gone

    def __init__(self, hosts: int) -> None:
        Network.made += 1
        self.key = f"pt{os.getpid() % 100000}{chr(ord('a') + Network.made % 26)}"
        self.bridge = f"{self.key}b"
        self.cnt = hosts

    def name(self, host: int) -> str:
        return f"gpu-{host}"

    def namespace(self, host: int) -> str:
        return f"{self.key}n{host}"

    def address(self, host: int) -> str:
        return f"{SUBNET}.{host + 10}"

    def _do(self, *words: str) -> None:
        done = run(*words)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")

    def _add(self, host: int) -> None:
        space, outer = self.namespace(host), f"{self.key}v{host}"
        self._do("ip", "netns", "add", space)
        self._do("ip", "link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", space)
        self._do("ip", "link", "set", outer, "master", self.bridge, "up")
        inside = ("ip", "-n", space)
        self._do(*inside, "address", "add", f"{self.address(host)}/24", "dev", "eth0")
        self._do(*inside, "link", "set", "eth0", "up")
        self._do(*inside, "link", "set", "lo", "up")

    def __enter__(self) -> Network:
        self._do("ip", "link", "add", self.bridge, "type", "bridge")
        try:
            self._do("ip", "link", "set", self.bridge, "up")
            for host in range(self.cnt):
                self._add(host)
        except RuntimeError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for host in range(self.cnt):
            # A namespace stays as long as one of its processes.
            run("ip", "link", "delete", f"{self.key}v{host}")
            run("ip", "netns", "delete", self.namespace(host))
        run("ip", "link", "delete", self.bridge)

    def command(self, host: int, words: Sequence[str]) -> list[str]:
        """The same command, on that host."""
        name = f'hostname {self.name(host)} && exec "$@"'
        inside = ["unshare", "--uts", "sh", "-c", name, "sh", *words]
        return ["ip", "netns", "exec", self.namespace(host), *inside]

    def limit(self, host: int, rate: str) -> None:
        """What the host sends and receives goes through a link of that rate, "80mbit"."""
        shape = ("root", "tbf", "rate", rate, "burst", "64kb", "latency", "50ms")
        self._do(
            "ip",
            "netns",
            "exec",
            self.namespace(host),
            "tc",
            "qdisc",
            "replace",
            "dev",
            "eth0",
            *shape,
        )
        self._do("tc", "qdisc", "replace", "dev", f"{self.key}v{host}", *shape)

    def unlimit(self, host: int) -> None:
        run(
            "ip", "netns", "exec", self.namespace(host), "tc", "qdisc", "del", "dev", "eth0", "root"
        )
        run("tc", "qdisc", "del", "dev", f"{self.key}v{host}", "root")

    def cut(self, host: int, connected: bool) -> None:
        """Takes the host off the network, or puts it back."""
        self._do("ip", "link", "set", f"{self.key}v{host}", "up" if connected else "down")
