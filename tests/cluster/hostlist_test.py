#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists of hosts as Slurm writes them, for deploy/nats/make-users: against Slurm's own words."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import itertools
import os
import pathlib
import random
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAKE_USERS = ROOT / "deploy" / "nats" / "make-users"
loader = importlib.machinery.SourceFileLoader("make_users", str(MAKE_USERS))
spec = importlib.util.spec_from_loader("make_users", loader)
make_users = importlib.util.module_from_spec(spec)
loader.exec_module(make_users)

LISTS = {
    "gpu1": ["gpu1"],
    "gpu[001-003]": ["gpu001", "gpu002", "gpu003"],
    "gpu[1,3-4],login": ["gpu1", "gpu3", "gpu4", "login"],
    "gpu[8-11]": ["gpu8", "gpu9", "gpu10", "gpu11"],
    "r[1-2]n[01-02]": ["r1n01", "r1n02", "r2n01", "r2n02"],
    "a[1]b,c": ["a1b", "c"],
}
WRONG = ("", ",a", "a,", "a,,b", "a[", "a]", "a[1-]", "a[3-1]", "a[x]", "a[1-2", "a[]", "a[[1]]",
         "a[1-99999999]", "a[1-999]b[1-999]", "a[-1]", "a[1-2-3]", "a[²]")  # fmt: skip


def slow_expand(hosts: str) -> list[str]:
    """The definition: each bracket is a choice."""
    found = []
    for name in re.findall(r"(?:\[[^]]*\]|[^,\[])+", hosts):
        choices = []
        for text in re.findall(r"\[[^]]*\]|[^\[]+", name):
            if not text.startswith("["):
                choices.append([text])
                continue
            choices.append([])
            for part in text[1:-1].split(","):
                low, high = (part.split("-") * 2)[:2]
                choices[-1] += [f"{n:0{len(low)}d}" for n in range(int(low), int(high) + 1)]
        found += ["".join(choice) for choice in itertools.product(*choices)]
    return found


def some_list(dice: random.Random) -> str:
    def part() -> str:
        low, width = dice.randrange(120), dice.choice((0, 3))
        high = f"-{low + dice.randrange(20):0{width}d}" if dice.random() < 0.5 else ""
        return f"{low:0{width}d}{high}"

    def name() -> str:
        text = dice.choice("abc")
        for _ in range(dice.randrange(3)):
            text += "[" + ",".join(part() for _ in range(dice.randint(1, 3))) + "]"
            text += dice.choice("xyz")
        return text

    return ",".join(name() for _ in range(dice.randint(1, 3)))


class HostLists(unittest.TestCase):
    def test_known_lists(self) -> None:
        for text, names in LISTS.items():
            self.assertEqual((text, make_users.expand(text)), (text, names))

    def test_random_lists_are_as_defined(self) -> None:
        dice = random.Random(19)
        for _ in range(500):
            text = some_list(dice)
            self.assertEqual((text, make_users.expand(text)), (text, slow_expand(text)))

    def test_slurm_says_the_same(self) -> None:
        if shutil.which("scontrol") is None:
            self.skipTest("scontrol is not installed (slurm-client)")
        dice = random.Random(20)
        with tempfile.TemporaryDirectory() as folder:
            conf = pathlib.Path(folder) / "slurm.conf"
            conf.write_text("ClusterName=a\nSlurmctldHost=a\nNodeName=a\nPartitionName=a Nodes=a\n")
            said = 0
            for text in [*LISTS, *(some_list(dice) for _ in range(15))]:
                done = subprocess.run(
                    ["scontrol", "show", "hostnames", text],
                    env={**os.environ, "SLURM_CONF": str(conf)}, capture_output=True, text=True,
                )  # fmt: skip
                if done.stdout:  # Slurm refuses letters behind the last bracket
                    said += 1
                    self.assertEqual(make_users.expand(text), done.stdout.split(), text)
            self.assertGreater(said, len(LISTS))

    def test_a_wrong_list_is_one_line_and_changes_nothing(self) -> None:
        for text in WRONG:
            with self.assertRaises(ValueError, msg=text):
                make_users.expand(text)
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder) / "nats"
            done = subprocess.run(
                [MAKE_USERS, place, "gpu1", "gpu[3-1]"], capture_output=True, text=True
            )
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertFalse(place.exists())

    def test_anything_is_a_list_or_an_error(self) -> None:
        dice = random.Random(21)
        for _ in range(5000):
            text = "".join(dice.choice("a1[]-,0") for _ in range(dice.randrange(12)))
            try:
                names = make_users.expand(text)
            except ValueError:
                continue
            self.assertTrue(all(names) and not any(set("[],") & set(n) for n in names), text)


if __name__ == "__main__":
    unittest.main()
