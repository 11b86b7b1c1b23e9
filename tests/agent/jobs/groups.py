"""Scopes named like collectives: outside of groups, in a group of one rank, in one of two."""

import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)


def collective(name: str) -> None:
    optimizer.step()
    with torch.autograd.profiler.record_function("gloo:" + name):
        pass


collective("first mark")
collective("ungrouped")
dist.init_process_group("fake", rank=0, world_size=1, store=FakeStore())
collective("alone")
dist.destroy_process_group()
dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
collective("grouped")
dist.destroy_process_group()
