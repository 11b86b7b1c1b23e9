"""Imports torch as a launcher or a compiler process does, and marks nothing."""

import torch

print(torch.ones(3).sum().item())
