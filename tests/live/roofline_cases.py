# SPDX-License-Identifier: Apache-2.0
"""Training loops of all kinds in one process, each under an experiment of its own.

Prints one JSON line for each: what the experiment wrote, the lengths of the loop's epochs, whether
the loop got each batch as it expects it, and how many batches were given again.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

os.environ["PERFTRACKER_ROOFLINE_PLAN"] = "5 6 4 1048576"
FOLDER = pathlib.Path(os.environ["PERFTRACKER_ROOFLINE"])

import torch  # noqa: E402 - attaches the experiment
from perftracker import _roofline  # noqa: E402
from torch.utils.data import DataLoader, Dataset, IterableDataset  # noqa: E402

ITERATIONS = 130
torch.set_num_threads(1)


class Numbers(Dataset):
    """Item number i is i, as often as it has elements."""

    def __init__(self, count: int = 1000, width: Callable[[int], int] = lambda _: 4) -> None:
        self.count, self.width = count, width

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int) -> torch.Tensor:
        return torch.full((self.width(i),), float(i))


class Endless(IterableDataset):
    def __iter__(self) -> Iterator[torch.Tensor]:
        while True:
            yield torch.ones(4)


class Item:
    """A batch of a program's own class."""

    def __init__(self, x: torch.Tensor) -> None:
        self.x = x
        self.parts = [x, {"y": x}]


class Loop:
    def __init__(self) -> None:
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.optimizer = torch.optim.SGD([self.weight], lr=0.0)
        self.done = 0
        self.epochs: list[int] = []
        self.sums: list[float] = []

    def train(self, x: torch.Tensor) -> None:
        (self.weight * x.float().sum()).backward()
        self.optimizer.step()
        self.sums.append(float(x.sum()))
        self.done += 1

    def run(self, loader: Any, use: Callable[[Any], torch.Tensor] = lambda x: x) -> None:
        while self.done < ITERATIONS:
            count = 0
            for batch in loader:
                self.train(use(batch))
                count += 1
                if self.done >= ITERATIONS:
                    return
            self.epochs.append(count)


def loader(dataset: Any = None, **how: Any) -> DataLoader:
    return DataLoader(dataset or Numbers(), batch_size=2, **how)


def pop(batch: dict[str, Any]) -> torch.Tensor:
    return batch.pop("x")


def change(batch: torch.Tensor) -> torch.Tensor:
    assert float(batch[0, 0]) >= 0, "a batch that was changed is given again"
    kept = batch.clone()
    batch.neg_().sub_(1)
    return kept


def change_late(loop: Loop) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda batch: batch.add_(1) if loop.done > 20 else batch


def plain(loop: Loop) -> None:
    loop.run(loader())


def popped(loop: Loop) -> None:
    loop.run(loader(collate_fn=lambda items: {"x": torch.stack(items)}), pop)


def own_class(loop: Loop) -> None:
    loop.run(loader(collate_fn=lambda items: Item(torch.stack(items))), lambda i: i.parts[1]["y"])


def changed(loop: Loop) -> None:
    loop.run(loader(), change)


def changed_late(loop: Loop) -> None:
    loop.run(loader(), change_late(loop))


def generator(loop: Loop) -> None:
    loop.run(loader(collate_fn=iter), lambda items: torch.stack(list(items)))


def too_large(loop: Loop) -> None:
    loop.run(loader(Numbers(width=lambda _: 1 << 18)))


def short_epochs(loop: Loop) -> None:
    loop.run(loader(Numbers(34)))


def short_epochs_children(loop: Loop) -> None:
    how = {"num_workers": 2, "persistent_workers": True, "multiprocessing_context": "fork"}
    loop.run(loader(Numbers(60), **how))


def endless(loop: Loop) -> None:
    loop.run(loader(Endless()))


def evaluation(loop: Loop) -> None:
    other = loader(Numbers(40))

    def use(batch: torch.Tensor) -> torch.Tensor:
        if loop.done % 10 == 0:
            for _ in other:
                pass
        return batch

    loop.run(loader(), use)


def by_turns(loop: Loop) -> None:
    other = iter(loader())
    loop.run(loader(), lambda batch: batch + next(other))


def iterator_for_each(loop: Loop) -> None:
    data = loader()
    while loop.done < ITERATIONS:
        loop.train(next(iter(data)))


def no_loader(loop: Loop) -> None:
    for _ in range(5):
        loop.train(torch.ones(1))


def other_thread(loop: Loop) -> None:
    batches = iter(loader())
    for _ in range(40):
        got: list[Any] = []
        thread = threading.Thread(target=lambda: got.append(next(batches)))  # noqa: B023
        thread.start()
        thread.join()
        loop.train(got[0])


def early(loop: Loop) -> None:
    for batch in loader():
        loop.train(batch)
        if loop.done == 40:
            return


def judge(name: str, case: Callable[[Loop], None]) -> dict[str, Any]:
    loop = Loop()
    plan = _roofline._parse_plan(os.environ["PERFTRACKER_ROOFLINE_PLAN"])
    _roofline._experiment = _roofline.Experiment(plan, str(FOLDER), lambda: None)
    path = FOLDER / f"{os.getpid()}.roofline"
    path.unlink(missing_ok=True)
    case(loop)
    again = len(loop.sums) - len(set(loop.sums))
    lines = path.read_text().splitlines()
    path.rename(FOLDER / f"{name}.kept")
    return {"name": name, "lines": lines, "epochs": loop.epochs, "done": loop.done, "again": again}


CASES = (
    plain, popped, own_class, changed, changed_late, generator, too_large, short_epochs,
    short_epochs_children, endless, evaluation, by_turns, iterator_for_each, no_loader,
    other_thread, early,
)  # fmt: skip

if __name__ == "__main__":
    for case in CASES:
        print(json.dumps(judge(case.__name__, case)), flush=True)
    sys.exit(7)
