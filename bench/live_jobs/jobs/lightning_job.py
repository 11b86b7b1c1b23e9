# SPDX-License-Identifier: Apache-2.0
"""A LightningModule, validated every so often; Lightning starts its second rank itself."""

import argparse
import tempfile

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class AutoEncoder(L.LightningModule):
    def __init__(self, width=256):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(128, width), nn.ReLU(), nn.Linear(width, 8))
        self.decoder = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 128))

    def forward(self, x):
        return self.decoder(self.encoder(x))

    def training_step(self, batch, batch_idx):
        (x,) = batch
        loss = nn.functional.mse_loss(self(x), x)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        (x,) = batch
        self.log("val_loss", nn.functional.mse_loss(self(x), x), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def collate_rows(samples):
    return (torch.stack([row for (row,) in samples]),)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--devices", type=int, default=2)
    args = parser.parse_args()
    rows = torch.rand(12800, 128)
    train = DataLoader(TensorDataset(rows), batch_size=32, shuffle=True, collate_fn=collate_rows)
    val = DataLoader(TensorDataset(rows[:256]), batch_size=64)
    with tempfile.TemporaryDirectory() as folder:
        trainer = L.Trainer(
            accelerator="cpu",
            devices=args.devices,
            strategy="ddp" if args.devices > 1 else "auto",
            max_steps=args.steps,
            max_epochs=-1,
            val_check_interval=100,
            default_root_dir=folder,
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(AutoEncoder(), train, val)


if __name__ == "__main__":
    main()
