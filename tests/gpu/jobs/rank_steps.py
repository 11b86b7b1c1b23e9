# SPDX-License-Identifier: Apache-2.0
"""Ranks that train together on one card, by NCCL: a job for experiment E13.

    torchrun --nproc-per-node 3 rank_steps.py --seconds S [--fault NAME --rank R --after S]
        [--device cpu]

NCCL refuses two ranks on one card of one host. Here each has a host's name of its own
(NCCL_HOSTID), so that it takes them for several hosts and connects them by sockets. The card gives
each process slices of its time: collectives are slow, and equally slow for all. On a CPU it is a
small model with gloo.
"""

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

WIDTH, LENGTH, BATCH, LAYERS = 512, 128, 8, 4
BIG = {"cuda": (8192, 8192), "cpu": (512, 512)}
SLOW_S = 0.12


def read_slowly() -> None:
    time.sleep(SLOW_S)


def tokenize_slowly() -> int:
    end, count = time.perf_counter() + SLOW_S, 0
    while time.perf_counter() < end:
        count += 1
    return count


def wait_for_license() -> None:
    time.sleep(3600)


class Data(Dataset):
    """Random sentences; slow to read when that is the fault."""

    def __init__(self) -> None:
        self._row = torch.randn(LENGTH, WIDTH)
        self.slow = False

    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.slow and index % BATCH == 0:
            read_slowly()
        return self._row


class Faults:
    """What one rank does more in each step, from some time on."""

    def __init__(self, options: argparse.Namespace, rank: int, data: Data) -> None:
        self._name = options.fault if rank == options.rank else "none"
        self._begin_s = time.monotonic() + options.after
        self._data = data
        self._big = torch.randn(*BIG[options.device], device=options.device)

    def before_step(self) -> None:
        if self._name == "none" or time.monotonic() < self._begin_s:
            return
        if self._name == "loader":
            self._data.slow = True
        elif self._name == "python":
            tokenize_slowly()
        elif self._name == "kernel":
            for _ in range(8):
                self._big @ self._big
        elif self._name == "copy":
            self._big.cpu()
        elif self._name == "hang":
            wait_for_license()


def build(device: str) -> DistributedDataParallel:
    if device == "cpu":
        return DistributedDataParallel(torch.nn.Linear(WIDTH, 64))
    layer = torch.nn.TransformerEncoderLayer(WIDTH, 8, 1024, batch_first=True, dropout=0)
    model = torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
    return DistributedDataParallel(model.to(device), device_ids=[0])


def train(options: argparse.Namespace, rank: int) -> None:
    data, model = Data(), build(options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    faults, steps, stop = Faults(options, rank, data), 0, torch.zeros(1, device=options.device)
    begin_s = time.monotonic()
    for x in DataLoader(data, batch_size=BATCH):
        faults.before_step()
        optimizer.zero_grad()
        loss = model(x.to(options.device)).pow(2).mean()
        loss.backward()
        optimizer.step()
        loss.item()  # as most loops do: the host waits for the device
        steps += 1
        if steps % 20 == 0:  # all end at the same step
            stop.fill_(time.monotonic() - begin_s > options.seconds)
            dist.all_reduce(stop)
            if stop.item() > 0:
                break
    if rank == 0:
        print(f"{steps} steps of {1000 * (time.monotonic() - begin_s) / steps:.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30)
    names = ("none", "loader", "python", "kernel", "copy", "hang")
    parser.add_argument("--fault", choices=names, default="none")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--rank", type=int, default=1)
    parser.add_argument("--after", type=float, default=10)
    options = parser.parse_args()
    torch.set_num_threads(1)
    os.environ["NCCL_HOSTID"] = f"one-of-several-{os.environ['RANK']}"
    os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
    os.environ.setdefault("NCCL_IB_DISABLE", "1")
    if options.device == "cuda":
        torch.cuda.set_device(0)
    dist.init_process_group("nccl" if options.device == "cuda" else "gloo")
    train(options, dist.get_rank())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
