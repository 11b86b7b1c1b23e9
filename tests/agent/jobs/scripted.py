"""TorchScript calls torch.autograd.grad, which is wrapped as before torch 2.3."""

import sys
from typing import Optional

import torch
from perftracker import _torch

hooks = _torch.Hooks(*[lambda what=None: None for _ in range(9)])
_torch._wrap_pass(torch.autograd, "grad", hooks)


def forces(x: torch.Tensor) -> Optional[torch.Tensor]:
    energy = (x * x).sum()
    return torch.autograd.grad([energy], [x])[0]


found = torch.jit.script(forces)(torch.ones(3, requires_grad=True))
sys.stdout.write("%s\n" % found.tolist())
