# SPDX-License-Identifier: Apache-2.0
"""Tables as text, shared by the benches."""

from __future__ import annotations


def text_table(rows: list[tuple[object, ...]]) -> str:
    """A table of Markdown; the first row is the head."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)
