#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small language model with DistributedDataParallel over gloo.

    torchrun --nproc-per-node 4 examples/train_ddp.py

An ordinary job: a transformer of two layers reads bytes of text that come over
TCP from a data service, which rank 0 starts. With --fault it has one of the
troubles of faults.py from iteration --fault-at on. It knows nothing of the tool
that watches it.
"""

from __future__ import annotations

import argparse
import pathlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import data_server
import faults
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

VOCABULARY = 256
AHEAD = 2  # batches asked for before they are needed
Steps = list[tuple[float, float]]  # when each began (time.time), how many seconds it took


class StreamedText(IterableDataset):
    """Batches from the data service. Each loader worker has its own connection."""

    def __init__(self, port: int, rank: int) -> None:
        self.port = port
        self.rank = rank

    def __iter__(self) -> Iterator[Tensor]:
        info = get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        with socket.create_connection(("127.0.0.1", self.port)) as link:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link.sendall(data_server.HELLO.pack(self.rank, worker, workers) + b"?" * AHEAD)
            while True:
                yield read_batch(link)


def read_batch(link: socket.socket) -> Tensor:
    rows, columns = data_server.HEADER.unpack(receive(link, data_server.HEADER.size))
    body = receive(link, rows * columns)
    link.sendall(b"?")
    return torch.frombuffer(body, dtype=torch.uint8).view(rows, columns).long()


def receive(link: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = link.recv_into(view)
        if not count:
            raise ConnectionError("the data service went away")
        view = view[count:]
    return data


class Model(nn.Module):
    """Embedding, two transformer layers with a causal mask, and a head."""

    def __init__(self, width: int, layers: int, longest: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.places = nn.Parameter(torch.zeros(longest, width))
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, text: Tensor) -> Tensor:
        length = text.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        hidden = self.tokens(text) + self.places[:length]
        return self.head(self.body(hidden, mask=mask, is_causal=True))


class Trainer:
    """Model, optimizer and data of one rank."""

    def __init__(self, options: argparse.Namespace, port: int) -> None:
        self.rank = dist.get_rank()
        torch.manual_seed(options.seed)
        longest = 16 * options.length
        self.model = DistributedDataParallel(Model(options.width, options.layers, longest))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4)
        self.loss = nn.CrossEntropyLoss()
        dataset = StreamedText(port, self.rank)
        loader = DataLoader(dataset, batch_size=None, num_workers=options.loader_workers)
        self.batches = iter(loader)

    def step(self, batch: Tensor) -> Tensor:
        scores = self.model(batch[:, :-1])
        loss = self.loss(scores.flatten(0, 1), batch[:, 1:].flatten())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def train(trainer: Trainer, fault: faults.Fault, options: argparse.Namespace) -> Steps:
    """Runs all the steps."""
    times_s: list[float] = []
    steps: Steps = []
    for number in range(options.steps):
        begin_s = time.perf_counter()
        batch = next(trainer.batches)
        if number >= options.fault_at:
            fault.apply(number, times_s)
        loss = trainer.step(batch)
        times_s.append(time.perf_counter() - begin_s)
        steps.append((time.time() - times_s[-1], times_s[-1]))
        if trainer.rank == 0 and (number + 1) % options.print_every == 0:
            recent_s = times_s[-options.print_every :]
            mean_ms = 1e3 * sum(recent_s) / len(recent_s)
            print(f"step {number + 1} loss {loss:.3f} iteration {mean_ms:.1f} ms", flush=True)
    return steps


def start_server(options: argparse.Namespace) -> subprocess.Popen[str]:
    """The data service, as a child that ends with this process."""
    command = [sys.executable, str(pathlib.Path(data_server.__file__))]
    command += [f"--rows={options.rows}", f"--length={options.length}", f"--seed={options.seed}"]
    command += faults.server_arguments(options)
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def share_port(server: subprocess.Popen[str] | None) -> int:
    """Rank 0 chooses the port and sends it to the others."""
    port = torch.tensor(int(server.stdout.readline()) if server and server.stdout else 0)
    dist.broadcast(port, 0)
    return int(port)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=320)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=4, help="sequences in a batch")
    parser.add_argument("--length", type=int, default=64, help="tokens in a sequence")
    parser.add_argument("--width", type=int, default=128, help="of the model")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument(
        "--loader-workers", type=int, default=0, help="processes that read ahead; 0: read here"
    )
    parser.add_argument("--print-every", type=int, default=25, metavar="STEPS")
    parser.add_argument("--fault", choices=faults.NAMES, default="none")
    parser.add_argument("--fault-rank", type=int, default=2)
    parser.add_argument("--fault-at", type=int, default=150, metavar="STEP")
    parser.add_argument("--fault-strength", type=float, default=1.0, metavar="X")
    parser.add_argument(
        "--times", metavar="DIR", help="write when each step began, how long it took"
    )
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    server = start_server(options) if rank == 0 else None
    trainer = Trainer(options, share_port(server))
    fault = faults.make_fault(options, rank)
    fault.prepare()
    dist.barrier()
    steps = train(trainer, fault, options)
    fault.end()
    if options.times:
        lines = "".join(f"{begin_s:.3f} {1e3 * time_s:.3f}\n" for begin_s, time_s in steps)
        pathlib.Path(options.times, f"rank{rank}.txt").write_text(lines)
    dist.barrier()
    dist.destroy_process_group()
    # Threads of gloo outlive the group; one that still lets go of the last collective when
    # the interpreter ends aborts the process (pytorch issue 190489).
    time.sleep(0.2)
    if server and server.stdin:
        server.stdin.close()
        server.wait()


if __name__ == "__main__":
    main()
