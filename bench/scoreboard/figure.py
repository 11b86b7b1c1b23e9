# SPDX-License-Identifier: Apache-2.0
"""A picture of the smallest strengths still found: a row a fault, a dot a method."""

from __future__ import annotations

import html
import math

import table

COLORS = ("#0b6e99", "#c2410c", "#15803d", "#65a30d", "#7c3aed", "#be185d")
ROW, LEFT, RIGHT, TOP = 26, 170, 40, 70
STEP = 90  # between two strengths, of which each is twice the one before


def place(strength: float, weakest: float) -> float:
    return LEFT + STEP * (math.log2(strength / weakest) + 0.5)


def text(x: float, y: float, what: str, anchor: str = "middle", color: str = "#333") -> str:
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="{color}">'
        f"{html.escape(what)}</text>"
    )


def axis(strengths: list[float], width: float, height: float) -> list[str]:
    parts = []
    for strength in strengths:
        x = place(strength, strengths[0])
        parts.append(f'<path d="M{x:.0f} {TOP - 8}V{height - 10:.0f}" stroke="#ddd"/>')
        parts.append(text(x, TOP - 14, f"x{strength:g}"))
    parts.append(text(width - RIGHT - STEP / 2, TOP - 14, "not found"))
    return parts


def legend(methods: list[str]) -> list[str]:
    parts, x = [], 20.0
    for method, color in zip(methods, COLORS, strict=False):
        parts.append(f'<circle cx="{x:.0f}" cy="16" r="4" fill="{color}"/>')
        parts.append(text(x + 9, 20, method, "start"))
        x += 24 + 7.0 * len(method)
    return parts


def draw(rows: list[table.Row]) -> str:
    groups: dict[str, list[table.Row]] = {}
    for row in table.faulty(rows):
        groups.setdefault(row.fault, []).append(row)
    methods = table.methods_of(rows)
    strengths = sorted({row.strength for row in table.faulty(rows)})
    width = LEFT + STEP * (math.log2(strengths[-1] / strengths[0]) + 2) + RIGHT
    height = TOP + ROW * len(groups) + 10
    parts = legend(methods) + axis(strengths, width, height)
    for line, (fault, group) in enumerate(groups.items()):
        y = TOP + ROW * (line + 0.5)
        parts.append(text(LEFT - 12, y + 4, fault, "end"))
        for number, method in enumerate(methods):
            found = table.smallest_strength(group, method)
            x = place(found, strengths[0]) if found else width - RIGHT - STEP / 2
            shift = 9 * (number - (len(methods) - 1) / 2)
            dot = COLORS[number % len(COLORS)]
            parts.append(f'<circle cx="{x + shift:.1f}" cy="{y:.0f}" r="4" fill="{dot}"/>')
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" font-family="sans-serif" font-size="12">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )
