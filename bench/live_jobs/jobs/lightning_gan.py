# SPDX-License-Identifier: Apache-2.0
"""A LightningModule with two optimizers that it steps itself, its data in a DataModule."""

import argparse
import tempfile

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rings(Dataset):
    def __len__(self):
        return 6400

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        angle = 6.28 * torch.rand(16, generator=generator)
        return torch.cat([angle.cos(), angle.sin()])


def batch_rings(samples):
    return torch.stack(samples)


class RingData(L.LightningDataModule):
    def __init__(self, workers):
        super().__init__()
        self.workers = workers

    def train_dataloader(self):
        return DataLoader(
            Rings(),
            batch_size=32,
            shuffle=True,
            collate_fn=batch_rings,
            num_workers=self.workers,
            persistent_workers=self.workers > 0,
        )


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 32))

    def forward(self, noise):
        return self.net(noise)


class GAN(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.generator = Generator()
        self.critic = nn.Sequential(nn.Linear(32, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1))

    def configure_optimizers(self):
        return [
            torch.optim.Adam(self.generator.parameters(), lr=2e-4),
            torch.optim.Adam(self.critic.parameters(), lr=2e-4),
        ]

    def training_step(self, real, batch_idx):
        of_generator, of_critic = self.optimizers()
        fake = self.generator(torch.randn(len(real), 16))
        loss = nn.functional.softplus(-self.critic(real)).mean()
        loss = loss + nn.functional.softplus(self.critic(fake.detach())).mean()
        of_critic.zero_grad()
        self.manual_backward(loss)
        of_critic.step()
        if batch_idx % 2 == 0:
            g_loss = nn.functional.softplus(-self.critic(fake)).mean()
            of_generator.zero_grad()
            self.manual_backward(g_loss)
            of_generator.step()
            self.log("g_loss", g_loss)
        self.log("d_loss", loss)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trainer = L.Trainer(
            accelerator="cpu",
            max_epochs=-1,
            max_steps=args.steps * 3 // 2,  # Lightning counts the steps of both optimizers
            default_root_dir=folder,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(GAN(), RingData(args.workers))


if __name__ == "__main__":
    main()
