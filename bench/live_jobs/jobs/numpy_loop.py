# SPDX-License-Identifier: Apache-2.0
"""No framework: a matrix factorization in NumPy, which says where its iterations are."""

import argparse

import numpy as np
import perftracker


def ratings(dice, users, items, count=4000):
    rows, columns = dice.integers(0, users, count), dice.integers(0, items, count)
    return rows, columns, dice.normal(3, 1, count)


def gradient(left, right, rows, columns, values):
    error = values - np.einsum("ij,ij->i", left[rows], right[columns])
    return error[:, None] * right[columns], error[:, None] * left[rows], error


def update(left, right, rows, columns, to_left, to_right, rate=0.005):
    np.add.at(left, rows, rate * to_left)
    np.add.at(right, columns, rate * to_right)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    args = parser.parse_args()
    dice = np.random.default_rng(0)
    left, right = dice.normal(0, 0.1, (2000, 16)), dice.normal(0, 0.1, (500, 16))
    for step in range(args.steps):
        rows, columns, values = ratings(dice, 2000, 500)
        to_left, to_right, error = gradient(left, right, rows, columns, values)
        update(left, right, rows, columns, to_left, to_right)
        perftracker.step()
        if step % 200 == 0:
            print(f"step {step} rmse {np.sqrt(np.mean(error**2)):.3f}", flush=True)


if __name__ == "__main__":
    main()
