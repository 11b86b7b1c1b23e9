# SPDX-License-Identifier: Apache-2.0
"""A WGAN: two optimizers, five critic steps for each step of the generator, more at first."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def mlp(inputs, outputs, width=128):
    return nn.Sequential(
        nn.Linear(inputs, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, outputs),
    )


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(32, 1)

    def forward(self, x):
        return self.net(x)


def collate(samples):
    return torch.stack([row for (row,) in samples])


def train_step(generator, critic, optimizer_g, optimizer_c, batches, critic_steps):
    for _ in range(critic_steps):
        real = next(batches)
        fake = generator(torch.randn(len(real), 16)).detach()
        loss_c = critic(fake).mean() - critic(real).mean()
        optimizer_c.zero_grad()
        loss_c.backward()
        optimizer_c.step()
        for parameter in critic.parameters():
            parameter.data.clamp_(-0.01, 0.01)
    loss_g = -critic(generator(torch.randn(64, 16))).mean()
    optimizer_g.zero_grad()
    loss_g.backward()
    optimizer_g.step()
    return loss_g


def endless(loader):
    while True:
        yield from loader


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    args = parser.parse_args()
    loader = DataLoader(
        TensorDataset(torch.randn(6400, 32)), batch_size=64, shuffle=True, collate_fn=collate
    )
    generator, critic = mlp(16, 32), Critic()
    optimizer_g = torch.optim.RMSprop(generator.parameters(), lr=5e-5)
    optimizer_c = torch.optim.RMSprop(critic.parameters(), lr=5e-5)
    batches = endless(loader)
    for step in range(args.steps):
        critic_steps = 20 if step < 10 or step % 200 == 0 else 5
        loss = train_step(generator, critic, optimizer_g, optimizer_c, batches, critic_steps)
        if step % 100 == 0:
            print(f"step {step}: {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
