#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/findings.md has the causes of cause_list.h and hangrules.c, each with what to do."""

from __future__ import annotations

import pathlib
import re
import sys

CAUSE = re.compile(r'X\(\w+,\s*"(PT-\d{3})",\s*"([\w-]+)"')
HANG = re.compile(r'"(PT-\d{3})",\s*"([\w-]+)"')
ROW = re.compile(r"^\| \[(PT-\d{3})\]\(#([\w-]+)\) \| ([\w-]+) \|", re.MULTILINE)
SECTION = re.compile(r"^## (PT-\d{3}) ([\w-]+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def complaints(header: str, rules: str, page: str) -> list[str]:
    causes = CAUSE.findall(header)
    hangs = sorted(set(HANG.findall(rules)) - set(causes))  # a rule may have several rows
    rows = ROW.findall(page)
    sections = SECTION.findall(page)
    found = []
    if not causes:
        found.append("cause_list.h: no causes found")
    if not hangs:
        found.append("hangrules.c: no causes found")
    causes += hangs
    if len({number for number, _ in causes}) != len(causes):
        found.append("cause_list.h: an id is given twice")
    if sorted(causes) != sorted((number, name) for number, _, name in rows):
        found.append(f"the table lists {sorted(rows)}, cause_list.h {sorted(causes)}")
    if sorted(causes) != sorted((number, name) for number, name, _ in sections):
        found.append("the sections are not those of cause_list.h")
    for number, anchor, name in rows:
        if anchor != f"{number}-{name}".lower():
            found.append(f"{number}: its link goes to #{anchor}")
    for number, _, text in sections:
        for part in ("**Means.**", "**Recognized by.**", "**What to do.**"):
            if part not in text:
                found.append(f"{number}: no '{part}'")
    return found


def main() -> int:
    texts = (pathlib.Path(path).read_text(encoding="utf-8") for path in sys.argv[1:4])
    found = complaints(*texts)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
