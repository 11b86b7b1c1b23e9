# SPDX-License-Identifier: Apache-2.0
"""The measured job: data-parallel training on gloo that writes each iteration's time.

Arguments: width of the model, layers, iterations, output folder. A line of the output
is "milliseconds in_window", both of rank 0.
"""

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
    width, layers, steps = (int(text) for text in sys.argv[1:4])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    body = [part for _ in range(layers) for part in (nn.Linear(width, width), nn.ReLU())]
    model = DistributedDataParallel(nn.Sequential(*body))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batches = iter(DataLoader(TensorDataset(torch.randn(16 * steps, width)), batch_size=16))
    lines = []
    for _ in range(steps):
        begin_s = time.perf_counter()
        (batch,) = next(batches)
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        lines.append(f"{1e3 * (time.perf_counter() - begin_s):.4f} {int(in_window())}\n")
    if dist.get_rank() == 0:
        pathlib.Path(sys.argv[4], "times.txt").write_text("".join(lines))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
