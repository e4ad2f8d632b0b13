"""Lines on two logarithmic axes, as a self-contained SVG. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 860, 460
LEFT, RIGHT, TOP, BOTTOM = 56, 250, 30, 46
LABEL = 15.0
# Readable on white and on black; dashes distinguish lines without colours.
COLOURS = ("#2f7ed8", "#d9730d", "#2e9e4f", "#c83e4d", "#8a5cd1", "#9a6b3f", "#d35fb7", "#7a828a", "#a39a16", "#1aa3b0")
DASHES = ("", "6 3", "2 3")


@dataclass(frozen=True, slots=True)
class Line:
    """A name and its points, (x, y), both above zero."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """A logarithmic axis from `low` to `high`, drawn from pixel `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the pixel of a value."""
        share = (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        return self.start + share * (self.end - self.start)

    def marks(self) -> list[float]:
        """Return 1, 2 and 5 of each power of ten in the range."""
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        found = [step * 10.0**power for power in powers for step in (1, 2, 5)]
        return [value for value in found if self.low * 0.999 <= value <= self.high * 1.001]


def axis(values: Sequence[float], start: float, end: float) -> Axis:
    """Return an axis that includes all values, with a margin."""
    low, high = min(values), max(values)
    return Axis(low / 1.4, high * 1.4, start, end)


def amount(value: float) -> str:
    """Return the short text of an axis' number.

    >>> amount(20_000), amount(10_000_000), amount(0.5), amount(5)
    ('20 k', '10 M', '0.5', '5')
    """
    for size, unit in ((1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def apart(places: Sequence[float], least: float = LABEL) -> list[float]:
    """Return labels' places, moved down until none covers another; their order stays.

    >>> apart([10, 12, 50], 10)
    [10, 20, 50]
    """
    moved = [0.0] * len(places)
    last = -math.inf
    for index in sorted(range(len(places)), key=lambda i: places[i]):
        last = moved[index] = max(places[index], last + least)
    return moved


def chart(title: str, across: str, up: str, lines: Sequence[Line]) -> str:
    """Return lines with points, a grid, and each line's name at its end; "" if there is nothing to draw."""
    lines = [line for line in lines if line.points]
    if not lines:
        return ""
    x = axis([p[0] for line in lines for p in line.points], LEFT, WIDTH - RIGHT)
    y = axis([p[1] for line in lines for p in line.points], HEIGHT - BOTTOM, TOP)
    ends = apart([y.at(line.points[-1][1]) for line in lines])
    parts = [_grid(x, y, sorted({p[0] for line in lines for p in line.points}), across, up)]
    for number, (line, end) in enumerate(zip(lines, ends, strict=True)):
        parts.append(_line(line, x, y, end, COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % 3]))
    named = f"<title>{escape(title)}</title>"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-size="12"'
    return f'{head} font-family="system-ui, sans-serif" fill="currentColor">{named}{"".join(parts)}</svg>'


def _grid(x: Axis, y: Axis, columns: Sequence[float], across: str, up: str) -> str:
    parts = []
    grey = 'stroke="currentColor" stroke-opacity="0.18"'
    for value in y.marks():
        place = y.at(value)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{place:.1f}" y2="{place:.1f}" {grey}/>')
        parts.append(f'<text x="{LEFT - 6}" y="{place + 4:.1f}" text-anchor="end">{amount(value)}</text>')
    for value in columns:
        place = x.at(value)
        parts.append(f'<line x1="{place:.1f}" x2="{place:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" {grey}/>')
        parts.append(f'<text x="{place:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{amount(value)}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(across)}</text>')
    parts.append(f'<text x="6" y="{TOP - 12}">{escape(up)}</text>')
    return "".join(parts)


def _line(line: Line, x: Axis, y: Axis, end: float, colour: str, dash: str) -> str:
    dots = [(x.at(a), y.at(b)) for a, b in line.points]
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in dots)
    drawn = f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>'
    drawn += "".join(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5" fill="{colour}"/>' for a, b in dots)
    right = WIDTH - RIGHT
    drawn += (
        f'<line x1="{dots[-1][0] + 5:.1f}" x2="{right + 8}" y1="{dots[-1][1]:.1f}" y2="{end:.1f}" '
        f'stroke="{colour}" stroke-opacity="0.5"/>'
    )
    return drawn + f'<text x="{right + 12}" y="{end + 4:.1f}" fill="{colour}">{escape(line.name)}</text>'
