# SPDX-License-Identifier: Apache-2.0
"""Policy gradients: episodes of random length, then several epochs of updates."""

import argparse
import random

import torch
from torch import nn


class Walk:
    """A walk on a line that ends at its borders."""

    def reset(self):
        self.place, self.age = random.uniform(-1, 1), 0
        return torch.tensor([self.place, 0.0])

    def step(self, action):
        self.place += (0.2 if action else -0.2) + random.gauss(0, 0.1)
        self.age += 1
        done = abs(self.place) > 2 or self.age >= 60
        return torch.tensor([self.place, self.age / 60]), -abs(self.place), done


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 2))

    def forward(self, state):
        return torch.distributions.Categorical(logits=self.net(state))


@torch.no_grad()
def rollout(env, policy):
    states, actions, rewards = [env.reset()], [], []
    done = False
    while not done:
        action = policy(states[-1]).sample()
        state, reward, done = env.step(int(action))
        actions.append(action)
        rewards.append(reward)
        states.append(state)
    return torch.stack(states[:-1]), torch.stack(actions), rewards


def discounted(rewards, gamma=0.98):
    returns, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + gamma * total
        returns.append(total)
    return torch.tensor(returns[::-1])


def update(policy, optimizer, states, actions, returns):
    advantage = (returns - returns.mean()) / (returns.std() + 1e-6)
    for _ in range(random.randint(2, 5)):
        loss = -(policy(states).log_prob(actions) * advantage).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    args = parser.parse_args()
    env, policy = Walk(), Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
    for iteration in range(args.steps):
        episodes = [rollout(env, policy) for _ in range(random.randint(1, 3))]
        states = torch.cat([e[0] for e in episodes])
        actions = torch.cat([e[1] for e in episodes])
        returns = torch.cat([discounted(e[2]) for e in episodes])
        update(policy, optimizer, states, actions, returns)
        if iteration % 100 == 0:
            print(f"iteration {iteration}: return {returns.mean().item():.2f}", flush=True)


if __name__ == "__main__":
    main()
