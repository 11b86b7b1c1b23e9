# SPDX-License-Identifier: Apache-2.0
"""A graph network on all of its nodes: no loader, and each epoch is trained and tested once."""

import argparse

import torch
from torch import nn


def random_graph(nodes=1500, edges=12000):
    ends = torch.randint(0, nodes, (2, edges))
    values = torch.ones(edges) / (edges / nodes)
    adjacency = torch.sparse_coo_tensor(ends, values, (nodes, nodes)).coalesce()
    return torch.randn(nodes, 64), adjacency, torch.randint(0, 7, (nodes,))


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 7)

    def forward(self, x, adjacency):
        x = torch.relu(torch.sparse.mm(adjacency, self.first(x)))
        x = nn.functional.dropout(x, training=self.training)
        return torch.sparse.mm(adjacency, self.second(x))


def neighbors(x):
    noise = 0.01 * torch.randn_like(x)
    return x + noise


def train(model, optimizer, x, adjacency, y, mask):
    model.train()
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(neighbors(x), adjacency)[mask], y[mask])
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def test(model, x, adjacency, y, masks):
    model.eval()
    found = model(x, adjacency).argmax(1)
    return [(found[mask] == y[mask]).float().mean().item() for mask in masks]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    args = parser.parse_args()
    x, adjacency, y = random_graph()
    split = torch.rand(len(x))
    masks = [split < 0.6, (split >= 0.6) & (split < 0.8), split >= 0.8]
    model = GCN()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    best = 0.0
    for epoch in range(1, args.steps + 1):
        loss = train(model, optimizer, x, adjacency, y, masks[0])
        _, val, final = test(model, x, adjacency, y, masks)
        best = max(best, final if val > best else best)
        if epoch % 100 == 0:
            print(f"Epoch: {epoch:03d}, Loss: {loss:.4f}, Test: {best:.4f}", flush=True)


if __name__ == "__main__":
    main()
