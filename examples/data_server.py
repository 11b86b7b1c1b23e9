#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small data service: worker threads that hand out batches of text over TCP.

A client says who it is (rank, worker, number of workers), then asks for one
batch with one byte. The answer is a header (rows, columns) and the bytes of the
text, one token a byte. Only the standard library is used, and the server ends
when its standard input is closed, so it never outlives the job that started it.
"""

from __future__ import annotations

import argparse
import pathlib
import random
import socket
import socketserver
import struct
import sys
import threading
import time

HELLO = struct.Struct("<III")  # rank, worker, workers
HEADER = struct.Struct("<II")  # rows, columns
CHUNKS = 4  # a throttled answer dribbles out in so many pieces


def load_corpus() -> bytes:
    """Real text that every machine with Python has: its own library."""
    folder = pathlib.Path(socketserver.__file__).parent
    names = ("argparse", "ast", "difflib", "inspect", "pathlib", "socket", "typing", "zipfile")
    texts = [(folder / f"{name}.py") for name in names]
    return b"".join(path.read_bytes() for path in texts if path.is_file())


class Pace:
    """Mean time between the latest requests of one client."""

    def __init__(self) -> None:
        self.mean_s = 0.0
        self.last_s = 0.0

    def tick(self) -> None:
        now_s = time.monotonic()
        if self.last_s:
            gap_s = now_s - self.last_s
            self.mean_s += 0.05 * (gap_s - self.mean_s) if self.mean_s else gap_s
        self.last_s = now_s


class Client(socketserver.BaseRequestHandler):
    """One connection: answers requests until the client goes away."""

    server: DataServer

    def handle(self) -> None:
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        hello = self.request.recv(HELLO.size, socket.MSG_WAITALL)
        if len(hello) < HELLO.size:
            return
        rank, worker, workers = HELLO.unpack(hello)
        options = self.server.options
        dice = random.Random(options.seed * 1000003 + rank * 1009 + worker)
        pace = Pace()
        batch = worker
        while self.request.recv(1):
            throttled = rank == options.slow_rank and batch >= options.slow_from
            if not throttled:
                pace.tick()
            columns = options.length + 1
            if rank == options.long_rank and batch >= options.long_from:
                columns = int(options.length * options.long_factor) + 1
            self.answer(dice, columns, pace.mean_s * options.slow_factor if throttled else 0.0)
            batch += workers

    def answer(self, dice: random.Random, columns: int, wait_s: float) -> None:
        rows, corpus = self.server.options.rows, self.server.corpus
        starts = [dice.randrange(len(corpus) - columns) for _ in range(rows)]
        data = HEADER.pack(rows, columns)
        data += b"".join(corpus[start : start + columns] for start in starts)
        if not wait_s:
            self.request.sendall(data)
            return
        size = -(-len(data) // CHUNKS)
        for begin in range(0, len(data), size):
            time.sleep(wait_s / CHUNKS)
            self.request.sendall(data[begin : begin + size])


class DataServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__((options.host, options.port), Client)
        self.options = options
        self.corpus = load_corpus()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away in the middle of an answer is no news."""


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--rows", type=int, default=8, help="sequences in a batch")
    parser.add_argument("--length", type=int, default=64, help="tokens in a sequence")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--slow-rank", type=int, default=-1, help="the rank with slow data")
    parser.add_argument("--slow-from", type=int, default=0, help="first batch that does")
    parser.add_argument("--slow-factor", type=float, default=2.0, help="times the usual pace")
    parser.add_argument("--long-rank", type=int, default=-1, help="who gets longer sequences")
    parser.add_argument("--long-from", type=int, default=0, help="first batch that is longer")
    parser.add_argument("--long-factor", type=float, default=2.5, help="times the usual length")
    return parser.parse_args()


def main() -> None:
    with DataServer(parse_options()) as server:
        print(server.server_address[1], flush=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sys.stdin.read()
        server.shutdown()


if __name__ == "__main__":
    main()
