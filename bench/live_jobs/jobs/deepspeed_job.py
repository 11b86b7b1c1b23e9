# SPDX-License-Identifier: Apache-2.0
"""A DeepSpeed engine with ZeRO stage 1 on CPUs."""

import argparse

import deepspeed
import torch
from torch import nn
from torch.utils.data import TensorDataset

CONFIG = {
    "train_micro_batch_size_per_gpu": 16,
    "gradient_accumulation_steps": 1,
    "optimizer": {"type": "Adam", "params": {"lr": 1e-3, "torch_adam": True}},
    "zero_optimization": {"stage": 1},
    "steps_per_print": 200,
}


class Net(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(64, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 10),
        )

    def forward(self, x):
        return self.layers(x)


def collate(samples):
    inputs, labels = zip(*samples)
    return torch.stack(inputs), torch.stack(labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    args = parser.parse_args()
    data = TensorDataset(torch.randn(6400, 64), torch.randint(0, 10, (6400,)))
    model = Net()
    deepspeed.init_distributed("gloo")
    engine, _, loader, _ = deepspeed.initialize(
        model=model,
        model_parameters=model.parameters(),
        training_data=data,
        collate_fn=collate,
        config=CONFIG,
    )
    step = 0
    while step < args.steps:
        for inputs, labels in loader:
            loss = nn.functional.cross_entropy(engine(inputs), labels)
            engine.backward(loss)
            engine.step()
            step += 1
            if step >= args.steps:
                break
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
