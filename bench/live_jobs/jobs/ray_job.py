# SPDX-License-Identifier: Apache-2.0
"""Ray Train: a loop per worker with prepare_model and prepare_data_loader."""

import argparse

import ray
import torch
from ray.train import ScalingConfig
from ray.train.torch import TorchTrainer, prepare_data_loader, prepare_model
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 768), nn.ReLU(), nn.Linear(768, 10))

    def forward(self, x):
        return self.body(x)


def collate(samples):
    inputs, labels = zip(*samples)
    return torch.stack(inputs), torch.stack(labels)


def train_loop_per_worker(config):
    data = TensorDataset(torch.randn(12800, 64), torch.randint(0, 10, (12800,)))
    loader = prepare_data_loader(DataLoader(data, batch_size=64, shuffle=True, collate_fn=collate))
    model = prepare_model(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    step = 0
    while step < config["steps"]:
        for inputs, labels in loader:
            loss = nn.functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step >= config["steps"]:
                break
        ray.train.report({"loss": loss.item()})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    args = parser.parse_args()
    ray.init(num_cpus=4, include_dashboard=False, object_store_memory=100 * 2**20)
    trainer = TorchTrainer(
        train_loop_per_worker,
        train_loop_config={"steps": args.steps},
        scaling_config=ScalingConfig(num_workers=2),
    )
    trainer.fit()


if __name__ == "__main__":
    main()
