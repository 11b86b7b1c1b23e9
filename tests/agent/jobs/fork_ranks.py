"""Two ranks and a process that only loads, forked from one that has imported torch.

The ranks load by forked processes, which step optimizers; so does a child of each rank.
Argument: a free port.
"""

import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset, get_worker_info


def train(count):
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(count):
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()


class Data(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        if get_worker_info() is not None:
            train(1)
        return torch.ones(4)


def load():
    assert len(list(DataLoader(Data(), batch_size=2))) == 20


def rank(number, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    os.environ.update(RANK=str(number), LOCAL_RANK=str(number), WORLD_SIZE="2")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for batch in DataLoader(Data(), batch_size=2, num_workers=2):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
    child = os.fork()
    if child == 0:
        train(30)
        os._exit(0)
    os.waitpid(child, 0)
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    loader = mp.get_context("fork").Process(target=load)
    loader.start()
    loader.join()
    assert loader.exitcode == 0
    mp.start_processes(rank, args=(sys.argv[1],), nprocs=2, start_method="fork")
    print("done")
