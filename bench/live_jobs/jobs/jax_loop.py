# SPDX-License-Identifier: Apache-2.0
"""JAX: a compiled update of a small network, batches made by NumPy."""

import argparse

import jax
import jax.numpy as jnp
import numpy as np


def init(key, sizes=(64, 512, 512, 10)):
    keys = jax.random.split(key, len(sizes))
    return [
        (jax.random.normal(k, (m, n)) / np.sqrt(m), jnp.zeros(n))
        for k, m, n in zip(keys, sizes, sizes[1:])
    ]


def predict(params, x):
    for weights, bias in params[:-1]:
        x = jax.nn.relu(x @ weights + bias)
    weights, bias = params[-1]
    return x @ weights + bias


def loss_of(params, x, y):
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(predict(params, x)) * y, axis=1))


@jax.jit
def compiled_update(params, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
    params = [(w - 0.01 * dw, b - 0.01 * db) for (w, b), (dw, db) in zip(params, gradients)]
    return params, loss


def next_batch(dice):
    x = dice.normal(size=(64, 64)).astype(np.float32)
    return x, np.eye(10, dtype=np.float32)[dice.integers(0, 10, 64)]


def train_step(params, x, y):
    params, loss = compiled_update(params, x, y)
    return params, float(loss)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    args = parser.parse_args()
    dice = np.random.default_rng(0)
    params = init(jax.random.key(0))
    for step in range(args.steps):
        params, loss = train_step(params, *next_batch(dice))
        if step % 200 == 0:
            print(f"step {step} loss {loss:.3f}", flush=True)


if __name__ == "__main__":
    main()
