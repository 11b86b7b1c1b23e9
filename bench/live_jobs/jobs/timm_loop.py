# SPDX-License-Identifier: Apache-2.0
"""An image loop in the manner of timm: mixup, averaged weights, meters, a step scheduler."""

import argparse
import copy
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Folder(Dataset):
    """Pictures of different sizes that are decoded, cut and flipped."""

    def __len__(self):
        return 6400

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        size = 40 + index % 24
        picture = torch.randint(0, 256, (3, size, size), generator=generator, dtype=torch.uint8)
        top = index % (size - 32)
        picture = picture[:, top : top + 32, top : top + 32]
        return (picture.flip(2) if index % 2 else picture), index % 10


def fast_collate(batch):
    pictures = torch.stack([picture for picture, _ in batch])
    return pictures, torch.tensor([label for _, label in batch])


class Meter:
    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, value, count=1):
        self.sum += value * count
        self.count += count

    @property
    def avg(self):
        return self.sum / max(self.count, 1)


class ResBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x):
        return torch.relu(x + self.norm(self.conv(x)))


class ResNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(ResBlock(width), ResBlock(width))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


def mixup(x, target, alpha=0.2):
    lam = torch.distributions.Beta(alpha, alpha).sample().item()
    target = nn.functional.one_hot(target, 10).float()
    return lam * x + (1 - lam) * x.flip(0), lam * target + (1 - lam) * target.flip(0)


@torch.no_grad()
def update_ema(average, model, decay=0.999):
    for a, m in zip(average.state_dict().values(), model.state_dict().values()):
        a.lerp_(m, 1 - decay) if a.is_floating_point() else a.copy_(m)


def train_one_epoch(epoch, model, average, loader, optimizer, scheduler, updates, limit):
    losses, data_time, batch_time = Meter(), Meter(), Meter()
    model.train()
    end = time.time()
    for index, (pictures, target) in enumerate(loader):
        data_time.update(time.time() - end)
        x, target = mixup(pictures.float().div_(255), target)
        loss = torch.sum(-target * torch.log_softmax(model(x), dim=-1), dim=-1).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        update_ema(average, model)
        scheduler.step()
        losses.update(loss.item(), len(pictures))
        batch_time.update(time.time() - end)
        end = time.time()
        updates += 1
        if index % 50 == 0:
            print(
                f"Train: {epoch} [{index}/{len(loader)}] Loss {losses.avg:.3f}"
                f" Time {batch_time.avg:.3f} Data {data_time.avg:.3f}",
                flush=True,
            )
        if updates >= limit:
            break
    return updates


@torch.no_grad()
def validate(model, loader):
    model.eval()
    right = Meter()
    for pictures, target in loader:
        found = model(pictures.float().div_(255)).argmax(1)
        right.update((found == target).float().mean().item(), len(target))
    return right.avg


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    data, held_out = Folder(), torch.utils.data.Subset(Folder(), range(512))
    loader = DataLoader(
        data,
        batch_size=16,
        shuffle=True,
        num_workers=args.workers,
        collate_fn=fast_collate,
        persistent_workers=args.workers > 0,
        drop_last=True,
    )
    val_loader = DataLoader(held_out, batch_size=64)
    model = ResNet().to(memory_format=torch.channels_last)
    average = copy.deepcopy(model)
    decay = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW([{"params": decay}, {"params": plain, "weight_decay": 0.0}])
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=args.steps + 1)
    updates, epoch = 0, 0
    while updates < args.steps:
        updates = train_one_epoch(
            epoch, model, average, loader, optimizer, scheduler, updates, args.steps
        )
        print(f"epoch {epoch}: {validate(average, val_loader):.3f}", flush=True)
        epoch += 1


if __name__ == "__main__":
    main()
