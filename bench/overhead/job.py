# SPDX-License-Identifier: Apache-2.0
"""The measured job: data-parallel training on gloo that writes each iteration's time.

Arguments: width of the model, layers, rows in a batch, seconds, output folder. A line of
the output is "time.time() at its begin, milliseconds, milliseconds of CPU of the process,
in_window", all of rank 0.
"""

import itertools
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset


def in_window() -> bool:
    ours = sys.modules.get("perftracker")
    return bool(ours and ours.status()["profiling"])


def main() -> None:
    width, layers, rows, seconds = (int(text) for text in sys.argv[1:5])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    body = [part for _ in range(layers) for part in (nn.Linear(width, width), nn.ReLU())]
    model = DistributedDataParallel(nn.Sequential(*body))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batches = DataLoader(TensorDataset(torch.randn(64 * rows, width)), batch_size=rows)
    end = torch.zeros(1)
    end_s = time.perf_counter() + seconds
    lines = []
    for number, (batch,) in enumerate(itertools.chain.from_iterable(itertools.repeat(batches))):
        begin_s, begin_cpu_s, wall_s = time.perf_counter(), time.process_time(), time.time()
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        ms = 1e3 * (time.perf_counter() - begin_s)
        cpu_ms = 1e3 * (time.process_time() - begin_cpu_s)
        lines.append(f"{wall_s:.6f} {ms:.4f} {cpu_ms:.4f} {int(in_window())}\n")
        if number % 64 == 0:  # both ranks must end after the same iteration
            end.fill_(float(begin_s > end_s))
            dist.broadcast(end, 0)
            if end.item():
                break
    if dist.get_rank() == 0:
        pathlib.Path(sys.argv[5], "times.txt").write_text("".join(lines))
    dist.destroy_process_group()
    time.sleep(0.2)  # gloo's threads outlive the group, see examples/train_ddp.py


if __name__ == "__main__":
    main()
