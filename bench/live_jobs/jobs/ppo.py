# SPDX-License-Identifier: Apache-2.0
"""PPO on two ranks: rollouts of like lengths, gradients averaged by hand, two optimizers."""

import argparse
import random

import torch
import torch.distributed as dist
from torch import nn


class Pole:
    """Several carts at once; each starts again when its pole falls."""

    def __init__(self, count):
        self.state = torch.zeros(count, 4)

    def reset_where(self, done):
        self.state[done] = 0.1 * torch.randn(int(done.sum()), 4)

    def step(self, action):
        push = action.float() * 2 - 1
        place, speed, angle, turn = self.state.unbind(1)
        turn = turn + 0.05 * (angle * 9.8 - push) + 0.02 * torch.randn(len(push))
        angle, speed = angle + 0.05 * turn, speed + 0.05 * push
        self.state = torch.stack([place + 0.05 * speed, speed, angle, turn], 1)
        done = (angle.abs() > 0.5) | (place.abs() > 3)
        self.reset_where(done)
        return self.state.clone(), (~done).float(), done


def mlp(out):
    return nn.Sequential(
        nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, out)
    )


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(2)

    def forward(self, state):
        return torch.distributions.Categorical(logits=self.net(state))


def average_gradients(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


@torch.no_grad()
def collect(env, actor, critic, length):
    states, actions, logs, rewards, dones, values = [], [], [], [], [], []
    state = env.state.clone()
    for _ in range(length):
        policy = actor(state)
        action = policy.sample()
        states.append(state)
        actions.append(action)
        logs.append(policy.log_prob(action))
        values.append(critic(state).squeeze(-1))
        state, reward, done = env.step(action)
        rewards.append(reward)
        dones.append(done)
    return [torch.stack(x) for x in (states, actions, logs, rewards, dones, values)]


def advantages_of(rewards, dones, values, gamma=0.99, lam=0.95):
    advantages, last = torch.zeros_like(rewards), torch.zeros(rewards.shape[1])
    for t in reversed(range(len(rewards) - 1)):
        alive = (~dones[t]).float()
        delta = rewards[t] + gamma * values[t + 1] * alive - values[t]
        last = delta + gamma * lam * alive * last
        advantages[t] = last
    return advantages


def learn(actor, critic, optimizers, batch, advantages, epochs):
    states, actions, logs, _, _, values = (x.flatten(0, 1) for x in batch)
    advantages = advantages.flatten()
    returns = advantages + values
    for _ in range(epochs):
        for rows in torch.randperm(len(states)).split(96):
            policy = actor(states[rows])
            ratio = (policy.log_prob(actions[rows]) - logs[rows]).exp()
            gain = torch.min(
                ratio * advantages[rows], ratio.clamp(0.8, 1.2) * advantages[rows]
            ).mean()
            actor_loss = -gain - 0.01 * policy.entropy().mean()
            critic_loss = (critic(states[rows]).squeeze(-1) - returns[rows]).pow(2).mean()
            for model, optimizer, loss in zip(
                (actor, critic), optimizers, (actor_loss, critic_loss)
            ):
                optimizer.zero_grad()
                loss.backward()
                average_gradients(model)
                optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=500)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    random.seed(0)  # the same number of updates on all ranks
    env, actor, critic = Pole(16), Actor(), mlp(1)
    for parameter in [*actor.parameters(), *critic.parameters()]:
        dist.broadcast(parameter.data, 0)
    optimizers = [torch.optim.Adam(m.parameters(), lr=3e-4) for m in (actor, critic)]
    for iteration in range(args.steps):
        batch = collect(env, actor, critic, random.choice((4, 8, 12)))
        advantages = advantages_of(*batch[3:])
        learn(actor, critic, optimizers, batch, advantages, 2)
        if iteration % 50 == 0 and dist.get_rank() == 0:
            print(f"iteration {iteration}: reward {batch[3].mean():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
