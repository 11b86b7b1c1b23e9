# SPDX-License-Identifier: Apache-2.0
"""A picture of time over workers, both logarithmic: a line a method, a dot a size."""

from __future__ import annotations

import html
import math

COLORS = ("#0b6e99", "#15803d", "#c2410c")
LEFT, TOP, WIDTH, HEIGHT = 70, 40, 560, 330

Line = list[tuple[int, float]]  # workers, ms


def decades(values: list[float]) -> tuple[int, int]:
    return math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))


def text(x: float, y: float, what: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{html.escape(what)}</text>'


class Plane:
    def __init__(self, lines: dict[str, Line]) -> None:
        points = [point for line in lines.values() for point in line]
        self.x_range = decades([workers for workers, _ in points])
        self.y_range = decades([ms for _, ms in points])

    def x(self, workers: float) -> float:
        low, high = self.x_range
        return LEFT + WIDTH * (math.log10(workers) - low) / (high - low)

    def y(self, ms: float) -> float:
        low, high = self.y_range
        return TOP + HEIGHT * (1 - (math.log10(ms) - low) / (high - low))

    def grid(self) -> list[str]:
        parts = []
        for decade in range(self.x_range[0], self.x_range[1] + 1):
            x = self.x(10**decade)
            parts.append(f'<path d="M{x:.0f} {TOP}v{HEIGHT}" stroke="#ddd"/>')
            parts.append(text(x, TOP + HEIGHT + 18, f"{10**decade:,}"))
        for decade in range(self.y_range[0], self.y_range[1] + 1):
            y = self.y(10**decade)
            parts.append(f'<path d="M{LEFT} {y:.0f}h{WIDTH}" stroke="#ddd"/>')
            parts.append(text(LEFT - 8, y + 4, f"{10.0**decade:,g} ms", "end"))
        parts.append(text(LEFT + WIDTH / 2, TOP + HEIGHT + 36, "workers"))
        return parts


def draw(lines: dict[str, Line]) -> str:
    plane = Plane(lines)
    parts = plane.grid()
    for number, (name, line) in enumerate(lines.items()):
        color, left = COLORS[number % len(COLORS)], LEFT + 185 * number
        path = " ".join(f"{plane.x(w):.1f},{plane.y(ms):.1f}" for w, ms in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        for workers, ms in line:
            x, y = plane.x(workers), plane.y(ms)
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{color}"/>')
        parts.append(f'<circle cx="{left}" cy="16" r="4" fill="{color}"/>')
        parts.append(text(left + 9, 20, name, "start"))
    body, height = "\n".join(parts), TOP + HEIGHT + 50
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 30} {height}" '
        f'font-family="sans-serif" font-size="12" fill="#333">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )
